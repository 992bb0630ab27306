"""Readers of graph files and writers of encodings."""

from gape.io.named import NamedGraphs
from gape.io.read import read_graphs
from gape.io.undirected import undirected

__all__ = ["NamedGraphs", "read_graphs", "undirected"]
