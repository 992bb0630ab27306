"""Training keeps automata where their runs sum up; what was learned survives storage and half precision."""

import inspect
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learnable_cases import MODES, graphs, layer
from torch_geometric.data import Data

from gape import Graph
from gape.nn import GAPE, DenseTransition, DiagonalTransition


def radius(one: GAPE) -> float:
    return float(torch.linalg.matrix_norm(one.machine.transition().detach(), 2).max())


@settings(max_examples=25, deadline=None)
@given(
    mode=st.sampled_from(["node", "node-diagonal", "closed", "typed-node", "typed-closed-both"]),
    rate=st.sampled_from([1e-3, 1.0, 1e3]),
    steps=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_no_optimiser_step_leaves_the_well_posed_region(mode, rate, steps, seed):
    graph, one = graphs((4, 6), seed=seed), layer(mode, states=4, out_channels=2)
    torch.manual_seed(seed)
    optimiser = torch.optim.SGD(one.machine.parameters(), lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        (one.encode(graph) * torch.randn(2)).sum().backward()
        optimiser.step()
        assert radius(one) <= one.damping * (1 + 1e-12)
        assert bool(torch.isfinite(one.encode(graph)).all())


@settings(max_examples=50, deadline=None)
@given(scale=st.sampled_from([0.0, 1e-20, 1.0, 1e8, 1e15]), states=st.integers(1, 5), seed=st.integers(0, 100))
def test_parameters_of_any_size_give_bounded_transitions(scale, states, seed):
    generator = torch.Generator().manual_seed(seed)
    dense = DenseTransition(scale * torch.randn(3, states, states, generator=generator), damping=0.95)
    diagonal = DiagonalTransition(torch.zeros(states), torch.full((states,), 0.5), damping=0.95)
    with torch.no_grad():
        diagonal.decay.copy_(scale * torch.randn(states, generator=generator))
        diagonal.phase.copy_(scale * torch.randn(states, generator=generator))
    for transition in (dense, diagonal):
        norms = torch.linalg.matrix_norm(transition().detach(), 2)
        assert float(norms.max()) <= 0.95 * (1 + 1e-12)


def test_poles_are_the_eigenvalues_of_the_real_matrix():
    transition = DiagonalTransition(torch.tensor([0.3, 2.0]), torch.tensor([0.5, 0.9]), damping=0.9)
    poles = transition.poles.detach()
    expected = torch.cat([poles, poles.conj()])
    found = torch.linalg.eigvals(transition().detach())
    order = [sorted(values.tolist(), key=lambda z: (round(z.real, 9), z.imag)) for values in (found, expected)]
    torch.testing.assert_close(torch.tensor(order[0]), torch.tensor(order[1]))


def test_learning_finds_the_automaton_that_made_the_data():
    graph = graphs((9, 12, 10, 11))
    torch.manual_seed(0)
    teacher = layer("typed-closed", states=2, length=3, seed=9)
    target = teacher.encode(graph).detach()
    student = layer("typed-closed", states=2, length=3, seed=1)
    optimiser = torch.optim.Adam(student.parameters(), lr=0.05)
    losses = []
    for _ in range(150):
        optimiser.zero_grad()
        loss = (student.encode(graph) - target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]


@pytest.mark.parametrize("mode", MODES)
def test_the_state_dict_is_complete(mode):
    graph = graphs()
    one, other = layer(mode, seed=1, out_channels=2), layer(mode, seed=2, out_channels=2)
    other.load_state_dict(one.state_dict())
    torch.testing.assert_close(other.encode(graph), one.encode(graph), rtol=0, atol=0)


SCRIPT = """
import sys, torch
from gape.nn import GAPE
graph, settings, state, out = sys.argv[1:]
given = torch.load(graph, weights_only=True)
torch.set_num_threads(1)
layer = GAPE(**torch.load(settings, weights_only=True)).eval()
layer.load_state_dict(torch.load(state, weights_only=True))
torch.save(layer(**given).detach(), out)
"""


@pytest.mark.parametrize("mode", ["node", "closed", "typed-closed"])
def test_encodings_are_identical_after_loading_in_a_new_process(mode, tmp_path):
    graph = graphs()
    chosen = {"states": 6, "out_channels": 4} | MODES[mode]
    one = GAPE(**chosen, seed=7)
    labels = graph.labels if "labels" in chosen else None
    given = {"edge_index": graph.edge_index, "batch": graph.batch, "labels": labels}
    one(**given).sum().backward()  # moves the running statistics
    one.eval()
    paths = [str(tmp_path / name) for name in ("graph.pt", "settings.pt", "state.pt", "out.pt")]
    for path, value in zip(paths, (given, chosen, one.state_dict()), strict=False):
        torch.save(value, path)
    subprocess.run([sys.executable, "-c", SCRIPT, *paths], check=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    expected = one(**given).detach()
    torch.set_num_threads(threads)
    assert torch.equal(torch.load(paths[-1], weights_only=True), expected)


@pytest.mark.parametrize("mode", ["node", "closed", "pair", "typed-closed", "node-length"])
def test_mixed_precision_leaves_the_runs_exact(mode):
    graph = graphs()
    one = GAPE(**({"states": 6, "scaling": "none", "seed": 1} | MODES[mode]))
    exact = one.read(graph)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = one.read(graph)
    assert mixed.dtype == torch.float32
    assert torch.equal(mixed, exact)


def test_half_precision_parameters_still_solve_in_float32():
    one = GAPE(states=6, seed=1, scaling="none").to(torch.bfloat16)
    assert one.read(graphs()).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scaling", ["batch", "fixed", "none"])
def test_a_layer_of_half_precision_encodes_and_learns(dtype, scaling):
    one, graph = GAPE(6, 4, seed=1, scaling=scaling), graphs()
    if scaling == "fixed":
        one.fit_scaling([graph])
    exact, half = one.encode(graph), one.to(dtype).encode(graph)
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), exact, rtol=0.1, atol=0.1)
    half.float().square().sum().backward()
    assert bool(torch.isfinite(one.machine.transition.weight.grad).all())


def test_no_nodes_at_all_have_gradients():
    one = GAPE(6, scaling="none", seed=1)
    one(torch.zeros(2, 0, dtype=torch.int64), num_nodes=0).sum().backward()
    assert not one.machine.initial.grad.any()


def test_fixed_scaling_comes_from_the_training_set_and_stays():
    train, other = graphs(), graphs(seed=3)
    one = GAPE(states=6, scaling="fixed", seed=1)
    with pytest.raises(ValueError, match="fit_scaling"):
        one.encode(train)
    one.fit_scaling([train.slice(0, 2), train.slice(2, 4)])
    scaled = one.encode(train)
    torch.testing.assert_close(scaled.mean(0), torch.zeros(6), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaled.std(0, correction=0), torch.ones(6), atol=1e-4, rtol=0)
    before = one.encode(other)
    one.train()
    one.encode(train)
    torch.testing.assert_close(one.encode(other), before)
    loaded = GAPE(states=6, scaling="fixed", seed=2)
    loaded.load_state_dict(one.state_dict())
    torch.testing.assert_close(loaded.encode(other), before)


def test_scales_are_taken_from_the_arguments_of_forward():
    graph = graphs()
    whole, named = (layer("typed-node-length", scaling="fixed", seed=1) for _ in range(2))
    whole.fit_scaling([graph])
    named.fit_scaling([{"edge_index": graph.edge_index, "batch": graph.batch, "labels": graph.labels.tolist()}])
    assert torch.equal(whole.encode(graph), named.encode(graph))
    with pytest.raises(ValueError, match=r"got Data: layer.fit_scaling\(\{\"edge_index\": b.edge_index"):
        whole.fit_scaling([Data(edge_index=graph.edge_index)])
    with pytest.raises(ValueError, match="forward has no argument x; it has edge_index, batch"):
        whole.fit_scaling([{"edge_index": graph.edge_index, "x": graph.labels}])
    with pytest.raises(ValueError, match="mappings of arguments of forward, got tuple"):
        whole.fit_scaling([(graph,)])
    with pytest.raises(ValueError, match="a list of batches, got one Graph"):
        whole.fit_scaling(graph)


def test_the_settings_can_be_read_off_a_printed_model():
    shown = repr(GAPE(8, readout="closed", length=5, damping=0.5))
    for part in ("states=8", "readout='closed'", "length=5", "damping=0.5"):
        assert part in shown


def test_whitened_features_are_uncorrelated_over_the_training_set():
    train = graphs((9, 14, 11))
    one = GAPE(states=3, readout="closed", length=6, scaling="whitened", learn=False, seed=1).double()
    with pytest.raises(ValueError, match="scaling='whitened' needs the training set"):
        one.encode(train)
    one.fit_scaling([train.slice(0, 1), train.slice(1, 3)])
    white = one.encode(train)
    # Six return weights, of which the first is always 0, times three numbers each: five components, and no more.
    expected = torch.diag((torch.arange(18) < 5).double())
    torch.testing.assert_close(white.T @ white / len(white), expected, atol=1e-8, rtol=0)
    torch.testing.assert_close(white.mean(0), torch.zeros(18, dtype=torch.float64), atol=1e-8, rtol=0)
    # Nothing is lost: what was read is a linear map of it.
    read = one.read(train)
    solution = torch.linalg.lstsq(white[:, :5], read - read.mean(0)).solution
    torch.testing.assert_close(white[:, :5] @ solution, read - read.mean(0), atol=1e-8, rtol=0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"readout": "edge"}, "readout must be"),
        ({"readout": "pair"}, "out_channels"),
        ({"readout": "closed", "transition_by": "node", "labels": 3}, "need a length"),
        ({"damping": 1.0}, "damping must be above 0"),
        ({"damping": "much"}, "damping must be a number, got 'much'"),
        ({"length": 2.5}, "length must be a whole number, got 2.5"),
        ({"states": "8"}, "states must be a whole number, got '8'"),
        ({"out_channels": 0}, "out_channels must be at least 1, got 0"),
        ({"matrix": "foo"}, "matrix must be one of 'adjacency', .* got 'foo'"),
        ({"memory": -1}, "memory must be more than 0 GiB, got -1"),
        ({"transition": "diagonal", "states": 3}, "even"),
        ({"length": 0}, "length must be"),
        ({"edge_types": 3}, "transition_by"),
        ({"scaling": "layer"}, "scaling must be"),
        ({"scaling": "whitened"}, "principal components once.* give learn=False"),
        ({"readout": "pair", "out_channels": 2, "scaling": "fixed"}, "pairs are not scaled, got scaling='fixed'"),
        ({"memory": "1"}, "memory must be a number, got '1'"),
        ({"damping": "0.9"}, "damping must be a number, got '0.9'"),
        ({"states": 0}, "at least 1"),
        ({"labelling": "degree"}, "labelling='degree' needs the number of labels, got labels=1"),
        ({"transition_by": "node"}, "transition_by='node' needs the number of labels, got labels=1"),
        ({"learn": "no"}, "learn must be True or False, got 'no'"),
        ({"seed": 2.5, "transition_by": "node", "labels": 2}, "seed must be a whole number, got 2.5"),
        ({"seed": 2**63, "transition": "diagonal"}, f"seed must be at most {2**63 - 1}, got {2**63}"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_the_reason(wrong, message):
    with pytest.raises(ValueError, match=message):
        GAPE(**wrong)


@pytest.mark.parametrize("transition", ["dense", "diagonal"])
def test_negative_seeds_are_seeds(transition):
    drawn = [GAPE(4, labels=2, transition=transition, transition_by="node", seed=seed) for seed in (-1, -1, -2, 1)]
    again, *others = (one.machine.weights()[0] for one in drawn[1:])
    first = drawn[0].machine.weights()[0]
    assert torch.equal(first, again)
    assert not any(torch.equal(first, other) for other in others)
    assert not torch.equal(first[0], first[1])


def test_forward_takes_what_it_promises():
    parameters = inspect.signature(GAPE.forward).parameters
    assert list(parameters) == [
        *("self", "edge_index", "batch", "num_nodes", "edge_weight", "labels", "edge_type", "basis"),
    ]
    assert all(one.kind is one.KEYWORD_ONLY for name, one in parameters.items() if name in list(parameters)[3:])


def test_runs_too_heavy_for_their_numbers_are_told_and_not_passed_on():
    layers = [(8 * i + a, 8 * (i + 1) + b) for i in range(59) for a in range(8) for b in range(8)]
    deep = torch.tensor(layers).T
    with pytest.raises(ArithmeticError, match=r"into node \d+ of graph 0 overflow float32.*'random_walk'"):
        GAPE(4, seed=0)(deep, num_nodes=480)
    assert bool(torch.isfinite(GAPE(4, seed=0, matrix="random_walk")(deep, num_nodes=480)).all())
    broken = GAPE(4, seed=0)
    with torch.no_grad():
        broken.machine.initial.fill_(torch.nan)  # training went wrong: not the graph's fault
    assert bool(broken(torch.tensor([[0, 1], [1, 0]]), num_nodes=2).isnan().all())


@pytest.mark.parametrize("others", [{}, {"length": 20}, {"labels": 3}], ids=str)
def test_untyped_closed_runs_keep_no_dense_tensor(others):
    n, k, ring = 200, 16, torch.arange(200)
    edges = torch.stack([torch.cat([ring, (ring + 1) % n]), torch.cat([(ring + 1) % n, ring])])
    one, graph = GAPE(k, readout="closed", scaling="none", seed=0, **others), Graph(edges, n, labels=ring % 3)
    basis, kept = one.prepare(graph), {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes() // tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        one.encode(graph, basis).sum().backward()
    assert sum(kept.values()) < n * n * k / 2


def test_inputs_that_do_not_fit_are_refused_with_the_reason():
    graph = graphs()
    with pytest.raises(ValueError, match="labels"):
        layer("node-labels").forward(graph.edge_index, graph.batch)
    with pytest.raises(ValueError, match="below 3, got 5 at node 0"):
        layer("node-labels").forward(graph.edge_index, graph.batch, labels=torch.full((graph.num_nodes,), 5))
    with pytest.raises(ValueError, match=r"ascending: node 7 belongs to graph 2, the node before it to graph 3"):
        layer("node").forward(graph.edge_index, graph.batch.flip(0))
    for batch, got in ((graph.batch.double(), "float64"), (graph.batch.tolist(), "list"), (graph.batch - 1, "got -1")):
        with pytest.raises(ValueError, match=f"batch must .*{got}"):
            layer("node").forward(graph.edge_index, batch)
    with pytest.raises(ValueError, match=r"take x\[:, 0\]"):
        layer("node-labels").forward(graph.edge_index, graph.batch, labels=graph.labels.unsqueeze(1))
    with pytest.raises(ValueError, match=r"labels must be a row of integers, got shape \[\]"):
        layer("node-labels").forward(graph.edge_index, labels=3)
    layer("node").forward(graph.edge_index, graph.batch, num_nodes=torch.tensor(graph.num_nodes))
    with pytest.raises(ValueError, match=r"basis must be a Basis.* got Graph"):
        layer("node").encode(graph, graph)
    with pytest.raises(ValueError, match=r"expected edge_index, a plain tensor \[2, E\], got layout torch.sparse_coo"):
        layer("node").forward(torch.eye(3).to_sparse())
    with pytest.raises(ValueError, match=r"got shape \[\d+, 3\]; for one-hot rows take argmax\(1\)"):
        layer("node-labels").forward(graph.edge_index, labels=torch.eye(3)[graph.labels])
    with pytest.raises(ValueError, match="a batch needs edge_index, as forward does, got batch"):
        layer("node", scaling="fixed").fit_scaling([{"batch": graph.batch}])
    with pytest.raises(ValueError, match=r"take edge_attr\[:, 0\]"):
        layer("typed-edge").forward(graph.edge_index, graph.batch, edge_type=graph.edge_type.unsqueeze(1))
    with pytest.raises(
        ValueError, match=f"the number of nodes is ambiguous, got len.batch.={graph.num_nodes}, len.labels.=3"
    ):
        layer("node-labels").forward(graph.edge_index, graph.batch, labels=graph.labels[:3])
    with pytest.raises(
        ValueError, match=f"the number of nodes is ambiguous, got num_nodes=4, len.batch.={graph.num_nodes}"
    ):
        layer("node").forward(graph.edge_index, graph.batch, num_nodes=4)
    with pytest.raises(ValueError, match=r"edge_index has node \d+, but len.batch.=3"):
        layer("node").forward(graph.edge_index, graph.batch[:3])
    for mode in ("node", "node-degree", "typed-edge"):
        with pytest.raises(ValueError, match=r"labels were given.*does not read them"):
            layer(mode).forward(graph.edge_index, graph.batch, labels=graph.labels)
    with pytest.raises(ValueError, match=r"edge_type was given.*transition_by='node' does not read it"):
        layer("typed-node").forward(graph.edge_index, graph.batch, labels=graph.labels, edge_type=graph.edge_type)
    weight = torch.ones(graph.num_edges, requires_grad=True)
    with pytest.raises(ValueError, match="detach"):
        layer("node").forward(graph.edge_index, graph.batch, edge_weight=weight)
    laplacian = layer("typed-edge", matrix="laplacian", length=2)
    with pytest.raises(ValueError, match="belongs to no edge"):
        laplacian.encode(Graph.from_edges([(0, 1)], undirected=True, edge_type=torch.tensor([0])))
