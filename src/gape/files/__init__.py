"""Readers of graph files and writers of encodings."""

from gape.files.named import NamedGraphs
from gape.files.read import read_graphs
from gape.files.undirected import undirected

__all__ = ["NamedGraphs", "read_graphs", "undirected"]
