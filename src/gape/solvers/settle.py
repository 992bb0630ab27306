"""Graphs suspected of a singular equation, settled one by one: is there a solution, and what comes nearest?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse.linalg
import torch

from gape.automaton import Automaton
from gape.graph import Graph
from gape.solvers.kronecker import Kronecker
from gape.solvers.outcome import CONSISTENT, NO, Outcome, code
from gape.solvers.problem import Problem
from gape.solvers.solution import Status

# Up to so many unknowns the dense system settles it; beyond, LSMR (Fong & Saunders, 2011).
DENSE_UNKNOWNS = 4096


@dataclass(frozen=True)
class Settlement:
    """Settles the graphs of an outcome whose status is a suspicion (see :class:`Outcome`)."""

    automaton: Automaton
    matrix: str

    def settle(self, outcome: Outcome, part: Graph) -> None:
        if outcome.settled:
            return
        suspects = (outcome.status == code(Status.SINGULAR)).nonzero().flatten().tolist()
        for i in suspects:
            graph = part.slice(i, i + 1)
            problem = Problem.of(self.automaton, graph, self.matrix)
            nodes = slice(int(part.ptr[i]), int(part.ptr[i + 1]))
            if graph.num_nodes * self.automaton.states <= DENSE_UNKNOWNS:
                dense = Kronecker(DENSE_UNKNOWNS).run(problem)
                outcome.weights[nodes] = dense.weights.to(outcome.weights.dtype)
                for name in ("residual", "spectral_radius", "separation", "unique", "status"):
                    getattr(outcome, name)[i] = getattr(dense, name)[0]
            else:
                weights, residual, optimal = _lsmr(problem)
                outcome.weights[nodes] = weights
                outcome.residual[i] = residual
                if residual <= CONSISTENT:
                    outcome.status[i] = code(_solved(float(outcome.spectral_radius[i])))
                elif optimal:
                    outcome.unique[i] = NO
                else:
                    outcome.status[i] = code(Status.NOT_CONVERGED)
        outcome.settled = True


def _solved(radius: float) -> Status:
    return Status.RUN_SUM if radius < 1 else Status.ALGEBRAIC


def _lsmr(problem: Problem) -> tuple[torch.Tensor, float, bool]:
    """The shortest least-squares solution, its relative residual, and whether it is one to 1e-8."""
    shape, dtype, device = problem.source.shape, problem.source.dtype, problem.source.device

    def tensor(v: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(v).to(device, dtype).reshape(shape)

    def forward(v: np.ndarray) -> np.ndarray:
        x = tensor(v)
        return np.asarray((x - problem.apply(x)).reshape(-1).cpu().numpy())

    def backward(v: np.ndarray) -> np.ndarray:
        x = tensor(v)
        return np.asarray((x - problem.adjoint(x)).reshape(-1).cpu().numpy())

    size = shape[0] * shape[1]
    kind = np.complex128 if dtype.is_complex else np.float64
    operator = scipy.sparse.linalg.LinearOperator((size, size), matvec=forward, rmatvec=backward, dtype=kind)
    source = problem.source.reshape(-1).cpu().numpy()
    solved = scipy.sparse.linalg.lsmr(operator, source, atol=1e-13, btol=1e-13, conlim=0, maxiter=20 * min(size, 2000))
    x, gap, slope, norm = tensor(solved[0]), solved[3], solved[4], solved[5]
    optimal = slope <= 1e-8 * max(norm * gap, 1e-300)
    return x, float(gap / max(np.linalg.norm(source), 1e-300)), bool(optimal)
