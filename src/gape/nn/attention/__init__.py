"""Graph attention over the edges or over all pairs of nodes, with an edge-wise and a dense kernel."""
