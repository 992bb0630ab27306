"""Numerical routines on plain arrays: eigenpairs, matrix powers, hop distances, hashing. No ``Graph`` here."""
