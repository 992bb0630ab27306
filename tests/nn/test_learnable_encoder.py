"""Learnable automata inside the graph transformer."""

import pytest
import torch
from learnable_cases import graphs

from gape.encodings import RandomWalk
from gape.nn import GAPE, GAPEEncoder, GraphTransformer, LinearEncoder, WalkInput
from gape.solvers.basis import prepare_layer


def model(encoder: GAPEEncoder, **others) -> GraphTransformer:
    return GraphTransformer(inputs=3, out_channels=1, layers=2, hidden=16, heads=2, encoding=encoder, **others)


def run(network: GraphTransformer, graph, encoding):
    return network(graph.labels, graph.edge_index, graph.batch, encoding)


@pytest.mark.parametrize("readout", ["node", "closed"])
def test_an_automaton_is_learned_end_to_end(readout):
    torch.manual_seed(0)
    graph = graphs((6, 7, 9, 5))
    network = model(GAPEEncoder(GAPE(4, 16, readout=readout)))
    before = [parameter.detach().clone() for parameter in network.encoding.parameters()]
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        loss = (run(network, graph, None)[:, 0] - torch.tensor([1.0, -1.0, 2.0, 0.0])).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert all(not torch.equal(a, b) for a, b in zip(before, network.encoding.parameters(), strict=True))


def test_a_typed_automaton_and_random_walks_are_added():
    torch.manual_seed(0)
    graph = graphs((6, 7, 9, 5))
    walks = RandomWalk(length=5)(graph)
    typed = GAPE(4, 16, readout="closed", labels=3, transition_by="node", length=5, matrix="random_walk")
    fixed = LinearEncoder(5, 16)
    encoder = GAPEEncoder(typed, extra_encoder=fixed).eval()
    network = model(encoder)
    given = WalkInput(labels=graph.labels, fixed=walks, basis=prepare_layer(graph, "random_walk", vectors=0))
    run(network, graph, given).sum().backward()
    assert typed.machine.transition.weight.grad is not None
    pattern = network.pattern(graph.edge_index, graph.batch)
    alone = typed(graph.edge_index, graph.batch, labels=graph.labels)
    torch.testing.assert_close(encoder(given, pattern), alone + fixed(walks, pattern))


@pytest.mark.parametrize("attention", ["neighbours", "full"])
@pytest.mark.parametrize("kernel", ["edge", "dense"])
def test_pairs_are_an_attention_bias_in_either_kernel(attention, kernel):
    torch.manual_seed(0)
    graph = graphs((6, 7, 9, 5))
    pair = GAPE(4, 2, readout="pair")
    network = model(GAPEEncoder(pair), attention=attention, kernel=kernel).eval()
    without = model(GAPEEncoder(pair), attention=attention, kernel=kernel).eval()
    without.load_state_dict(network.state_dict())
    without.encoding = None
    found = run(network, graph, None)
    bias = pair(graph.edge_index, graph.batch)
    expected = without(graph.labels, graph.edge_index, graph.batch, bias=bias)
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    assert float(pair.machine.initial.grad.abs().max()) > 0


def test_closed_and_node_readouts_together():
    graph = graphs()
    first, second = GAPE(4, 16, seed=0).eval(), GAPE(4, 16, readout="closed", seed=1).eval()
    encoder = GAPEEncoder(first, second)
    pattern = model(encoder).pattern(graph.edge_index, graph.batch)
    torch.testing.assert_close(encoder(None, pattern), first.encode(graph) + second.encode(graph))
    assert encoder.bias(None, pattern) is None


def test_inputs_move_together():
    graph = graphs()
    given = WalkInput(labels=graph.labels, basis=prepare_layer(graph, vectors=4)).to("meta")
    assert given.labels.is_meta
    assert given.basis.parts[0].vectors.is_meta
    assert given.basis.unit_radius.is_meta
    assert given.fixed is None


def test_encoders_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        GAPEEncoder()
    with pytest.raises(ValueError, match=r"are gape.nn.GAPE, got Linear"):
        GAPEEncoder(torch.nn.Linear(3, 3))
    with pytest.raises(ValueError, match="out_channels"):
        GAPEEncoder(GAPE(4))


def test_a_layer_given_pyg_data_says_what_to_give_it():
    from torch_geometric.data import Data

    with pytest.raises(ValueError, match=r"got Data; for PyG data call layer\(data.edge_index, data.batch"):
        GAPE(states=2)(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))


def test_what_would_be_lost_or_spread_in_silence_is_refused():
    graph = graphs((6, 7))
    with pytest.raises(ValueError, match="there is no encoder for it; build with extra_encoder=LinearEncoder"):
        run(model(GAPEEncoder(GAPE(4, 16))), graph, torch.ones(13, 5))
    with pytest.raises(ValueError, match="gives 1 channels and the model has hidden=16"):
        run(model(GAPEEncoder(GAPE(4, 1))), graph, None)
    with pytest.raises(ValueError, match="out_channels must agree"):
        GAPEEncoder(GAPE(4, 16), GAPE(4, 8))
