"""Gradients of every mode against finite differences."""

import pytest
import torch
from learnable_cases import LABELS, MODES, graphs, layer, read_by

from gape import Graph
from gape.nn import GAPE
from gape.solvers.gradient import MAX_DENSE_ADJOINT_NODES


def check(one: GAPE, graph) -> None:
    # Away from the start, where a dense M has all singular values equal and its norm a kink.
    generator = torch.Generator().manual_seed(4)
    names = [name for name, parameter in one.named_parameters() if parameter.requires_grad]
    values = []
    for parameter in one.parameters():
        moved = parameter.detach() + 0.2 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        values.append(moved.requires_grad_())

    def encode(*parameters: torch.Tensor) -> torch.Tensor:
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(one, given, (graph.edge_index, graph.batch), kwargs)

    kwargs = read_by(one, graph.labels, graph.edge_type)
    assert torch.autograd.gradcheck(encode, values, rtol=1e-4, atol=1e-7, fast_mode=True)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_those_of_finite_differences(mode):
    check(layer(mode, states=4, out_channels=2), graphs((3, 5), labels=min(LABELS, MODES[mode].get("labels", 1))))


def one_way(graph: Graph) -> Graph:
    """Every other edge left out: directed, with cycles and without."""
    kept = torch.arange(graph.num_edges) % 3 > 0
    return Graph(graph.edge_index[:, kept], graph.num_nodes, None, graph.labels, graph.edge_type[kept], graph.ptr)


DIRECTED = [mode for mode, set_ in MODES.items() if set_.get("readout", "node") == "node" or "length" in set_]


@pytest.mark.parametrize("mode", DIRECTED)
def test_gradients_on_directed_graphs(mode):
    labels = min(LABELS, MODES[mode].get("labels", 1))
    check(layer(mode, states=4, out_channels=2), one_way(graphs((3, 6), labels=labels)))


def test_gradients_on_large_directed_graphs():
    path = torch.arange(MAX_DENSE_ADJOINT_NODES + 1)
    one = GAPE(2, 1, scaling="none", damping=0.5, seed=1).double()
    check(one, Graph(torch.stack([path[:-1], path[1:]]), len(path)))


@pytest.mark.parametrize("mode", ["node", "closed-labels", "typed-closed"])
def test_gradients_with_batch_normalised_features(mode):
    check(layer(mode, states=4, out_channels=2, scaling="batch"), graphs((4, 5)))


def test_checkpointed_closed_runs_have_the_same_gradients():
    graph = graphs((12, 20, 3))
    found = []
    for memory in (1.0, 1e-9):
        one = layer("typed-closed", memory=memory)
        out = one.encode(graph)
        out.square().sum().backward()
        found.append((out, *(parameter.grad for parameter in one.parameters())))
    for kept, again in zip(*found, strict=True):
        torch.testing.assert_close(kept, again)


def test_closed_runs_keep_no_more_than_they_may():
    graph = graphs((40, 40, 40))
    kept = []
    for memory in (1.0, 1e-4):
        seen: dict[int, int] = {}

        def note(tensor: torch.Tensor, seen: dict[int, int] = seen) -> torch.Tensor:
            seen[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
            return tensor

        one = layer("typed-closed", memory=memory)
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            one.encode(graph)
        kept.append(sum(seen.values()))
    all_steps = 3 * 40**2 * 6 * 5 * 8
    assert kept[0] > all_steps
    assert kept[1] < 0.3 * all_steps


def test_a_frozen_automaton_keeps_its_weights_and_trains_the_rest():
    one = layer("typed-closed", learn=False, out_channels=3)
    one.encode(graphs()).sum().backward()
    assert all(parameter.grad is None for parameter in one.machine.parameters())
    assert one.linear.weight.grad is not None
