"""Promises at the edges: no runs at all, mates of another kind, weights at the ends of the number range."""

import random
from contextlib import nullcontext

import networkx as nx
import numpy as np
import pytest
import torch

import gape
from gape import native
from gape.graph.batching import group_by_size
from gape.solvers import FixedPoint, Kronecker, Krylov, Schur, Series, Spectral
from gape.solvers.equation import Equation
from tests.solvers.oracle import dense_adjacency, kronecker_system, kronecker_weights

pytestmark = pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")

TRIANGLE = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
SOLVERS = [None, Krylov(), Spectral(), Schur(), Kronecker(), FixedPoint()]


def path(nodes: int, *, undirected: bool = False, **others) -> gape.Graph:
    return gape.Graph.from_edges(
        [(i, i + 1) for i in range(nodes - 1)], num_nodes=nodes, undirected=undirected, **others
    )


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "pytorch"])
@pytest.mark.parametrize("solver", [None, Spectral(), Schur()], ids=str)
def test_graphs_without_nodes_beside_large_ones_are_solved(solver, compiled):
    # Solvers with dense matrices solve graphs of similar size together: those without nodes then are by themselves.
    draw = np.random.default_rng(0)
    large = gape.Graph.from_edges(draw.integers(0, 257, (771, 2)), num_nodes=257, undirected=True)
    empty = gape.Graph(torch.zeros(2, 0, dtype=torch.int64), 0)
    labels = torch.from_numpy(draw.integers(0, 9, 257))
    automaton = gape.Automaton.random(3, 0.9, labels=9)
    with nullcontext() if compiled else native.switched_off():
        alone = gape.solve(automaton, large.with_labels(labels), solver=solver)
        batch = gape.Graph.union([empty, large, empty]).with_labels(labels)
        solution = gape.solve(automaton, batch, solver=solver)
    torch.testing.assert_close(solution.weights, alone.weights, rtol=1e-10, atol=1e-10)
    assert solution.status == [gape.Status.RUN_SUM, alone.status[0], gape.Status.RUN_SUM]
    assert solution.residual[[0, 2]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("solver", [*SOLVERS, Series()], ids=str)
def test_an_automaton_without_runs_gives_zeros_whatever_its_transition(solver):
    for graph in (TRIANGLE.with_labels([0, 1, 0]), gape.Graph.union([TRIANGLE, TRIANGLE]).with_labels([0] * 6)):
        solution = gape.solve(gape.Automaton(np.zeros((3, 2)), 0.5 * np.eye(3)), graph, solver=solver)
        assert torch.equal(solution.weights, torch.zeros(graph.num_nodes, 3, dtype=torch.float64))
        assert set(solution.status) == {gape.Status.RUN_SUM}
        assert not solution.residual.any()


@pytest.mark.parametrize("solver", [*SOLVERS, Series()], ids=str)
def test_initial_weights_that_are_zero_have_gradients(solver):
    alpha = torch.zeros(2, 2, dtype=torch.float64)
    alpha[0, 1] = 1.0
    mu = 0.1 * torch.eye(2, dtype=torch.float64)
    graph = TRIANGLE.with_labels([0, 1, 1])

    def weights(alpha):
        return gape.solve(gape.Automaton(alpha, mu), graph, solver=solver).weights

    assert torch.autograd.gradcheck(weights, (alpha.requires_grad_(),))
    assert torch.autograd.gradcheck(weights, (torch.zeros_like(alpha).requires_grad_(),))


def test_weights_of_input_that_is_not_finite_are_nan_and_not_what_memory_held():
    alpha = torch.ones(2, 1, dtype=torch.float64, requires_grad=True)
    automaton = gape.Automaton(alpha, 0.1 * np.eye(2))
    with torch.no_grad():
        alpha[0] = torch.nan
        for dtype in (torch.float32, torch.float64):
            solution = gape.solve(automaton, [TRIANGLE] * 50, throw=False, dtype=dtype)
            assert set(solution.status) == {gape.Status.NON_FINITE_INPUT}
            assert bool(solution.weights.isnan().all())


@pytest.mark.parametrize("separation", [1e-6, 1e-8, 1e-9])
def test_nearly_singular_equations_are_solved_and_their_residual_is_not_hidden(separation):
    # The five-path has the eigenvalue √3; solvers agree that this is not singular yet, and say what rounding cost.
    graph = path(5, undirected=True, labels=[0, 1, 0, 0, 1])
    automaton = gape.Automaton([[1.0, 0.3]], [[(1 - separation) / np.sqrt(3)]])
    matrix, mu = dense_adjacency(graph), automaton.transition.numpy()
    source = automaton.initial.numpy()[:, graph.labels.numpy()].T
    for solver in SOLVERS:
        solution = gape.solve(automaton, graph, solver=solver)
        assert solution.status == [gape.Status.RUN_SUM], solver
        assert solution.unique[0] is not False
        x = solution.weights.numpy()
        actual = np.linalg.norm(x - matrix.T @ x @ mu - source) / np.linalg.norm(source)
        assert actual <= 3 * float(solution.residual) + 1e-14, solver


@pytest.mark.parametrize("solver", [None, Krylov(), Spectral(), Schur(), Kronecker()], ids=str)
@pytest.mark.parametrize("scale", [1.0, 1.0 - 1e-15, 1.0 + 1e-15])
def test_a_radius_of_one_is_no_run_sum_whichever_way_it_is_rounded(solver, scale):
    # The eigenvalue 1 of μ meets the eigenvalue 1 of A, and α excites only the other: solvable in many ways.
    automaton = gape.Automaton([[1.0], [-1.0]], scale * np.array([[0.95, 0.05], [0.05, 0.95]]))
    for graph, matrix in ((path(2, undirected=True), "adjacency"), (TRIANGLE, "random_walk")):
        solution = gape.solve(automaton, graph, solver=solver, matrix=matrix)
        assert solution.status == [gape.Status.SOLVED]
        assert solution.unique == [False]


@pytest.mark.parametrize("solver", [Krylov(), Series(), FixedPoint()], ids=str)
@pytest.mark.parametrize("mates", [0, 1])
def test_singular_equations_are_not_called_unique(solver, mates):
    # The mate's walks weigh 900 a step, which the part of μ that α excites takes back. Beside them the edge's own
    # walks vanish, but not its eigenvalue 1.
    edge = path(2, undirected=True, edge_weight=[1.0])
    heavy = path(2, undirected=True, edge_weight=[900.0])
    automaton = gape.Automaton([[0.0], [1.0]], np.diag([1.0, 1e-3]))
    assert np.linalg.matrix_rank(kronecker_system(automaton, dense_adjacency(edge))) < 4
    solution = gape.solve(automaton, [edge] + mates * [heavy], solver=solver)
    assert solution.ok
    assert solution.unique[0] is not True
    if solution.radius_kind == "bound":
        assert float(solution.spectral_radius[0]) >= 1.0 - 1e-9


@pytest.mark.parametrize("solver", [Krylov(), Series(), FixedPoint()], ids=str)
def test_a_sum_that_ends_does_not_make_a_singular_equation_unique(solver):
    # The eigenvalue 2 of the Laplacian meets the damping 0.5, but a constant label excites only its eigenvalue 0.
    solution = gape.solve(gape.Automaton.katz(0.5), path(2, undirected=True), solver=solver, matrix="laplacian")
    assert solution.ok
    assert torch.allclose(solution.weights, torch.ones(2, 1, dtype=torch.float64))
    assert solution.unique[0] is not True


@pytest.mark.parametrize(
    ("automaton", "graph", "matrix"),
    [
        (gape.Automaton.katz(5.0), path(4), "adjacency"),
        (gape.Automaton.shift(3), TRIANGLE, "adjacency"),
        (gape.Automaton.katz(0.4), path(2, undirected=True), "laplacian"),
        (gape.Automaton([[1.0], [0.0]], [[0.0, 9.0], [0.0, 0.3]]), path(4), "adjacency"),
        (gape.Automaton([[0.0], [0.0]], [[0.3, 9.0], [0.0, 0.3]]), TRIANGLE, "adjacency"),
    ],
    ids=["no cycle", "nilpotent", "contraction", "no cycle and cyclic states", "radius below one"],
)
def test_a_sum_that_ends_is_unique_where_every_sum_converges(automaton, graph, matrix):
    solution = gape.solve(automaton, graph, solver=Series(), matrix=matrix)
    assert solution.status == [gape.Status.RUN_SUM]
    assert solution.unique == [True]


def test_weights_too_large_to_solve_anything_are_not_called_a_solution():
    loop = gape.Graph.from_edges([(0, 0)], labels=[0])
    for transition in (np.eye(2), np.stack([np.eye(2)] * 2)):
        automaton = gape.Automaton(np.ones((2, 2)), transition)
        solution = gape.solve(automaton, loop, solver=FixedPoint(), throw=False)
        assert solution.status == [gape.Status.SINGULAR]
        assert not solution.weights.any()


def test_defective_matrices_with_large_weights_are_not_called_singular():
    # Loops on a path and a Jordan block: every eigenvalue product is 0.9, the weights grow to 1e10.
    graph = gape.Graph.from_edges([(i, i) for i in range(8)] + [(i, i + 1) for i in range(7)])
    automaton = gape.Automaton(np.ones((3, 1)), 0.9 * np.eye(3) + np.diag(np.ones(2), 1))
    expected = kronecker_weights(automaton, graph)
    for solver in (None, Krylov(), Schur(), Kronecker(), FixedPoint(), Series()):
        solution = gape.solve(automaton, graph, solver=solver)
        assert solution.status == [gape.Status.RUN_SUM], solver
        np.testing.assert_allclose(solution.weights, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_too_few_steps_are_not_called_singular_however_small_the_weights():
    graph = gape.as_graph(nx.gnp_random_graph(40, 0.3, seed=3))
    for weight in (1e-20, 1.0, 1e20):
        scaled = gape.Graph(graph.edge_index, 40, edge_weight=weight * torch.ones(graph.num_edges, dtype=torch.float64))
        automaton = gape.Automaton(np.ones((3, 1)), gape.Automaton.random(3, 0.3).transition / weight)
        solution = gape.solve(automaton, scaled, solver=Krylov(max_steps=4), throw=False)
        assert solution.status == [gape.Status.NOT_CONVERGED]


@pytest.mark.parametrize("solver", [None, Krylov(), Schur(), Kronecker(), FixedPoint(), Series()], ids=str)
def test_overflow_is_told_in_a_batch_too(solver):
    big = gape.Graph.from_edges([(0, 1), (1, 2)], edge_weight=[1e200, 1e200])
    solution = gape.solve(gape.Automaton.katz(0.3), gape.Graph.union([big, TRIANGLE]), solver=solver, throw=False)
    assert solution.status == [gape.Status.OVERFLOW, gape.Status.RUN_SUM]
    np.testing.assert_allclose(solution.weights[3:], 2.5)


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 1e39), (torch.float16, 1e5)])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("solver", [None, Krylov(), Schur(), Kronecker(), FixedPoint(), Series()], ids=str)
def test_weights_that_only_rounding_loses_are_an_overflow(solver, learned, dtype, size):
    initial = torch.tensor([[1.0, size]], dtype=torch.float64, requires_grad=learned)
    graphs = [path(3).with_labels([0, 0, 0]), path(3).with_labels([1, 0, 0])]
    solution = gape.solve(
        gape.Automaton(initial, [[0.1]]), graphs, solver=solver, dtype=dtype, throw=False, on_singular="least_squares"
    )
    assert solution.weights.dtype == dtype
    assert solution.status == [gape.Status.RUN_SUM, gape.Status.OVERFLOW]


@pytest.mark.parametrize("gap", [0.0, 1e-13])
@pytest.mark.parametrize("solver", [*SOLVERS, Series()], ids=str)
def test_an_equation_that_says_nothing_is_singular_and_zero_comes_nearest(solver, gap):
    # One node with a loop and the transition 1: x = x + 1.
    loop = gape.Graph.from_edges([(0, 0)])
    solution = gape.solve(gape.Automaton.katz(1.0 - gap), loop, solver=solver, throw=False)
    assert not solution.status[0].ok
    assert solution.unique[0] is not True
    if not isinstance(solver, Series):
        assert solution.status == [gape.Status.SINGULAR]
        assert solution.weights.tolist() == [[0.0]]
        assert float(solution.residual) == pytest.approx(1.0)


@pytest.mark.parametrize("damping", [1.0, 1.5])
@pytest.mark.parametrize("nodes", [20, 300])
def test_an_acyclic_graph_keeps_its_finite_sum_beside_graphs_with_cycles(nodes, damping):
    automaton = gape.Automaton.random(states=4, damping=damping)
    alone = gape.solve(automaton, path(nodes))
    together = gape.solve(automaton, [TRIANGLE, path(nodes), TRIANGLE, path(3)])
    assert [s.name for s in together.status] == ["ALGEBRAIC", "RUN_SUM", "ALGEBRAIC", "RUN_SUM"]
    assert torch.equal(together.weights[3 : 3 + nodes], alone.weights)
    other = "Spectral" if native.library() is None else "Krylov"
    assert together.solver == [other, "Series", other, "Series"]
    assert torch.equal(together.spectral_radius[[1, 3]], torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize("solver", [None, Series(), Series(max_steps=5)], ids=str)
def test_sums_on_acyclic_graphs_are_finite_however_long_the_paths(solver):
    # Node i of a path ends i + 1 runs, one from every node before it.
    long = path(12_000)
    solution = gape.solve(gape.Automaton.katz(1.0), long, solver=solver)
    assert solution.status == [gape.Status.RUN_SUM]
    assert torch.equal(solution.weights.flatten(), torch.arange(1.0, 12_001.0, dtype=torch.float64))


def test_graphs_of_both_kinds_in_one_batch_have_gradients():
    batch = gape.Graph.union([TRIANGLE, path(4), TRIANGLE, path(3)])
    alpha = torch.randn(2, 1, dtype=torch.float64, requires_grad=True)
    mu = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    tau = torch.randn(2, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda *tensors: gape.solve(gape.Automaton(*tensors), batch).weights, (alpha, mu, tau)
    )


@pytest.mark.parametrize("undirected", [True, False])
def test_auto_takes_the_dense_road_where_krylov_needs_too_many_steps(undirected):
    graph = path(600, undirected=undirected)
    if not undirected:
        graph = gape.Graph.from_edges([*graph.edge_index.T.tolist(), (599, 0)], edge_weight=[1.0] * 599 + [0.5])
    automaton = gape.Automaton.random(states=4, damping=0.99 if undirected else 1.1)
    solution = gape.solve(automaton, [TRIANGLE, graph])
    assert solution.ok
    assert solution.solver == ["Krylov", "Spectral" if undirected else "Schur"]
    assert float(solution.residual.max()) <= 1e-9


@pytest.mark.parametrize("damping", [0.2, 0.6, 1.5])
def test_the_dense_road_says_all_that_it_says_alone(damping):
    graphs = [gape.as_graph(nx.random_geometric_graph(90 + i, 0.2, seed=i)) for i in range(3)]
    automaton = gape.Automaton.random(states=5, damping=damping)
    auto, alone = (gape.solve(automaton, graphs, solver=solver) for solver in (None, Spectral()))
    torch.testing.assert_close(auto.weights, alone.weights, rtol=1e-8, atol=1e-8 * float(alone.weights.abs().max()))
    if damping > 0.2:
        assert auto.solver == alone.solver == ["Spectral"] * 3
        for name in ("status", "unique", "radius_kind"):
            assert getattr(auto, name) == getattr(alone, name)
        for name in ("residual", "spectral_radius", "separation"):
            assert torch.equal(getattr(auto, name), getattr(alone, name))


def test_krylov_gives_up_early_only_if_asked_to_and_nothing_was_gained():
    graph = gape.as_graph(nx.random_geometric_graph(120, 0.2, seed=0))
    inside = gape.Automaton.katz(1.0)  # a pole amid the eigenvalues of A
    assert gape.solve(inside, graph, solver=Krylov(give_up=24), throw=False).status == [gape.Status.NOT_CONVERGED]
    assert gape.solve(inside, graph, solver=Krylov(give_up=24), throw=False).steps == 24
    assert gape.solve(inside, graph, solver=Krylov()).ok
    assert gape.solve(gape.Automaton.katz(0.05), graph, solver=Krylov(give_up=12)).ok
    with pytest.raises(ValueError, match="give_up, unless None for never, must be at least 1, got 0"):
        Krylov(give_up=0)


@pytest.mark.parametrize("size", [1e-300, 1e-165, 1e160, 1e300])
def test_sources_of_any_size_are_solved_or_refused(size):
    ring = gape.Graph.from_edges([(i, (i + 1) % 60) for i in range(60)], undirected=True)
    batch = gape.Graph.union([TRIANGLE, ring])
    automaton = gape.Automaton.random(states=2, damping=0.02)
    plain = gape.solve(automaton, batch).weights
    small = gape.Automaton(automaton.initial * size, automaton.transition)
    source = automaton.initial.T.expand(63, -1) * size
    for solution in (gape.solve(small, batch, throw=False), gape.solve(automaton, batch, rhs=source, throw=False)):
        if solution.ok:
            torch.testing.assert_close(solution.weights / size, plain, rtol=1e-9, atol=0.0)
        else:
            assert size > 1e100


def test_gradients_of_a_float32_automaton_reach_graphs_of_both_kinds():
    mu = (0.3 * torch.eye(2)).requires_grad_()
    batch = gape.Graph.union([path(3), gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)])])
    gape.solve(gape.Automaton(torch.ones(2, 1), mu), batch).weights.sum().backward()
    exact = gape.solve(gape.Automaton(np.ones((2, 1)), 0.3 * np.eye(2)), batch).weights
    assert gape.solve(gape.Automaton(torch.ones(2, 1), mu), batch).weights.dtype is torch.float32
    step = 1e-6
    moved = gape.solve(gape.Automaton(np.ones((2, 1)), (0.3 + step) * np.eye(2)), batch).weights
    assert float(mu.grad.trace()) == pytest.approx(float((moved - exact).sum()) / step, rel=1e-4)


def test_a_diverging_mate_does_not_stop_a_series():
    complete = gape.as_graph(nx.complete_graph(100))
    slow, lonely = path(2, undirected=True), gape.Graph(torch.zeros(2, 0, dtype=torch.int64), 1)
    automaton = gape.Automaton.katz(0.99)
    solution = gape.solve(automaton, [slow, complete, lonely], solver=Series(), throw=False)
    assert [s.name for s in solution.status] == ["RUN_SUM", "NOT_CONVERGED", "RUN_SUM"]
    np.testing.assert_allclose(solution.weights[:2], 100.0)
    assert float(solution.weights[-1]) == 1.0


@pytest.mark.parametrize("by", ["node", "edge"])
def test_typed_transitions_on_a_long_path_are_summed_exactly(by):
    nodes = 2000
    graph = path(nodes, labels=[i % 2 for i in range(nodes)], edge_type=[i % 2 for i in range(nodes - 1)])
    turn = gape.Automaton.random(states=3, damping=1.05, seed=1).transition
    automaton = gape.Automaton(np.ones((3, 2)), torch.stack([turn, turn.T]), transition_by=by)
    solution = gape.solve(automaton, graph)
    assert solution.status == [gape.Status.RUN_SUM]
    assert float(solution.residual) == 0.0
    expected = np.zeros((nodes, 3))
    row = np.zeros(3)
    for i in range(nodes):
        row = (row @ (turn if i % 2 else turn.T).numpy() if i else row) + 1.0
        expected[i] = row
    np.testing.assert_allclose(solution.weights, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("matrix", ["adjacency", "random_walk"])
def test_least_squares_weights_are_the_same_with_and_without_gradients(solver, matrix):
    ring = gape.Graph.from_edges([(i, (i + 1) % 6) for i in range(6)] + [(0, 6)], undirected=True)
    ring = ring.with_labels([0, 1, 1, 0, 1, 0, 1])
    plain = gape.Automaton.stochastic(states=3, labels=2)
    followed = gape.Automaton(plain.initial.clone().requires_grad_(), plain.transition)
    options = {"solver": solver, "matrix": matrix, "on_singular": "least_squares"}
    expected = gape.solve(plain, ring, **options)
    solution = gape.solve(followed, ring, **options)
    assert solution.status == expected.status
    np.testing.assert_allclose(solution.weights.detach(), expected.weights, atol=1e-9)
    # Linear in α: the gradient is the transposed pseudo-inverse.
    dense = ring.walk(matrix).dense()[0].numpy()
    inverse = np.linalg.pinv(np.eye(21) - np.kron(dense.T, plain.transition.numpy().T), rcond=1e-10)
    probe = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (gradient,) = torch.autograd.grad((solution.weights * probe).sum(), followed.initial)
    pulled = (inverse.T @ probe.numpy().reshape(-1)).reshape(7, 3)
    np.testing.assert_allclose(gradient, (np.eye(2)[ring.labels.numpy()].T @ pulled).T, atol=1e-8)


@pytest.mark.parametrize("matrix", ["adjacency", "random_walk", "random_walk_in", "symmetric"])
@pytest.mark.parametrize("labels", [1, 3, 12])
def test_singular_undirected_graphs_are_settled_together_and_get_the_pseudo_inverse(matrix, labels, monkeypatch):
    # Connected or not (an eigenvalue as often as there are components), with isolated nodes, regular mates between.
    monkeypatch.setattr("gape.solvers.singular.Kronecker", None)
    rng = np.random.default_rng(labels)
    graphs = [gape.as_graph(nx.gnp_random_graph(int(n), 0.3, seed=int(n))) for n in rng.integers(2, 12, 12)]
    graphs = [g.with_labels(rng.integers(0, labels, g.num_nodes)) for g in graphs]
    automaton = gape.Automaton.stochastic(states=3, labels=labels, seed=1)
    solution = gape.solve(automaton, graphs, matrix=matrix, on_singular="least_squares")
    assert gape.Status.LEAST_SQUARES in solution.status
    first = 0
    for graph, status, residual in zip(graphs, solution.status, solution.residual.tolist(), strict=True):
        dense = graph.walk(matrix).dense()[0].numpy()
        system = np.eye(3 * len(dense)) - np.kron(dense.T, automaton.transition.numpy().T)
        source = automaton.initial.numpy()[:, graph.labels.numpy() if labels > 1 else [0] * len(dense)].T.reshape(-1)
        shortest = np.linalg.pinv(system, rcond=1e-11) @ source
        gap = np.linalg.norm(system @ shortest - source) / np.linalg.norm(source)
        weights = solution.weights[first : first + len(dense)].reshape(-1)
        np.testing.assert_allclose(weights, shortest, atol=1e-8 * max(1.0, np.abs(shortest).max()))
        assert (status is gape.Status.LEAST_SQUARES) == (gap > 1e-8)
        assert residual == pytest.approx(gap, abs=1e-10)
        first += len(dense)


@pytest.mark.parametrize("damping", [0.02, 0.9])
def test_inference_mode_gives_the_same_weights_and_leaves_the_graph_fit_for_training(damping, monkeypatch):
    monkeypatch.setattr("gape.graph.batching.MAX_PART_NODES", 50)
    automaton = gape.Automaton.random(states=3, damping=damping)
    expected = gape.solve(automaton, [TRIANGLE] * 60, matrix="random_walk").weights
    graph = gape.Graph.union([gape.Graph(TRIANGLE.edge_index, 3)] * 60)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with torch.inference_mode():
            assert torch.equal(gape.solve(automaton, graph, matrix="random_walk").weights, expected)
    finally:
        torch.set_num_threads(before)
    followed = gape.Automaton(automaton.initial, automaton.transition.clone().requires_grad_())
    gape.solve(followed, graph, matrix="random_walk").weights.sum().backward()
    assert bool(torch.isfinite(followed.transition.grad).all())


def test_a_basis_made_in_inference_mode_is_fit_for_training():
    with torch.inference_mode():
        basis = gape.prepare(gape.Graph(TRIANGLE.edge_index, 3))
    automaton = gape.Automaton(np.ones((1, 1)), torch.full((1, 1), 0.25, dtype=torch.float64, requires_grad=True))
    gape.solve(automaton, TRIANGLE, basis=basis).weights.sum().backward()
    # The sum is 3 / (1 - 2μ).
    assert float(automaton.transition.grad) == pytest.approx(6 / (1 - 0.5) ** 2)


def caterpillar(spine: int, leaves: int) -> gape.Graph:
    edges = [(i, i + 1) for i in range(spine - 1)] + [(i % spine, spine + i) for i in range(leaves)]
    return gape.Graph.from_edges(edges, undirected=True)


TREES = [caterpillar(30, 300), caterpillar(60, 100), gape.as_graph(nx.random_labeled_tree(150, seed=3))]


@pytest.mark.parametrize("tree", TREES, ids=str)
@pytest.mark.parametrize("matrix", ["adjacency", "random_walk"])
def test_krylov_vectors_of_trees_stay_orthogonal(tree, matrix):
    one = torch.ones(1, 1, dtype=torch.float64)
    basis = Krylov(max_steps=60).projection(Equation(tree.walk(matrix), initial=one, transition=0 * one))
    vectors = basis.vectors[0, 0]
    gram = vectors @ vectors.T
    lengths = gram.diagonal()
    assert torch.allclose(lengths[lengths > 0.5], torch.ones((), dtype=torch.float64), atol=1e-12)
    assert float((gram - torch.diag(lengths)).abs().max()) < 1e-12


def test_krylov_on_trees_is_as_exact_as_it_says():
    tree = caterpillar(30, 300)
    machine = gape.Automaton.random(4, 0.2, seed=0)
    solution = gape.solve(machine, tree, solver=Krylov())
    matrix, mu = dense_adjacency(tree), machine.transition.numpy()
    weights = solution.weights.numpy()
    residual = weights - machine.initial.numpy().T - matrix.T @ weights @ mu
    assert np.abs(residual).max() <= 1e-12 * np.abs(weights).max()
    np.testing.assert_allclose(weights, kronecker_weights(machine, tree, matrix), rtol=1e-10)


@pytest.mark.parametrize("undirected", [True, False])
def test_graphs_of_many_sizes_are_padded_in_groups_and_come_back_in_their_order(undirected):
    rng = random.Random(0)
    sizes = [rng.randint(1, 40) for _ in range(1000)]
    groups = group_by_size(torch.tensor(sizes))
    assert len(groups) > 1
    assert sorted(torch.cat(groups).tolist()) == list(range(1000))
    graphs = [gape.as_graph(nx.gnp_random_graph(n, 0.3, seed=i, directed=not undirected)) for i, n in enumerate(sizes)]
    solver = Spectral() if undirected else Schur()
    automaton = gape.Automaton.random(states=3, damping=0.3)
    together = gape.solve(automaton, graphs, solver=solver)
    assert together.solver == [type(solver).__name__] * 1000
    assert float(together.residual.max()) <= 1e-10
    rows = together.weights.split(sizes)
    for i in range(0, 1000, 50):
        alone = gape.solve(automaton, graphs[i], solver=Kronecker())
        torch.testing.assert_close(rows[i], alone.weights, rtol=1e-8, atol=1e-8)
        assert together.status[i] == alone.status[0]
        assert float(together.spectral_radius[i]) == pytest.approx(float(alone.spectral_radius), abs=1e-6)
