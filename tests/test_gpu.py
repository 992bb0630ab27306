"""Encodings, solves and layers on a GPU give the numbers of the CPU; skipped where there is none."""

import networkx as nx
import pytest
import torch

import gape
from gape import Automaton, Graph, nn
from tests.encodings.samples import encoding, random_graph, rows

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU that PyTorch can use")

GRAPHS = [random_graph(12, 0.3, 0), random_graph(20, 0.2, 1), gape.as_graph(nx.cycle_graph(9))]


@pytest.mark.parametrize("name", ["gape", "gape-paper", "rw", "lape", "sa", "spd", "degree", "ppr", "pprp"])
@pytest.mark.parametrize("graph", [GRAPHS[0], Graph.union(GRAPHS)], ids=["one", "batch"])
def test_encodings(name, graph):
    encode = encoding(name)
    found = rows(encode(graph.to("cuda")))
    assert found.is_cuda
    torch.testing.assert_close(found.cpu(), rows(encode(graph)), rtol=1e-8, atol=1e-8, equal_nan=True)


@pytest.mark.parametrize("readout", ["node", "closed", "pair"])
def test_solve(readout):
    graph, machine = Graph.union(GRAPHS), Automaton.random(4, 0.1)
    found = gape.solve(machine.to("cuda"), graph.to("cuda"), readout=readout)
    expected = gape.solve(machine, graph, readout=readout)
    torch.testing.assert_close(found.weights.cpu(), expected.weights, rtol=1e-9, atol=1e-9)
    assert found.status == expected.status


@pytest.mark.parametrize("readout", ["node", "closed", "rooted"])
def test_layers_with_gradients(readout):
    graph = Graph.union(GRAPHS)
    one = nn.GAPE(states=4, out_channels=3, readout=readout, scaling="none", seed=0)
    other = nn.GAPE(states=4, out_channels=3, readout=readout, scaling="none", seed=0)
    other.load_state_dict(one.state_dict())
    other.cuda()
    found = other(graph.edge_index.cuda(), graph.batch.cuda())
    expected = one(graph.edge_index, graph.batch)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    found.sum().backward()
    expected.sum().backward()
    for ours, theirs in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(theirs.grad.cpu(), ours.grad, rtol=1e-3, atol=1e-4)
