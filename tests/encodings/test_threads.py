"""Threads share out the parts of a batch; what comes out is the same to the last bit."""

import pytest
import torch

import gape
from gape.encodings import Pairs, names, sequence_graph


def values(graph: gape.Graph, name: str) -> torch.Tensor:
    # A graph keeps what was computed of it: every time a new one.
    found = gape.encode(gape.Graph(graph.edge_index, graph.num_nodes, ptr=graph.ptr), name)
    return found.values if isinstance(found, Pairs) else found


@pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning", "ignore::gape.solvers.LeastSquaresWarning")
@pytest.mark.parametrize("name", names())
def test_encodings_do_not_depend_on_the_number_of_threads(name, monkeypatch):
    monkeypatch.setattr("gape.graph.batching.MAX_PART_NODES", 40)
    graph = gape.Graph.union([sequence_graph("cycle", 3 + i % 9) for i in range(60)])
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = values(graph, name)
        torch.set_num_threads(2)
        torch.testing.assert_close(values(graph, name), alone, rtol=0, atol=0, equal_nan=True)
        with torch.inference_mode():
            torch.testing.assert_close(values(graph, name), alone, rtol=0, atol=0, equal_nan=True)
    finally:
        torch.set_num_threads(before)
