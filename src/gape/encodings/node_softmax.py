r"""GAPE** as the authors computed it: the softmax of αℓ over the nodes of each graph.

Per state q, node v of a graph gets exp(α[q, ℓ(v)]) / Σ_u exp(α[q, ℓ(u)]): a source that no α of its own produces, since
the denominators differ from graph to graph. With one label it is exactly 1/n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from gape.automaton import Automaton
from gape.encodings.certificate import raise_or_warn
from gape.graph import Graph
from gape.solvers import Auto, Solution, Status, solve
from gape.solvers.outcome import NO, STATUSES, YES, Outcome, code
from gape.solvers.problem import Problem
from gape.solvers.settle import settle_one
from gape.typing import OnSingular

KINDS = ("exact", "bound", "estimate")


@dataclass(frozen=True, eq=False)
class SourceProblem(Problem):
    """The equation X = AᵀXμ + S with any source S ``[n, k]``.

    The columns of S stand in for label indicators, with α the identity, so every solver takes it.
    """

    given: Tensor = None  # type: ignore[assignment]  # always given

    @classmethod
    def with_source(cls, automaton: Automaton, graph: Graph, matrix: str, source: Tensor) -> SourceProblem:
        eye = torch.eye(automaton.states, dtype=torch.float64, device=graph.device)
        transition = automaton.transition.detach().to(graph.device, torch.float64)
        return cls(walk=graph.walk(matrix), initial=eye, transition=transition, given=source)

    @cached_property
    def source(self) -> Tensor:
        return self.given

    @cached_property
    def indicator(self) -> Tensor:
        return self.given

    @cached_property
    def source_norm(self) -> Tensor:
        return self.adjacency.segment_sum(self.given.square().sum(1)).sqrt()


def node_softmax(automaton: Automaton, graph: Graph) -> Tensor:
    """The source, ``[n, k]``: every column sums to 1 over the nodes of each graph."""
    if automaton.labels == 1:
        return (1.0 / graph.sizes.double())[graph.batch].unsqueeze(1).expand(-1, automaton.states)
    # The largest weight of each state is taken out, so that no exponential overflows.
    weights = automaton.initial.double()
    rows = (weights - weights.amax(1, keepdim=True)).exp().T[graph.labels]
    return rows / graph.adjacency.segment_sum(rows)[graph.batch]


def solve_node_softmax(
    automaton: Automaton, graph: Graph, *, matrix: str, on_singular: OnSingular, dtype: torch.dtype
) -> Solution:
    """Solve with that source: one label by scaling, several with k columns."""
    if automaton.labels == 1:
        ones = Automaton(torch.ones_like(automaton.initial), automaton.transition)
        solution = solve(ones, graph, matrix=matrix, on_singular=on_singular)
        rows = solution.weights / graph.sizes[graph.batch].unsqueeze(1)
        return replace(solution, weights=rows.to(dtype))
    parts = [part for part in graph.parts if part.num_nodes]
    solved = [_solve_part(automaton, part, matrix) for part in parts]
    outcomes = [outcome for outcome, _ in solved]

    def join(name: str) -> Tensor:
        return torch.cat([getattr(outcome, name) for outcome in outcomes] or [torch.zeros(0)])

    weights = torch.cat([outcome.weights for outcome in outcomes]) if outcomes else node_softmax(automaton, graph)
    status = [STATUSES[i] for outcome in outcomes for i in outcome.status.tolist()]
    if on_singular == "least_squares":
        status = [Status.LEAST_SQUARES if s is Status.SINGULAR else s for s in status]
    solution = Solution(
        weights=weights.to(dtype),
        status=status,
        residual=join("residual"),
        spectral_radius=join("spectral_radius"),
        radius_kind=max((outcome.radius_kind for outcome in outcomes), default="exact", key=KINDS.index),
        separation=join("separation"),
        unique=[None if u not in (YES, NO) else u == YES for u in join("unique").tolist()],
        solver=[name for outcome, name in solved for _ in range(len(outcome.residual))],
        steps=max((outcome.steps for outcome in outcomes), default=0),
    )
    raise_or_warn(solution)
    return solution


def _solve_part(automaton: Automaton, part: Graph, matrix: str) -> tuple[Outcome, str]:
    source = node_softmax(automaton, part)
    problem = SourceProblem.with_source(automaton, part, matrix, source)
    solver = Auto().pick(problem)
    outcome = solver.run(problem)
    suspects = [] if outcome.settled else (outcome.status == code(Status.SINGULAR)).nonzero().flatten().tolist()
    for i in suspects:
        nodes = slice(int(part.ptr[i]), int(part.ptr[i + 1]))
        alone = SourceProblem.with_source(automaton, part.slice(i, i + 1), matrix, source[nodes])
        settle_one(outcome, part, i, alone)
    return outcome, type(solver).__name__
