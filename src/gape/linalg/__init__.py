"""Numerical routines on plain arrays; nothing here knows graphs or automata."""
