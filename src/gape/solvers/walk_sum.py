r"""X = Σ_t W_t C_t, the sum over runs by length, where W_t = (Aᵀ)ᵗ ℓᵀ ``[n, m]`` and C_t = αᵀ μᵗ ``[m, k]``."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gape.solvers.problem import Problem

# Steps kept before they are multiplied out: bounds memory, feeds the matrix product well.
BLOCK = 32
ROWS = 4096
# Walk counts beyond this are rescaled (by a power of two, so exactly).
LARGE, SMALL = 2.0**300, 2.0**-300


class WalkSum:
    """The terms so far, all graphs together, and the next one: what is left of the equation is exactly that.

    Attributes:
        steps: how many terms have been added.
        moved: Σ max|W_t| ‖C_t‖₂ of these; any weight is at most that times the size of C.
        peak: max|W| ‖C‖₂ of the next term.
        ended: whether the next term, and so all that follow, are 0.
        lost: ``[graphs]``, the graphs that were given up.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        walks = problem.indicator
        self._walks = walks.squeeze(1) if walks.shape[1] == 1 else walks
        self._coefficients = problem.initial.T[problem.used_labels]
        self._exponent = 0
        self._blocks = _Blocks()
        self.steps, self.moved = 0, 0.0
        self.lost = torch.zeros(problem.num_graphs, dtype=torch.bool, device=walks.device)
        self._measure()
        # ‖W C‖ ≤ √(n m) max|W| ‖C‖₂, over the norm of the source, for every graph.
        rows = (problem.adjacency.sizes * len(self._coefficients)).to(torch.float64)
        self._slack = _largest(problem.relative(rows.sqrt()))

    def _measure(self) -> None:
        self._largest = _largest(self._walks, self._problem.counts_walks)
        self._size = _norm(self._coefficients)
        self.peak = self._largest * self._size
        self.ended = self._largest == 0 or self._size == 0

    def add_term(self) -> None:
        """Add the next term, and make the one after it."""
        if self._largest > 0 and not SMALL < self._largest < LARGE:
            shift = round(math.log2(self._largest))
            self._walks, self._coefficients = self._walks * 2.0**-shift, self._coefficients * 2.0**shift
            self._exponent += shift
        self._blocks.add(self._walks, self._coefficients)
        self.moved += self.peak
        self._walks = self._problem.walk.push(self._walks)
        self._coefficients = self._coefficients @ self._problem.transition
        self.steps += 1
        self._measure()

    def give_up(self, graphs: Tensor) -> None:
        """Go on without these ``[graphs]``, so that the others can."""
        self.lost = self.lost | graphs
        rows = self.lost[self._problem.adjacency.batch].view(-1, *[1] * (self._walks.dim() - 1))
        self._walks = self._walks.masked_fill(rows, 0.0)
        self._measure()

    def relative_bound(self, peaks: float) -> float:
        """What terms of these peaks can be at most, over the source: all graphs at once, at no cost."""
        return peaks * self._slack

    def residual(self) -> Tensor:
        """``[graphs]``: the norm of the next term over the norm of the source; infinite for graphs given up."""
        norm = self._problem.norms(self._walks.unsqueeze(1) if self._walks.dim() == 1 else self._walks)
        relative = torch.where(norm > 0, self._problem.relative(norm * self._size), norm)
        return torch.where(self.lost, torch.inf, relative)

    def weight_bound(self) -> float:
        """What any weight is at most."""
        return self.moved * self._coefficients.numel()

    def weights(self, out: Tensor | None) -> Tensor:
        """The sum ``[n, k]``, written to ``out`` if that is given and it can be."""
        return self._blocks.finish(out)

    def radius_bound(self) -> Tensor:
        """``[graphs]``: ρ(A) is at most a norm and, for A ≥ 0, the largest count of T-step walks to the power 1/T.

        The counts have to be those of all walks; a source of its own or labels left out say nothing about the others.
        Nor does a count that rescaling has made so small that some of it may be lost.
        """
        problem = self._problem
        bound = problem.walk.norm_bounds
        if problem.counts_walks and len(problem.used_labels) == problem.initial.shape[1]:
            counts = problem.adjacency.segment_max(self._walks if self._walks.dim() == 1 else self._walks.sum(1))
            known = ~self.lost & (counts >= SMALL)
            tighter = torch.minimum(bound, (counts ** (1.0 / self.steps)) * 2.0 ** (self._exponent / self.steps))
            bound = torch.where(known, tighter, bound)
            if bool(known.all()):
                return bound
        return torch.where(problem.walk.acyclic_graphs, 0.0, bound)


class _Blocks:
    """Σ W_t C_t, multiplied out a block of steps at a time and rounded on the way out."""

    def __init__(self) -> None:
        self._walks: list[Tensor] = []
        self._coefficients: list[Tensor] = []
        self._sum: Tensor | None = None

    def add(self, walks: Tensor, coefficients: Tensor) -> None:
        if len(self._walks) == BLOCK:
            c = torch.cat(self._coefficients)
            w = self._rows(slice(None)).to(c.dtype)
            self._sum = w @ c if self._sum is None else self._sum.addmm_(w, c)
            self._walks, self._coefficients = [], []
        self._walks.append(walks)
        self._coefficients.append(coefficients)

    def _rows(self, chosen: slice) -> Tensor:
        """Some rows of the walk counts, ``[rows, steps · labels]``."""
        parts = [walks[chosen] for walks in self._walks]
        return torch.stack(parts).T if parts[0].dim() == 1 else torch.cat(parts, 1)

    def finish(self, out: Tensor | None) -> Tensor:
        c = torch.cat(self._coefficients)
        if self._sum is not None:
            return self._sum.addmm_(self._rows(slice(None)).to(c.dtype), c)
        n = len(self._walks[0])
        if out is None:
            out = torch.empty(n, c.shape[1], dtype=c.dtype, device=c.device)
        # Rows by the thousand, so that they are in cache from the counts to the rounding.
        for start in range(0, n, ROWS):
            rows = slice(start, start + ROWS)
            out[rows] = self._rows(rows).to(c.dtype) @ c
        return out


def _norm(coefficients: Tensor) -> float:
    """The 2-norm of a matrix ``[m, k]``, whatever the size of its entries."""
    peak = float(coefficients.abs().amax())
    if not math.isfinite(peak):
        return math.inf
    unit = coefficients / peak if peak > 0 else coefficients
    return peak * float(torch.linalg.vector_norm(unit) if len(unit) == 1 else torch.linalg.matrix_norm(unit, 2))


def _largest(x: Tensor, nonnegative: bool = False) -> float:
    if x.numel() == 0:
        return 0.0
    if nonnegative:
        return float(x.amax())
    low, high = x.aminmax()
    return max(-float(low), float(high))
