"""What learning, closing and typing can and cannot tell apart, for any weights."""

import pytest
import torch
from learnable_cases import layer

from gape import Graph
from gape.encodings import RandomWalk


def ring(n: int, labels: list[int] | None = None) -> Graph:
    edges = [(i, (i + 1) % n) for i in range(n)]
    return Graph.from_edges(edges, undirected=True, labels=None if labels is None else torch.tensor(labels))


HEXAGON = ring(6)
TRIANGLES = Graph.from_edges([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)], undirected=True)
# A six-ring with two marked atoms, side by side and opposite.
BESIDE, OPPOSITE = ring(6, [1, 1, 0, 0, 0, 0]), ring(6, [1, 0, 0, 1, 0, 0])


@pytest.mark.parametrize("mode", ["node", "node-diagonal", "node-length", "node-walk"])
@pytest.mark.parametrize("seed", range(3))
def test_one_label_and_the_node_readout_cannot_see_beyond_1_wl(mode, seed):
    one = layer(mode, seed=seed)
    torch.testing.assert_close(one.encode(HEXAGON), one.encode(TRIANGLES))


@pytest.mark.parametrize("mode", ["closed", "closed-diagonal"])
def test_closed_runs_see_cycles(mode):
    one = layer(mode)
    assert (one.encode(HEXAGON)[0] - one.encode(TRIANGLES)[0]).abs().max().item() > 1e-2


def test_untyped_closed_runs_are_a_linear_map_of_return_probabilities():
    generator = torch.Generator().manual_seed(0)
    upper = (torch.rand(30, 30, generator=generator) < 0.15).triu(1).nonzero()
    graph = Graph.from_edges(upper, num_nodes=30, undirected=True)
    # γ²⁰⁰ is nothing; with so many lengths the random-walk features are all there is.
    one = layer("closed", matrix="random_walk", damping=0.8)
    mu, alpha = (weights.detach() for weights in one.machine.weights())
    returns = RandomWalk(length=200, dtype=torch.float64)(graph)
    terms = torch.stack([alpha[:, 0] @ torch.linalg.matrix_power(mu, t) for t in range(201)])
    torch.testing.assert_close(one.encode(graph), terms[0] + returns @ terms[1:])


def test_only_typed_runs_see_the_order_of_labels_on_a_ring():
    def seen(mode: str, graph: Graph, **others) -> torch.Tensor:
        """The encodings of all nodes, in an order of their own."""
        found = layer(mode, **others).encode(graph)
        return found[torch.argsort(found[:, :2].round(decimals=9) @ torch.tensor([1.0, 0.37], dtype=torch.float64))]

    closed = [seen("closed-labels", graph) for graph in (BESIDE, OPPOSITE)]
    torch.testing.assert_close(*closed)
    typed = [seen("typed-closed", graph).sum(0) for graph in (BESIDE, OPPOSITE)]
    assert (typed[0] - typed[1]).abs().max().item() > 1e-3
