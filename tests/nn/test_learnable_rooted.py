"""Rooted automata as a layer: the fixed encoding to start with, bounded and differentiable weights."""

import pytest
import torch
from tests.encodings.samples import batch_of, random_graph

from gape import Graph
from gape.encodings import RootedGAPE
from gape.nn import GAPE, GAPEEncoder, GraphTransformer, LinearEncoder, RootedAutomata


def layer(**settings):
    return GAPE(**{"states": 3, "readout": "rooted", "layers": 2, "scaling": "none", "seed": 5, **settings})


@pytest.fixture
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("radius", [None, 1, 4])
@pytest.mark.parametrize("undirected", [True, False])
def test_starts_as_the_fixed_encoding(double, radius, undirected):
    graph = Graph.union(batch_of(weighted=True, undirected=undirected))
    ours = layer(damping=0.9, radius=radius).encode(graph)
    fixed = RootedGAPE(3, 2, radius=radius, damping=0.9, seed=5, dtype="float64")(graph)
    torch.testing.assert_close(ours, fixed, rtol=1e-10, atol=1e-10)
    assert ours.shape == (graph.num_nodes, 9)


def test_gradients_of_the_parameters(double):
    graph = Graph.union([random_graph(6, 0.4, 1), random_graph(5, 0.5, 2, undirected=False)])
    one = layer(states=2)

    def encode(weight):
        return torch.func.functional_call(one, {"machine.weight": weight}, kwargs=arguments(graph))

    assert torch.autograd.gradcheck(encode, one.machine.weight.detach().requires_grad_())


def arguments(graph):
    return {"edge_index": graph.edge_index, "batch": graph.batch}


def test_weights_stay_bounded_and_symmetric_whatever_the_parameters():
    machine = RootedAutomata(4, 2, damping=0.9, seed=1)
    with torch.no_grad():
        machine.weight.copy_(1e3 * torch.randn_like(machine.weight))
    weights = machine.transition()
    assert float(weights.detach().abs().max()) <= 0.9
    assert torch.equal(weights, weights.mT)


def test_learns_the_weights_of_another_machine():
    graph = Graph.union([random_graph(n, 0.3, n) for n in range(5, 15)])
    target = RootedGAPE(1, 1, damping=0.8, damping_min=0.8, seed=9)(graph)
    one = layer(states=1, layers=1, damping=0.95)
    optimiser, losses = torch.optim.Adam(one.parameters(), lr=0.05), []
    for _ in range(150):
        optimiser.zero_grad()
        loss = (one.encode(graph) - target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 1e-3 * losses[0]


def test_batch_alone_empty_graphs_and_single_nodes():
    one = layer()
    graphs = batch_of()
    together = one.encode(Graph.union(graphs))
    alone = torch.cat([one.encode(graph) for graph in graphs])
    torch.testing.assert_close(together, alone)
    empty = one(torch.zeros(2, 0, dtype=torch.int64), num_nodes=0)
    assert empty.shape == (0, 9)
    one(torch.zeros(2, 0, dtype=torch.int64), num_nodes=2).sum().backward()


def test_lengths_without_learning(double):
    graph = random_graph(7, 0.4, 0)
    found = layer(length=4, learn=False, damping=0.9).encode(graph)
    expected = RootedGAPE(3, 2, length=4, damping=0.9, seed=5, dtype="float64")(graph)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": 4}, "rooted runs by length have no gradients, got length=4"),
        ({"matrix": "random_walk"}, "rooted runs have matrix='adjacency', got 'random_walk'"),
        ({"labels": 3}, "rooted runs have labels=1, got 3"),
        ({"transition": "diagonal"}, "rooted runs have transition='dense'"),
        ({"final": True}, "rooted runs have final=False"),
        ({"length": 4, "learn": False, "damping": 1.0}, "need damping below 1"),
        ({"readout": "closed"}, "layers and radius are for readout='rooted', got layers=2 and radius=None"),
        ({"layers": -1}, "layers must be at least 0"),
        ({"radius": -1}, "radius must be at least 0"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        layer(**settings)


def test_in_the_graph_transformer_beside_random_walks():
    torch.manual_seed(0)
    encoder = GAPEEncoder(layer(out_channels=16, scaling="fixed"), extra_encoder=LinearEncoder(4, 16))
    model = GraphTransformer(inputs=1, out_channels=1, layers=1, hidden=16, heads=4, encoding=encoder)
    graph = random_graph(8, 0.4, 1)
    layers = encoder.layers
    layers[0].fit_scaling([graph])
    model(torch.zeros(8, dtype=torch.int64), graph.edge_index, encoding=torch.rand(8, 4)).sum().backward()
    assert bool(layers[0].machine.weight.grad.abs().sum() > 0)
    assert "readout='rooted', length=None, layers=2, radius=None" in repr(layers[0])
    assert layers[0].basis_settings["vectors"] == 0


def test_state_is_saved_and_loaded():
    first, other = layer(), layer(seed=6)
    graph = random_graph(6, 0.5, 0)
    assert not torch.equal(first.encode(graph), other.encode(graph))
    other.load_state_dict(first.state_dict())
    assert torch.equal(first.encode(graph), other.encode(graph))


def test_parameters_that_are_not_finite_give_features_that_are_not():
    one = layer()
    with torch.no_grad():
        one.machine.weight.fill_(torch.nan)
    assert bool(one.encode(random_graph(4, 0.5, 0)).isnan().all())
