"""Fixtures of the tests of datasets."""

from pathlib import Path

import networkx as nx
import pytest

from gape.data import GraphDataset


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a cache folder per test, not the user's."""
    monkeypatch.setenv("GAPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def as_networkx():  # type: ignore[no-untyped-def]
    """Convert one graph of a dataset to an undirected NetworkX graph."""

    def convert(dataset: GraphDataset, index: int) -> nx.Graph:
        data = dataset[index]
        graph = nx.Graph()
        graph.add_nodes_from(range(data.num_nodes))
        graph.add_edges_from(data.edge_index.t().tolist())
        return graph

    return convert
