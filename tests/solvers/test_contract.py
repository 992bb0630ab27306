"""The contract of a solver: a new one needs no change of the library, and little lies between it and ``gape.solve``."""

import itertools
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.utils import from_networkx

import gape
from gape.solvers import Equation, Kronecker, Krylov, Result, Schur, Series, Solver, Spectral
from gape.solvers.certificate import UNKNOWN, YES, below_one, judge
from tests.solvers.oracle import kronecker_weights, typed_weights

SOURCE = Path(gape.__file__).parent
RING = gape.Graph.from_edges([(i, (i + 1) % 6) for i in range(6)], undirected=True, labels=[0, 1, 1, 0, 1, 0])
PATH = gape.Graph.from_edges([(i, i + 1) for i in range(4)], labels=[0, 1, 0, 1, 1])
DIRECTED = gape.as_graph(nx.gnp_random_graph(7, 0.4, seed=1, directed=True)).with_labels([0, 1, 0, 1, 1, 0, 1])


@dataclass(frozen=True)
class Richardson(Solver):
    """X ← F(X) + S, a fixed number of times."""

    steps: int = 200

    def solve(self, equation: Equation) -> Result:
        x = equation.rhs
        for _ in range(self.steps):
            x = equation.apply(x) + equation.rhs
        residual, radius = equation.residual(x), equation.radius_bound
        return Result(
            weights=x,
            residual=residual,
            spectral_radius=radius,
            separation=(1.0 - radius).clamp(min=0.0),
            unique=torch.where(below_one(radius), YES, UNKNOWN),
            status=judge(residual, torch.where(below_one(radius), YES, UNKNOWN), tolerance=1e-10, exhausted=False),
            steps=self.steps,
            radius_kind="bound",
        )


@dataclass(frozen=True)
class TypedRichardson(Richardson):
    typed: ClassVar[bool] = True


@dataclass(frozen=True)
class SymmetricOnly(Richardson):
    needs_symmetry: ClassVar[bool] = True


def test_a_new_solver_works_without_a_change_of_the_library():
    automaton = gape.Automaton.random(3, 0.2, labels=2)
    solution = gape.solve(automaton, [RING, PATH, DIRECTED], solver=Richardson())
    assert solution.solver == ["Richardson"] * 3
    assert solution.status == [gape.Status.RUN_SUM] * 3
    assert solution.radius_kind == "bound"
    expected = np.concatenate([kronecker_weights(automaton, graph) for graph in (RING, PATH, DIRECTED)])
    np.testing.assert_allclose(solution.weights, expected, rtol=1e-9, atol=1e-12)
    rhs = np.random.default_rng(0).normal(size=(6, 3))
    found, exact = (gape.solve(automaton, RING, rhs=rhs, solver=one).weights for one in (Richardson(), Kronecker()))
    torch.testing.assert_close(found, exact, rtol=1e-9, atol=1e-12)


def test_a_new_solver_has_gradients():
    alpha = torch.randn(2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    mu = (0.2 * torch.eye(2, dtype=torch.float64)).requires_grad_()
    weight = torch.full((DIRECTED.num_edges,), 0.7, dtype=torch.float64, requires_grad=True)

    def weights(alpha, mu, weight):
        graph = gape.Graph(DIRECTED.edge_index, 7, edge_weight=weight, labels=DIRECTED.labels)
        return gape.solve(gape.Automaton(alpha, mu), graph, solver=Richardson()).weights

    assert torch.autograd.gradcheck(weights, (alpha, mu, weight))


def test_a_new_solver_that_runs_out_of_steps_is_told():
    with pytest.raises(gape.SolveError, match="not converged"):
        gape.solve(gape.Automaton.katz(0.4), RING, solver=Richardson(steps=2))


def test_solvers_say_which_equations_they_support():
    typed = gape.Automaton(np.ones((2, 2)), 0.1 * np.stack([np.eye(2), np.ones((2, 2))]))
    with pytest.raises(ValueError, match=r"transitions by type need .* got Richardson\(steps=200\)"):
        gape.solve(typed, DIRECTED, solver=Richardson())
    found = gape.solve(typed, DIRECTED, solver=TypedRichardson()).weights
    np.testing.assert_allclose(found, typed_weights(typed, DIRECTED), rtol=1e-9)
    assert gape.solve(gape.Automaton.katz(0.1), RING, solver=SymmetricOnly()).ok
    with pytest.raises(ValueError, match="SymmetricOnly needs a symmetric walk matrix"):
        gape.solve(gape.Automaton.katz(0.1), DIRECTED, solver=SymmetricOnly())
    with pytest.raises(ValueError, match=r"a basis comes from .* got Richardson\(steps=200\)"):
        gape.prepare(RING, solver=Richardson())


def test_errors_list_the_solvers_that_say_they_support_it():
    typed = gape.Automaton(np.ones((2, 2)), 0.1 * np.stack([np.eye(2), np.ones((2, 2))]))
    with pytest.raises(ValueError, match="need Auto, FixedPoint or Kronecker, got Krylov"):
        gape.solve(typed, DIRECTED, solver=Krylov())
    with pytest.raises(ValueError, match="a basis comes from Krylov, Schur or Spectral, got Series"):
        gape.prepare(RING, solver=Series())
    with pytest.raises(ValueError, match="use Auto, FixedPoint, Kronecker, Krylov, Schur or Series, or add"):
        gape.solve(gape.Automaton.katz(0.1), DIRECTED, solver=Spectral())


def test_a_solver_that_groups_by_size_gets_graphs_of_similar_size():
    groups = []

    @dataclass(frozen=True)
    class Grouped(Richardson):
        groups_by_size: ClassVar[bool] = True

        def solve(self, equation):
            groups.append(equation.sizes.tolist())
            return super().solve(equation)

    sizes = [5, 100] * 20
    graphs = [gape.as_graph(nx.cycle_graph(n)) for n in sizes]
    solution = gape.solve(gape.Automaton.katz(0.1), graphs, solver=Grouped())
    assert sorted(map(set, groups), key=min) == [{5}, {100}]
    torch.testing.assert_close(solution.weights, torch.full_like(solution.weights, 1 / (1 - 0.2)))


def frames_between(first: str) -> int:
    """Frames of the library between the caller of this function and the innermost frame of that function."""
    frame, count = sys._getframe(2), 0
    while frame is not None:
        if Path(frame.f_code.co_filename).is_relative_to(SOURCE):
            if frame.f_code.co_name == first:
                return count
            count += 1
        frame = frame.f_back
    raise AssertionError(f"{first} did not lead here")


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(
    ("kinds", "given", "damping"),
    [
        ([Series], None, 0.01),
        ([Spectral, Krylov], None, 0.9),  # Krylov where kernels are compiled
        ([Spectral], Spectral(), 0.9),
        ([Krylov], Krylov(), 0.9),
        ([Schur], Schur(), 0.9),
        ([Richardson], Richardson(), 0.01),
    ],
)
@pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")
def test_at_most_four_frames_lie_between_solve_and_a_solver(kinds, given, damping, learned, monkeypatch):
    seen = []

    def spy(own):
        def counted(self, *arguments, **settings):
            seen.append(frames_between("solve"))
            return own(self, *arguments, **settings)

        return counted

    for kind, name in itertools.product(kinds, ("solve", "compiled")):
        monkeypatch.setattr(kind, name, spy(getattr(kind, name)))
    automaton = gape.Automaton.random(2, damping)
    if learned:
        automaton = gape.Automaton(automaton.initial, automaton.transition.clone().requires_grad_())
    gape.solve(automaton, [RING, RING], solver=given)
    assert seen
    assert max(seen) <= 4


CHAIN, ONE_WAY = nx.path_graph(3), nx.DiGraph([(0, 1), (1, 2), (2, 0), (0, 3)])
DATA = from_networkx(CHAIN)


@pytest.mark.parametrize("readout", ["node", "closed", "pair"])
@pytest.mark.parametrize(
    ("source", "graphs"),
    [
        (np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), 1),
        (CHAIN, 1),
        (ONE_WAY, 1),
        (nx.to_scipy_sparse_array(CHAIN), 1),
        (DATA, 1),
        ([DATA, DATA], 1),  # joined, then checked
        ([CHAIN, CHAIN], 2),
        ([ONE_WAY, CHAIN, DATA], 3),
    ],
    ids=["array", "networkx", "directed", "scipy", "pyg", "pyg list", "networkx list", "mixed list"],
)
def test_the_input_is_converted_and_checked_once(source, graphs, readout, monkeypatch):
    counts = Counter()

    def count(module, *names):
        for name in names:
            original = getattr(module, name)

            def counted(*arguments, name=name, original=original, **settings):
                counts[name] += 1
                return original(*arguments, **settings)

            monkeypatch.setattr(module, name, counted)

    convert, solve = sys.modules["gape.graph.convert"], sys.modules["gape.solvers.solve"]
    readers = ("_from_edge_array", "_from_networkx", "_from_scipy", "_from_pyg", "_joined")
    count(convert, *readers)
    count(sys.modules["gape.graph.graph"], "check_graph")
    count(solve, "check_fit")
    for run in (
        lambda: gape.solve(gape.Automaton.katz(0.1), source, readout=readout),
        lambda: gape.encode(source, "gape", readout=readout),
        lambda: gape.encode(source, "gape-paper", readout=readout, labels=3, labelling="degree"),
        lambda: gape.encodings.GAPE(readout=readout).solve(source),
    ):
        counts.clear()
        run()
        assert sum(counts[name] for name in readers) == counts["check_graph"] == graphs
        assert counts["check_fit"] <= 1  # a single small graph may need none


def test_settings_of_the_node_readout_are_refused_by_the_others():
    automaton = gape.Automaton.katz(0.1)
    for given in ({"solver": Series()}, {"rhs": np.ones((6, 1))}, {"basis": gape.prepare(RING)}):
        with pytest.raises(ValueError, match=f"{next(iter(given))} goes with readout='node', got readout='closed'"):
            gape.solve(automaton, RING, readout="closed", **given)
    with pytest.raises(ValueError, match="readout must be one of 'node', 'closed', 'pair', 'rooted', got 'edge'"):
        gape.solve(automaton, RING, readout="edge")
    with pytest.raises(ValueError, match="memory must be at least 0, got -1"):
        gape.solve(automaton, RING, readout="pair", memory=-1)


@pytest.mark.parametrize("readout", ["closed", "pair"])
def test_failed_readouts_are_returned_if_nothing_is_to_be_thrown(readout):
    edge = gape.Graph.from_edges([(0, 1)], undirected=True)
    solution = gape.solve(gape.Automaton.katz(1.0), edge, readout=readout, throw=False)
    assert solution.status == [gape.Status.SINGULAR]
