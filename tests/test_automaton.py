"""The automaton: its definition, its named machines, and that it stays what it was made."""

import copy
import dataclasses
import os
import pickle
import stat
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import gape
from gape import Automaton, Graph, as_graph
from gape.graph.labels import IndexLabels


def machine(**changes):
    generator = torch.Generator().manual_seed(7)
    settings = {
        "initial": torch.randn(3, 2, generator=generator, dtype=torch.float64),
        "transition": torch.randn(3, 3, generator=generator, dtype=torch.float64),
        "final": torch.randn(3, 2, generator=generator, dtype=torch.float64),
    }
    return Automaton(**{**settings, **changes})


# ---------------------------------------------------------------------- construction


@pytest.mark.parametrize("form", [lambda x: x, torch.tensor, np.array, lambda x: np.array(x)[::-1][::-1]])
def test_weights_may_be_lists_arrays_or_tensors(form):
    built = Automaton(form([[1.0, 2.0], [3.0, 4.0]]), form([[0.0, 0.5], [0.25, 0.0]]))
    assert built.states == 2
    assert built.labels == 2
    assert built.initial.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert built.transition.tolist() == [[0.0, 0.5], [0.25, 0.0]]
    assert not built.typed


def test_backward_and_read_only_arrays_are_taken_without_a_warning(recwarn):
    weights = np.arange(4.0).reshape(2, 2)[::-1]
    locked = np.eye(2)
    locked.flags.writeable = False
    built = Automaton(weights, locked)
    assert built.initial.tolist() == [[2.0, 3.0], [0.0, 1.0]]
    assert not recwarn.list


def test_whole_numbers_become_float64_and_types_are_promoted():
    assert Automaton([[1]], [[2]]).dtype == torch.float64
    assert Automaton(torch.ones(1, 1), torch.ones(1, 1)).dtype == torch.float32
    mixed = Automaton(torch.ones(1, 1), torch.ones(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.complex64))
    assert {mixed.initial.dtype, mixed.transition.dtype, mixed.final.dtype} == {torch.complex128}


@given(st.sets(st.integers(0, 4)))
def test_rows_of_alpha_outside_the_starting_states_are_zero(starting):
    built = Automaton(torch.ones(5, 2), torch.eye(5), starting=list(starting))
    assert built.starting == tuple(sorted(starting))
    expected = np.zeros((5, 2))
    expected[sorted(starting)] = 1
    assert built.initial.tolist() == expected.tolist()


def test_a_typed_transition_has_one_matrix_per_label_or_edge_type():
    by_node = Automaton(torch.ones(2, 3), torch.ones(3, 2, 2))
    assert by_node.typed
    assert by_node.transition_by == "node"
    by_edge = Automaton(torch.ones(2, 3), torch.ones(5, 2, 2), transition_by="edge")
    assert "types=5 by edge" in repr(by_edge)


@pytest.mark.parametrize(
    ("arguments", "quoted"),
    [
        ({"initial": [1.0]}, r"initial must be \[states, labels\].*\[1\]"),
        ({"initial": np.zeros((0, 1))}, r"at least 1 state and 1 label.*\[0, 1\]"),
        ({"initial": np.zeros((3, 0))}, r"at least 1 state and 1 label.*\[3, 0\]"),
        ({"initial": [["a"]]}, "initial must be an array of numbers.*'a'"),
        ({"initial": None}, "initial must be an array of numbers.*None"),
        ({"initial": [[1.0], [1.0, 2.0]]}, r"initial must be an array of numbers.*\[1.0, 2.0\]"),
        ({"initial": [[1.0, 2.0], [float("nan"), 1.0], [1.0, 2.0]]}, r"initial must be finite, got nan at \[1, 0\]"),
        ({"transition": [[1.0]]}, r"transition must be \[3, 3\].*got shape \[1, 1\]"),
        ({"transition": np.zeros((2, 3))}, r"got shape \[2, 3\]"),
        ({"transition": np.full((3, 3), np.inf)}, r"transition must be finite, got inf at \[0, 0\]"),
        ({"transition": np.zeros((5, 3, 3))}, "each of the 2 labels, got 5.*transition_by='edge'"),
        ({"transition": torch.zeros(3, 3, dtype=torch.bfloat16)}, "transition must be one of.*got bfloat16"),
        ({"final": [[1.0]]}, r"final must be \[3, 2\].*got \[1, 1\]"),
        ({"final": [["x"]]}, "final must be an array of numbers.*'x'"),
        ({"starting": [3]}, r"starting states must be whole numbers in 0 … 2, got \[3\]"),
        ({"starting": [-1]}, r"0 … 2, got \[-1\]"),
        ({"starting": [0.5]}, r"got \[0.5\]"),
        ({"starting": 1}, "starting states must be.*got 1"),
        ({"transition_by": "label"}, "'node' or 'edge', got 'label'"),
    ],
)
def test_bad_weights_are_quoted(arguments, quoted):
    with pytest.raises(ValueError, match=quoted):
        machine(**arguments)


# ---------------------------------------------------------------------- it never changes


def test_fields_cannot_be_assigned():
    with pytest.raises(dataclasses.FrozenInstanceError):
        machine().initial = torch.ones(3, 2)


def test_writing_to_the_weights_given_changes_nothing():
    initial, transition = torch.ones(2, 1), np.eye(2)
    built = Automaton(initial, transition)
    before = built.digest
    initial.fill_(5.0)
    transition[:] = 5.0
    assert built.digest == before
    assert built.initial.tolist() == [[1.0], [1.0]]


def test_learnt_weights_are_followed_and_get_their_gradient():
    transition = torch.nn.Parameter(torch.full((1, 1), 0.5, dtype=torch.float64))
    built = Automaton([[1.0]], transition, starting=[0])
    built.transition.sum().backward()
    assert transition.grad.item() == 1.0
    with torch.no_grad():
        transition.mul_(0.5)
    assert built.transition.item() == 0.25


@pytest.mark.parametrize("name", ["initial", "transition", "final"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_learnt_weights_are_followed_through_a_mask_and_a_cast(name, dtype):
    # The other weights are float64, so that float32 is cast; only state 1 starts runs.
    given = {"initial": [[1.0], [0.5]], "transition": [[0.1, 0.2], [0.3, 0.1]], "final": [[1.0], [2.0]]}
    learnt = torch.nn.Parameter(torch.tensor(given[name], dtype=dtype))
    built = Automaton(**{**given, name: learnt}, starting=[1])
    path = gape.Graph.from_edges([(0, 1), (1, 2)])
    optimiser = torch.optim.SGD([learnt], lr=0.5)
    for _ in range(3):
        fresh = Automaton(**{**given, name: learnt.detach().tolist()}, starting=[1])
        assert built.dtype is torch.float64
        assert torch.equal(getattr(built, name), getattr(fresh, name))
        weights = gape.solve(built, path).weights
        assert torch.equal(weights, gape.solve(fresh, path).weights)
        optimiser.zero_grad()
        weights.sum().backward()
        # Only finite differences of the sum know what the gradient should be.
        for place in np.ndindex(*learnt.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = np.array(learnt.detach().tolist())
                moved[place] += step
                ends.append(float(gape.solve(Automaton(**{**given, name: moved}, starting=[1]), path).weights.sum()))
            assert learnt.grad[place].item() == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)
        optimiser.step()
    assert copy.deepcopy(built) == built
    learnt.requires_grad_(False)  # trained; from here on it is used
    fresh = Automaton(**{**given, name: learnt.tolist()}, starting=[1])
    assert built == fresh
    assert built.digest == fresh.digest
    assert torch.equal(gape.solve(built, path).weights, gape.solve(fresh, path).weights)


def test_copies_and_pickles_are_equal():
    built = machine(starting=[0, 2])
    for same in (copy.copy(built), copy.deepcopy(built), pickle.loads(pickle.dumps(built))):
        assert same == built
        assert hash(same) == hash(built)


# ---------------------------------------------------------------------- equality, repr, digest


@given(
    name=st.sampled_from(["initial", "transition", "final"]),
    row=st.integers(0, 2),
    column=st.integers(0, 1),
    up=st.booleans(),
)
def test_any_weight_changes_equality_digest_hash_and_repr(name, row, column, up):
    built = machine()
    weights = getattr(built, name).clone()
    weights[row, column] = np.nextafter(weights[row, column].item(), np.inf if up else -np.inf)
    other = machine(**{name: weights})
    assert other != built
    assert other.digest != built.digest
    assert hash(other) != hash(built)
    assert repr(other) != repr(built)
    assert machine() == built
    assert repr(machine()) == repr(built)


@pytest.mark.parametrize(
    "change",
    [
        {"final": None},
        {"starting": [0, 1]},
        {"starting": [0, 1, 2]},
        {"transition": torch.ones(2, 3, 3, dtype=torch.float64)},
    ],
)
def test_any_setting_changes_equality_digest_and_repr(change):
    assert machine(**change) != machine()
    assert machine(**change).digest != machine().digest
    assert repr(machine(**change)) != repr(machine())


def test_dtype_and_what_a_type_is_count():
    assert machine().to(dtype=torch.float32) != machine()
    assert machine().to(dtype=torch.float32).digest != machine().digest
    typed = torch.ones(2, 3, 3)
    assert machine(transition=typed) != machine(transition=typed, transition_by="edge")
    assert machine(transition=typed).digest != machine(transition=typed, transition_by="edge").digest
    # Without types there is nothing for transition_by to say.
    assert machine() == machine(transition_by="edge")


def test_equal_automata_have_equal_hashes_even_with_negative_zero():
    plus, minus = Automaton([[0.0]], [[1.0]]), Automaton([[-0.0]], [[1.0]])
    assert plus == minus
    assert hash(plus) == hash(minus)


def test_other_things_are_not_equal():
    assert machine() != "machine"


def test_repr_says_how_a_named_machine_was_made():
    built = Automaton.random(states=4, damping=0.1, labels=3, initial_labels=(0, 2), seed=5)
    for part in ("states=4", "damping=0.1", "labels=3", "initial_labels=(0, 2)", "seed=5", "float64", built.digest):
        assert part in repr(built)


# ---------------------------------------------------------------------- other types


def test_to_changes_type_and_keeps_the_rest():
    built = Automaton.random(3, labels=2, seed=1)
    narrow = built.to(dtype=torch.float32)
    assert narrow.dtype == torch.float32
    assert narrow.made_by == built.made_by
    assert narrow == built.to(torch.float32)
    assert_close(narrow.transition.double(), built.transition, rtol=1e-6, atol=0)
    assert built.to("cpu") == built
    assert built.to(dtype=torch.complex128).to(dtype=torch.complex64).dtype == torch.complex64


@pytest.mark.parametrize("dtype", [torch.int64, torch.bfloat16, torch.bool])
def test_to_refuses_types_that_would_lose_the_weights(dtype):
    with pytest.raises(ValueError, match=f"float64 and cannot become {str(dtype).removeprefix('torch.')}"):
        machine().to(dtype=dtype)


def test_complex_weights_do_not_become_real():
    with pytest.raises(ValueError, match="complex128 and cannot become float64"):
        machine().to(dtype=torch.complex128).to(dtype=torch.float64)


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "built",
    [
        machine(),
        machine(starting=[2]),
        machine(final=None),
        machine(transition=torch.ones(4, 3, 3), transition_by="edge"),
        machine().to(dtype=torch.complex64),
        Automaton.random(5, seed=3, dtype=torch.float32),
    ],
    ids=repr,
)
def test_what_is_saved_is_loaded(built, tmp_path):
    path = tmp_path / "machine.gape"
    built.save(path)
    loaded = Automaton.load(path)
    assert loaded == built
    assert repr(loaded) == repr(built)
    assert os.listdir(tmp_path) == ["machine.gape"]
    # Readable without unpickling anything.
    with np.load(path, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)


def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    machine().save(tmp_path / "machine.npz")
    assert stat.S_IMODE((tmp_path / "machine.npz").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_save_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "machine.npz"
    machine().save(path)

    def half(file, **arrays):
        file.write(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="disk full"):
        machine(final=None).save(path)
    assert Automaton.load(path) == machine()
    assert os.listdir(tmp_path) == ["machine.npz"]


def test_a_pickle_is_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Bomb()))
    np.savez(tmp_path / "object.npz", initial=np.array([Bomb()], dtype=object), transition=np.eye(1))
    for name in ("pickle.npz", "object.npz"):
        with pytest.raises(ValueError, match=f"{name} is not a saved automaton"):
            Automaton.load(tmp_path / name)
    assert not (tmp_path / "exploded").exists()


def test_files_that_hold_something_else_are_refused_by_name(tmp_path):
    np.savez(tmp_path / "other.npz", initial=np.eye(2))
    with pytest.raises(ValueError, match=r"other.npz holds \['initial'\]; it lacks \['transition'\]"):
        Automaton.load(tmp_path / "other.npz")
    np.save(tmp_path / "array.npy", np.eye(2))
    (tmp_path / "empty.npz").touch()
    machine().save(tmp_path / "whole.npz")
    (tmp_path / "half.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:200])
    for name in ("array.npy", "empty.npz", "half.npz"):
        with pytest.raises(ValueError, match=f"{name} is not a saved automaton"):
            Automaton.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        Automaton.load(tmp_path / "missing.npz")


# ---------------------------------------------------------------------- the same seed


SEEDED = """
import sys, torch
from gape import Automaton
torch.manual_seed(int(sys.argv[1]))
machines = [
    Automaton.random(states=5, damping=0.3, seed=11),
    Automaton.random(states=96, labels=100, orthogonal_initial=True, seed=12),
    Automaton.random(states=6, labels=4, initial_labels=(1, 3), seed=-1),
    Automaton.stochastic(states=70, labels=2, softmax_initial=True, seed=2**63 - 1),
]
for machine in machines:
    print(machine.initial.numpy().tobytes().hex(), machine.transition.numpy().tobytes().hex())
"""


def test_the_same_seed_gives_the_same_bytes_in_every_process_whatever_its_threads():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SEEDED, threads],
            env={**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "PYTHONHASHSEED": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert len(outputs[0]) > 10_000
    assert outputs[0] == outputs[1]


@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_different_seeds_give_different_machines_and_leave_the_global_generator_alone(one, other):
    state = torch.get_rng_state()
    numpy_state = np.random.get_state()[1].tolist()  # noqa: NPY002
    same = Automaton.random(4, seed=one) == Automaton.random(4, seed=other)
    assert same == (one == other)
    assert torch.equal(torch.get_rng_state(), state)
    assert np.random.get_state()[1].tolist() == numpy_state  # noqa: NPY002


# ---------------------------------------------------------------------- named machines


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0, 2), st.integers(-(2**63), 2**63 - 1))
def test_random_is_an_orthogonal_mu_times_damping(states, labels, damping, seed):
    built = Automaton.random(states, damping, labels=labels, seed=seed)
    mu = built.transition.numpy()
    np.testing.assert_allclose(mu @ mu.T, damping**2 * np.eye(states), atol=1e-13)
    assert built.initial.shape == (states, labels)
    assert built.final is None
    assert built.starting is None


@given(st.integers(1, 30), st.integers(1, 30))
def test_orthogonal_initial_has_orthonormal_columns_or_rows(states, labels):
    alpha = Automaton.random(states, labels=labels, orthogonal_initial=True).initial.numpy()
    gram = alpha.T @ alpha if labels <= states else alpha @ alpha.T
    np.testing.assert_allclose(gram, np.eye(min(states, labels)), atol=1e-13)


def test_random_alpha_is_standard_normal():
    alpha = Automaton.random(100, labels=100, seed=0).initial
    assert abs(alpha.mean().item()) < 0.05
    assert abs(alpha.std().item() - 1) < 0.05


def test_orthogonal_matrices_are_haar_distributed():
    # For Haar measure on O(3): the mean is 0, every entry has variance 1/3, both determinants are equally likely,
    # and the expected square of the trace is 1.
    draws = torch.stack([Automaton.random(3, 1.0, seed=seed).transition for seed in range(4000)])
    assert draws.mean(0).abs().max() < 0.04
    assert (draws.square().mean(0) - 1 / 3).abs().max() < 0.03
    assert torch.linalg.det(draws).mean().abs() < 0.06
    assert abs(draws.diagonal(dim1=1, dim2=2).sum(1).square().mean() - 1) < 0.1


def test_initial_labels_leave_the_other_columns_of_alpha_zero():
    full = Automaton.random(4, labels=3, seed=9).initial
    kept = Automaton.random(4, labels=3, initial_labels=(0,), seed=9).initial
    assert torch.equal(kept[:, 0], full[:, 0])
    assert not kept[:, 1:].any()


@given(st.integers(1, 40), st.integers(1, 5))
def test_stochastic_is_the_row_softmax_of_an_orthogonal_mu(states, labels):
    built = Automaton.stochastic(states, labels=labels, softmax_initial=True, seed=4)
    exponentials = np.exp(Automaton.random(states, 1.0, labels=labels, seed=4).transition.numpy())
    expected = exponentials / exponentials.sum(1, keepdims=True)
    np.testing.assert_allclose(built.transition.numpy(), expected, rtol=1e-13)
    np.testing.assert_allclose(built.initial.numpy().sum(0), 1, rtol=1e-13)
    assert (built.initial > 0).all()
    plain = Automaton.stochastic(states, labels=labels, seed=4)
    assert torch.equal(plain.transition, built.transition)
    assert_close(torch.softmax(plain.initial, 0), built.initial)


@given(st.integers(1, 16), st.integers(1, 40))
def test_sinusoidal_machine_on_a_path_is_the_sinusoidal_encoding(pairs, length):
    states = 2 * pairs
    path = Graph.from_edges([(i, i + 1) for i in range(length - 1)], num_nodes=length)
    weights = gape.solve(Automaton.sinusoidal(states), path.with_labels([0] + [1] * (length - 1))).weights
    position, j = np.arange(length)[:, None], np.arange(pairs)[None, :]
    angle = position / 10000 ** (2 * j / states)
    expected = np.empty((length, states))
    expected[:, 0::2], expected[:, 1::2] = np.sin(angle), np.cos(angle)
    np.testing.assert_allclose(weights.numpy(), expected, atol=1e-5 if weights.dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("directed", [False, True])
def test_pagerank_machine_is_personalised_pagerank(directed):
    graph = nx.gnp_random_graph(9, 0.4, seed=2, directed=directed)
    assert min(d for _, d in (graph.out_degree if directed else graph.degree)) > 0
    machine = Automaton.pagerank(9, beta=0.2)
    weights = gape.solve(machine, as_graph(graph).with_labels(IndexLabels(9)), matrix="random_walk").weights.numpy()
    for node in graph:
        ppr = nx.pagerank(graph, alpha=0.8, personalization={node: 1}, tol=1e-14, max_iter=1000)
        np.testing.assert_allclose(weights[:, node], [ppr[v] for v in graph], atol=1e-6)


@given(st.integers(1, 6))
def test_shift_machine_counts_the_walks_of_every_length(length):
    graph = nx.gnp_random_graph(6, 0.5, seed=length, directed=True)
    weights = gape.solve(Automaton.shift(length), as_graph(graph)).weights.double().numpy()
    adjacency = nx.to_numpy_array(graph)
    expected = [np.ones(6) @ np.linalg.matrix_power(adjacency, t) for t in range(length + 1)]
    np.testing.assert_allclose(weights, np.stack(expected, 1), rtol=1e-6)


def test_katz_machine_is_katz_centrality():
    graph = nx.gnp_random_graph(8, 0.4, seed=3, directed=True)
    weights = gape.solve(Automaton.katz(0.1), as_graph(graph)).weights.double().numpy()
    katz = nx.katz_centrality_numpy(graph, alpha=0.1, beta=1.0, normalized=False)
    np.testing.assert_allclose(weights[:, 0], [katz[v] for v in graph], rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "quoted"),
    [
        (lambda: Automaton.random(0), "states must be at least 1, got 0"),
        (lambda: Automaton.random(2.5), "states must be a whole number, got 2.5"),
        (lambda: Automaton.random("3"), "states must be a whole number, got '3'"),
        (lambda: Automaton.random(3, float("nan")), "damping must be finite, got nan"),
        (lambda: Automaton.random(3, -1), "damping .* must be at least 0, got -1.0; -Q is as random .* so 1.0 with"),
        (lambda: Automaton.random(3, "much"), "damping must be a number, got 'much'"),
        (lambda: Automaton.random(3, labels=0), "labels must be at least 1, got 0"),
        (lambda: Automaton.random(3, labels=2, initial_labels=(2,)), r"initial_labels .* 0 … 1, got \(2,\)"),
        (lambda: Automaton.random(3, initial_labels=0), "initial_labels .* got 0"),
        (lambda: Automaton.random(3, seed=1.5), "seed must be a whole number, got 1.5"),
        (lambda: Automaton.random(3, seed=None), "seed must be a whole number, got None"),
        (lambda: Automaton.random(3, seed=2**64), f"seed must be at most .*, got {2**64}"),
        (lambda: Automaton.random(3, dtype=torch.float16), "got float16"),
        (lambda: Automaton.stochastic(0), "states must be at least 1, got 0"),
        (lambda: Automaton.stochastic(3, labels=-1), "labels must be at least 1, got -1"),
        (lambda: Automaton.sinusoidal(3), "must be even, got 3"),
        (lambda: Automaton.sinusoidal(0), "states must be at least 1, got 0"),
        (lambda: Automaton.pagerank(0), "nodes must be at least 1, got 0"),
        (lambda: Automaton.pagerank(3, 0.0), r"\(0, 1\], got 0.0"),
        (lambda: Automaton.pagerank(3, 1.5), r"\(0, 1\], got 1.5"),
        (lambda: Automaton.pagerank(3, float("nan")), "beta must be finite, got nan"),
        (lambda: Automaton.shift(0), "length must be at least 1, got 0"),
        (lambda: Automaton.katz(float("inf")), "beta must be finite, got inf"),
    ],
)
def test_bad_settings_of_named_machines_are_quoted(make, quoted):
    with pytest.raises(ValueError, match=quoted):
        make()


@pytest.mark.parametrize("make", [gape.Automaton.random, gape.Automaton.stochastic])
def test_named_machines_are_not_rounded_to_whole_numbers(make):
    assert make(4, dtype=torch.complex64).dtype == torch.complex64
    for dtype in (torch.int64, torch.float16):
        with pytest.raises(ValueError, match=f"dtype must be one of float32, .* got {str(dtype)[6:]}"):
            make(4, dtype=dtype)
