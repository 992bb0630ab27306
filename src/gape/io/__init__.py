"""Readers of graph files and writers of encodings."""

from gape.io.named_graphs import NamedGraphs, undirected
from gape.io.read import read_graphs

__all__ = ["NamedGraphs", "read_graphs", "undirected"]
