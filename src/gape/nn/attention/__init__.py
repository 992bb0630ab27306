"""Attention of nodes to nodes: over all of a graph or its edges, on the kernel that suits the pattern."""
