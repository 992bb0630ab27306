"""Graph position encodings from weighted graph-walking automata."""
