"""Expressiveness: how many pairs of graphs of BREC encodings and Weisfeiler-Leman tests tell apart."""
