"""Automata that are learned together with the model."""
