"""Graphs that automata walk: edges, labels, walk matrices, batches."""

from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.graph.labels import DegreeLabels, IndexLabels, RandomLabels
from gape.graph.spectral_radius import spectral_radii

__all__ = ["DegreeLabels", "Graph", "IndexLabels", "RandomLabels", "as_graph", "spectral_radii"]
