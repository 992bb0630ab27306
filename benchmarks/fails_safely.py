"""Count wrong answers that are not reported, over drawn equations that are hard to solve, against exact arithmetic.

    python benchmarks/fails_safely.py [--equations 10000] [--seed 0] [--show 10]

Needs python-flint (`pip install 'gape[dev]'`). Every equation is drawn: a directed, weighted, labelled or typed graph
of up to six nodes and an automaton of up to four states, orthogonal, nilpotent, defective (rotated Jordan blocks),
triangular, of condition up to 1e15; scaled at random, to the boundary of convergence, to an exactly or nearly singular
equation, or by 1e±150. Auto and one other solver, or a closed or pair readout, solve it. Their floating-point input is
then solved in rational arithmetic, without any rounding. An answer is wrong and not reported if its status is ok and

* its exact residual exceeds ten times the one reported, and 1e-9, or the one reported exceeds 1e-5 without an error
  bound below that;
* the solution is said to be unique and its relative error exceeds 1e-4, or the error bound reported;
* it is said to be unique and is not, or not to be unique and is (smallest singular value of I - F above 1e-9);
* it is called the sum over runs, and the exact ρ is 1 or more; or algebraic only, and ρ is below 1;
* the radius reported as a bound is below the exact one, or that reported as exact is off by more than 1e-6.

Failures that are reported are safe; how many of them a correct solver would not have reported is printed, too.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from flint import arb, ctx, fmpq, fmpq_mat

import gape
from gape.solvers import FixedPoint, Kronecker, Krylov, Schur, Series, Solution, Spectral, Status

SOLVERS = (Series(max_steps=2000), Krylov(), Spectral(), Schur(), Kronecker(), FixedPoint(max_steps=500))
MAX_RESIDUAL, MAX_ERROR, NEARLY_SINGULAR = 1e-5, 1e-4, 1e-9


# ---------------------------------------------------------------------- drawing


def draw_transition(rng: np.random.Generator, k: int) -> tuple[str, np.ndarray]:
    """A transition matrix of a kind that is named."""
    turn = np.linalg.qr(rng.normal(size=(k, k)))[0]
    ones = np.diag(np.ones(k - 1), 1)
    grown = np.triu(rng.normal(size=(k, k)), 1) * 10.0 ** rng.uniform(0, 8)
    kinds: dict[str, Callable[[], np.ndarray]] = {
        "orthogonal": lambda: turn,
        "gaussian": lambda: rng.normal(size=(k, k)),
        "stochastic": lambda: rng.dirichlet(np.ones(k), size=k),
        "nilpotent": lambda: grown,
        "rotated nilpotent": lambda: turn @ grown @ turn.T,
        "jordan": lambda: np.eye(k) + ones * 10.0 ** rng.uniform(-3, 6),
        "rotated jordan": lambda: turn @ (np.eye(k) + ones * 10.0 ** rng.uniform(-3, 6)) @ turn.T,
        "triangular": lambda: np.triu(rng.normal(size=(k, k))) + grown,
        "skewed": lambda: _skewed(rng, turn),
        "integer": lambda: rng.integers(-2, 3, (k, k)).astype(float),
        "permutation": lambda: np.eye(k)[rng.permutation(k)],
        "rank one": lambda: np.outer(rng.normal(size=k), rng.normal(size=k)),
        "unbalanced": lambda: rng.normal(size=(k, k)) * 10.0 ** rng.uniform(-8, 8, (k, k)),
    }
    name = str(rng.choice(list(kinds)))
    return name, kinds[name]()


def _skewed(rng: np.random.Generator, turn: np.ndarray) -> np.ndarray:
    """Eigenvalues of size 1 with eigenvectors of condition up to 1e15."""
    k = len(turn)
    basis = turn * 10.0 ** -np.linspace(0, rng.uniform(0, 15), k) @ np.linalg.qr(rng.normal(size=(k, k)))[0]
    skewed: np.ndarray = basis @ np.diag(rng.choice([-1.0, 1.0, 0.5], k)) @ np.linalg.pinv(basis, rcond=0)
    return skewed


def draw_graph(rng: np.random.Generator, n: int) -> tuple[str, list[tuple[int, int]], np.ndarray | None]:
    """Edges and weights of a graph of a kind that is named."""
    every = [(u, v) for u in range(n) for v in range(n)]
    some = [edge for edge in every if rng.random() < 0.45]
    pairs = [(u, v) for u, v in every if u < v and rng.random() < 0.6]
    ring = [(u, (u + 1) % n) for u in range(n)]
    half = n // 2
    edges = {
        "directed": some,
        "undirected": [e for u, v in pairs for e in ((u, v), (v, u))],
        "acyclic": pairs,
        "ring": ring,
        "undirected ring": [e for u, v in ring for e in ((u, v), (v, u))],
        "complete": every,
        "two parts": [e for e in some if (e[0] < half) == (e[1] < half)],
        "one way": [e for e in some if (e[0] < half) >= (e[1] < half)],
    }
    name = str(rng.choice(list(edges)))
    chosen = edges[name]
    weight = {
        "unweighted": None,
        "weighted": rng.uniform(0.1, 2, len(chosen)),
        "signed": rng.normal(size=len(chosen)),
        "integer": rng.integers(1, 4, len(chosen)).astype(float),
        "outliers": 10.0 ** rng.uniform(-7, 7, len(chosen)),
    }
    how = str(rng.choice(list(weight)))
    values = weight[how]
    if values is not None and "undirected" in name:
        values = np.repeat(values[: len(chosen) // 2], 2)
    return f"{name} {how}", chosen, values


class Case(NamedTuple):
    """One drawn equation."""

    name: str
    automaton: gape.Automaton
    graph: gape.Graph
    matrix: str


def draw(seed: int) -> Case:
    """Draw the equation of that seed."""
    rng = np.random.default_rng(seed)
    k, n, types = int(rng.integers(1, 5)), int(rng.integers(1, 7)), 1
    kind, mu = draw_transition(rng, k)
    shape, edges, weights = draw_graph(rng, n)
    labels = int(rng.choice([1, 1, 2]))
    if rng.random() < 0.15:
        types, labels = 2, 2
        mu = np.stack([mu, draw_transition(rng, k)[1]])
    matrix = (
        str(rng.choice(["adjacency"] * 4 + ["random_walk"])) if weights is None or (weights > 0).all() else "adjacency"
    )
    graph = gape.Graph.from_edges(
        edges, num_nodes=n, edge_weight=weights, labels=rng.integers(0, labels, n) if labels > 1 else None
    )
    alpha = rng.choice([rng.normal(size=(k, labels)), np.ones((k, labels)), np.eye(k, labels)])
    factor, scaling = _scaling(rng, mu, graph.walk(matrix).dense()[0].numpy())
    mu = mu * factor
    if rng.random() < 0.1:
        alpha, scaling = alpha * 10.0 ** rng.choice([-150, 150]), scaling + ", α scaled"
    # A nearly singular equation of tiny weights may have transitions that cannot be scaled up by 1e150.
    sizes = [size for size in (1e-150, 1e150) if np.abs(mu).max(initial=0.0) < 1e300 * size]
    if rng.random() < 0.1 and matrix == "adjacency" and len(edges):
        size = float(rng.choice(sizes))
        graph = gape.Graph.from_edges(
            edges,
            num_nodes=n,
            edge_weight=(np.ones(len(edges)) if weights is None else weights) * size,
            labels=graph.labels,
        )
        mu, scaling = mu / size, scaling + f", edges × {size:g}"
    machine = gape.Automaton(
        torch.from_numpy(alpha), torch.from_numpy(mu), **({"transition_by": "node"} if types > 1 else {})
    )
    return Case(f"{kind}, {shape}, {scaling}{', typed' if types > 1 else ''}", machine, graph, matrix)


def _scaling(rng: np.random.Generator, mu: np.ndarray, a: np.ndarray) -> tuple[float, str]:
    """A factor for μ: at random, to the boundary of convergence, or to an equation that is singular or nearly so."""
    operator = mu if mu.ndim == 3 else mu[None]
    values = np.concatenate([np.outer(np.linalg.eigvals(a), np.linalg.eigvals(m)).ravel() for m in operator])
    radius = float(np.abs(values).max())
    off = float(rng.choice([0.0, *(sign * 10.0**-e for e in (15, 12, 10, 8, 6, 4, 2) for sign in (-1, 1))]))
    how = str(rng.choice(["random", "boundary", "singular", "tiny", "huge"], p=[0.3, 0.3, 0.3, 0.05, 0.05]))
    real = [v.real for v in values if abs(v.imag) <= 1e-9 * abs(v) and abs(v) > 1e-9 * radius]
    if how == "boundary" and radius > 1e-100:
        return (1.0 + off) / radius, f"boundary {off:+.0e}"
    if how == "singular" and real:
        return (1.0 + off) / float(rng.choice(real)), f"singular {off:+.0e}"
    if how in ("tiny", "huge"):
        return 10.0 ** (-150 if how == "tiny" else 150), how
    return float(10.0 ** rng.uniform(-2, 0.5)) / (radius if radius > 1e-100 and rng.random() < 0.5 else 1.0), "random"


# ---------------------------------------------------------------------- the exact answer


def rational(array: np.ndarray) -> fmpq_mat:
    """The same numbers, exactly."""
    array = np.atleast_2d(array)
    return fmpq_mat(*array.shape, [fmpq(*float(x).as_integer_ratio()) for x in array.ravel()])


def norm(matrix: fmpq_mat) -> arb:
    """The Frobenius norm, to 60 digits."""
    total = arb(0)
    for x in matrix.entries():
        total += arb(x) * arb(x)
    return total.sqrt()


def radius(matrix: fmpq_mat) -> arb:
    """ρ, from the roots of the characteristic polynomial: multiplicities are exact, roots to 60 digits."""
    largest = arb(0)
    for root, _ in matrix.charpoly().numer().complex_roots():
        size = abs(root)
        largest = size if size > largest or not size < largest else largest
    return largest


class Exact:
    """The equation of a case in rational arithmetic.

    Attributes:
        operator: F on the rows of X laid end to end.
        system: I - F.
        inverse: its inverse, ``None`` if it is singular.
        radius: ρ(μ)ρ(A), or the radius of F for typed transitions.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        walk, mu = case.graph.walk(case.matrix).dense()[0].numpy(), case.automaton.transition.numpy()
        n, k = len(walk), mu.shape[-1]
        labels = np.zeros(n, dtype=int) if case.graph.labels is None else case.graph.labels.numpy()
        self.labels = labels if case.automaton.labels > 1 else np.zeros(n, dtype=int)
        a, ms = rational(walk), [rational(m) for m in (mu if mu.ndim == 3 else mu[None])]
        types = labels if mu.ndim == 3 else np.zeros(n, dtype=int)
        self.operator = fmpq_mat(
            n * k,
            n * k,
            [a[u, v] * ms[types[u]][p, q] for v in range(n) for q in range(k) for u in range(n) for p in range(k)],
        )
        eye = rational(np.eye(n * k))
        self.system = eye - self.operator
        self.radius = radius(self.operator) if mu.ndim == 3 else radius(a) * radius(ms[0])
        try:
            self.inverse: fmpq_mat | None = self.system.inv()
        except ZeroDivisionError:
            self.inverse = None

    def rhs(self, readout: str) -> fmpq_mat:
        """Right-hand sides, one column per source node of a closed or pair readout."""
        rows = self.case.automaton.initial.numpy().T[self.labels]
        if readout == "node":
            return rational(rows.reshape(-1, 1))
        n, k = rows.shape
        columns = np.zeros((n, k, n))
        columns[np.arange(n), :, np.arange(n)] = rows
        return rational(columns.reshape(n * k, n))


# ---------------------------------------------------------------------- the comparison


def complaints(exact: Exact, solution: Solution, readout: str) -> list[str]:
    """What the solution says that is not so."""
    status, said = solution.status[0], []
    bound = float(solution.error_bound[0])
    reported, unique, rho = float(solution.residual[0]), solution.unique[0], float(solution.spectral_radius[0])
    rhs = exact.rhs(readout)
    zero = norm(rhs) == 0
    if not zero:
        if status is Status.RUN_SUM and not exact.radius < 1:
            said.append(f"run sum, ρ = {exact.radius.str(20)}")
        if status is Status.ALGEBRAIC and exact.radius < 1:
            said.append(f"algebraic, ρ = {exact.radius.str(20)}")
    if solution.radius_kind == "bound" and exact.radius * (1 - 1e-12) > rho:
        said.append(f"bound {rho:g} of ρ = {exact.radius.str(8)}")
    if solution.radius_kind == "exact" and abs(exact.radius - rho) > 1e-6 * max(1.0, rho) and not zero:
        said.append(f"radius {rho:g}, ρ = {exact.radius.str(8)}")
    if unique is True and exact.inverse is None:
        said.append("unique, and singular")
    if unique is False and exact.inverse is not None and norm(exact.inverse) * NEARLY_SINGULAR < 1:
        said.append("not unique, and regular")
    if not status.ok:
        return said
    if not (reported <= MAX_RESIDUAL or bound <= MAX_RESIDUAL):
        said.append(f"ok, residual {reported:.1e}")
    if readout != "closed":
        said += _inexact(exact, solution, readout, rhs)
    elif exact.inverse is not None:
        n, k = exact.case.graph.num_nodes, exact.case.automaton.states
        runs = exact.inverse * rhs
        found = rational(solution.weights.numpy())
        expected = fmpq_mat(n, k, [runs[v * k + q, v] for v in range(n) for q in range(k)])
        off = norm(found - expected) / max(norm(runs), arb(1e-300), key=float)
        if unique is True and off > (bound if math.isfinite(bound) else MAX_ERROR):
            said.append(f"error {off.str(2)}, bound {bound:.1e}, residual {reported:.1e}")
    return said


def _inexact(exact: Exact, solution: Solution, readout: str, rhs: fmpq_mat) -> list[str]:
    n, k = exact.case.graph.num_nodes, exact.case.automaton.states
    weights = solution.weights.numpy()
    if readout == "pair":
        weights = weights.reshape(n, n, k).transpose(1, 2, 0).reshape(n * k, n)
    found = rational(weights.reshape(n * k, -1))
    said, bound, reported = [], float(solution.error_bound[0]), float(solution.residual[0])
    left, size = norm(exact.system * found - rhs), norm(rhs)
    if size > 0 and left / size > max(10 * reported, 1e-9) and not bound <= MAX_RESIDUAL:
        said.append(f"residual {(left / size).str(2)}, reported {reported:.1e}")
    if exact.inverse is not None and solution.unique[0] is True:
        expected = exact.inverse * rhs
        size = norm(expected)
        if size > 0:
            off = norm(found - expected) / size
            if off > (bound if math.isfinite(bound) else MAX_ERROR):
                said.append(f"error {off.str(2)}, bound {bound:.1e}, residual {reported:.1e}")
    return said


def solve(case: Case, solver: gape.solvers.Solver | None, readout: str) -> Solution:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gape.solve(
            case.automaton,
            case.graph,
            matrix=case.matrix,
            solver=solver,
            readout=readout,
            throw=False,  # type: ignore[arg-type]
        )


def attack(seed: int) -> list[tuple[str, str, Solution | None, list[str], bool]]:
    """Solve the equation of that seed: (case, solver, solution, complaints, whether a failure was uncalled for)."""
    case = draw(seed)
    exact = Exact(case)
    easy = exact.inverse is not None and bool(norm(exact.inverse) * norm(exact.system) < 1e6)
    rng = np.random.default_rng([seed, 1])
    ways: list[tuple[gape.solvers.Solver | None, str]] = [(None, "node")]
    if not case.automaton.typed and rng.random() < 0.3:
        ways.append((None, str(rng.choice(["closed", "pair"]))))
    else:
        usable = [
            s for s in SOLVERS if s.supports(gape.solvers.equation.Equation.of(case.automaton, case.graph, case.matrix))
        ]
        ways.append((usable[int(rng.integers(len(usable)))], "node"))
    found = []
    for solver, readout in ways:
        name = f"{'Auto' if solver is None else solver.name}{'' if readout == 'node' else ' ' + readout}"
        solution = solve(case, solver, readout)
        alarm = easy and solution.status[0].failed and not (solver is not None and solver.iterative)
        found.append((case.name, name, solution, complaints(exact, solution, readout), alarm))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--equations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=10, help="wrong answers to print")
    args = parser.parse_args()
    torch.set_num_threads(1)
    ctx.dps = 60
    counts: Counter[str] = Counter()
    started, wrong, answers, alarms, shown = time.process_time(), 0, 0, 0, 0
    for seed in range(args.seed, args.seed + args.equations):
        bad = False
        for case, solver, solution, said, alarm in attack(seed):
            answers += 1
            counts[solution.status[0].name] += 1
            alarms += alarm
            bad = bad or bool(said)
            if said and shown < args.show:
                shown += 1
                print(f"{seed}: {solver}, {case}: {solution.status[0].name}: {'; '.join(said)}")
        wrong += bad
    safe = args.equations - wrong
    print(f"{safe:,} of {args.equations:,} equations safe ({answers:,} answers)")
    print(", ".join(f"{number:,} {name}" for name, number in counts.most_common()))
    print(f"failures reported although the condition number is below 1e6: {alarms:,}")
    print(f"{time.process_time() - started:.0f} s of processor time")


if __name__ == "__main__":
    main()
