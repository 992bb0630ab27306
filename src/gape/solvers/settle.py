"""Graphs suspected of a singular equation, settled: is there a solution, and what comes nearest?"""

from __future__ import annotations

import numpy as np
import scipy.sparse.linalg
import torch
from torch import Tensor

from gape.solvers.deflation import deflatable, deflated
from gape.solvers.kronecker import Kronecker
from gape.solvers.outcome import CONSISTENT, NO, Result, below_one, code
from gape.solvers.problem import Problem
from gape.solvers.question import Question
from gape.solvers.solution import Status

# Up to so many unknowns the dense system settles it; beyond, LSMR (Fong & Saunders, 2011).
DENSE_UNKNOWNS = 4096


def settle(outcome: Result, question: Question) -> None:
    """Settle the graphs of an outcome whose status is a suspicion (see :class:`Result`).

    Also those whose weights are so large that rounding has left few digits, if they are small enough for the dense
    system, which does better. All together where eigenvectors can do it, one by one where they cannot.
    """
    if outcome.settled:
        return
    outcome.settled = True
    coarse = (outcome.residual > CONSISTENT) & (question.graph.sizes * question.automaton.states <= DENSE_UNKNOWNS)
    solved = (outcome.status == code(Status.RUN_SUM)) | (outcome.status == code(Status.ALGEBRAIC))
    suspects = ((outcome.status == code(Status.SINGULAR)) | (coarse & solved)).nonzero().flatten()
    if not len(suspects):
        return
    if deflatable(question.problem()):
        together, done = deflated(question.select(suspects).problem())
        outcome.take(suspects, together)
        outcome.weights[question.graph.nodes_of(suspects)] = together.weights
        suspects = suspects[~done]
    for i in suspects.tolist():
        _settle_one(outcome, question, i)


def _settle_one(outcome: Result, question: Question, i: int) -> None:
    problem = question.alone(i).problem()
    nodes = slice(int(question.graph.ptr[i]), int(question.graph.ptr[i + 1]))
    if problem.source.numel() <= DENSE_UNKNOWNS:
        dense = Kronecker(DENSE_UNKNOWNS).run(problem)
        outcome.weights[nodes] = dense.weights
        outcome.take(torch.tensor([i], device=question.graph.device), dense)
        return
    weights, residual, optimal = _lsmr(problem)
    outcome.weights[nodes] = weights
    outcome.residual[i] = residual
    if residual <= CONSISTENT:
        outcome.status[i] = code(Status.RUN_SUM if below_one(outcome.spectral_radius[i]) else Status.ALGEBRAIC)
    elif optimal:
        outcome.unique[i] = NO
    else:
        outcome.status[i] = code(Status.NOT_CONVERGED)


def _lsmr(problem: Problem) -> tuple[Tensor, float, bool]:
    """The shortest least-squares solution, its relative residual, and whether it is one to 1e-8."""
    shape, dtype, device = problem.source.shape, problem.source.dtype, problem.source.device

    def tensor(v: np.ndarray) -> Tensor:
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
