"""Sums over walks on a graph on disk: runs of an automaton by length, and returns, estimated with random signs.

    X = Σ_t W_t C_t,      W_t = (Aᵀ)ᵗ ℓᵀ ``[n, m]``,      C_t = αᵀ μᵗ ``[m, k]``

As in :mod:`gape.solvers.series`, but only two steps of W are in memory. Each step is written to disk, where it is the
checkpoint as well, and the k columns of X are made from them block by block. The residual of the equation is W_T C_T.
If rounding moves step t by E_t, it is W_T C_T - Σ_t E_t C_t.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gape.scale.build import Progress
from gape.scale.rmat import splitmix
from gape.scale.walk import Array, SplitWalk
from gape.scale.workspace import RowFile, Workspace

# Steps kept on disk before they are multiplied out and added to a partial sum.
BLOCK_STEPS = 48
_WALKS = "walks.bin"
# Rows multiplied out at a time.
BLOCK_ROWS = 1 << 15
# Walk counts outside this range are rescaled, by a power of two and so exactly.
MAX_EXPONENT = {"float64": 300, "float32": 40}


@dataclass(frozen=True)
class SumResult:
    """State of a sum at its end.

    Args:
        steps: number of terms.
        residual: of the equation relative to ‖αℓ‖, an upper bound: the term at which the sum ended and, for float32,
            Σ_t ‖E_t‖ ‖C_t‖, the rounding of the walk counts.
        radius_bound: ρ(A) is at most this: a norm, or for walk counts from all nodes max_v (1ᵀAᵗ)_v^(1/t).
        converged: whether that term is at most the tolerance, and the bound proves that the sum converges.
    """

    steps: int
    residual: float
    radius_bound: float
    converged: bool


def walk_sum_bytes(steps: float, nodes: int, m: int, k: int, dtype: np.dtype[Any]) -> float:
    """Disk that a sum of so many steps needs: the walk counts of a block, and two partial sums beyond one block.

    >>> walk_sum_bytes(8, 1000, 1, 32, np.dtype("float64")), walk_sum_bytes(250, 1000, 1, 32, np.dtype("float64"))
    (64000.0, 904000.0)
    """
    counts = min(steps, BLOCK_STEPS + 1) * nodes * m * dtype.itemsize
    return float(counts + (2 * nodes * k * 8 if steps > BLOCK_STEPS else 0))


class WalkSum:
    """Partial sums with checkpoints.

    Args:
        walk: the steps.
        workspace: the files.
        initial: ``[m, k]``, C_0.
        transition: ``[k, k]``, μ.
        normalise: scale every column of X to sum 1.
        counts: whether W_0 is 1 in sum over the labels of every node, so that W counts walks.
        progress: called after every step.
    """

    def __init__(
        self,
        walk: SplitWalk,
        workspace: Workspace,
        initial: Array,
        transition: Array,
        *,
        normalise: bool = False,
        counts: bool = True,
        progress: Progress,
    ) -> None:
        self.walk, self.workspace, self.transition, self.progress = walk, workspace, transition, progress
        self.normalise, self.counts = normalise, counts
        self.radius = float(np.abs(np.linalg.eigvals(transition)).max(initial=0.0))
        state = workspace.state
        if walk.dtype == np.float32 and "rounding" not in state:
            state = {}  # an earlier version's checkpoint: start over, since its rounding is not known
        #: Exponents by which the counts were rescaled, step by step.
        self.shifts: list[int] = state.get("shifts", [])
        #: Terms before this step are in the file of partial sums.
        self.block: int = state.get("block", 0)
        self.totals = np.array(state.get("totals", [0.0] * initial.shape[1]))
        #: Bound of the residual that rounding of the counts left so far.
        self.rounding: float = state.get("rounding", 0.0)
        self.coefficients = [initial]
        for shift in self.shifts:
            self.coefficients.append(self.coefficients[-1] @ transition * 2.0**shift)

    @property
    def step(self) -> int:
        return len(self.shifts)

    def run(self, start: NDArray[Any], rhs_norm: float, tolerance: float, max_steps: int) -> SumResult:
        """Add terms until the next is at most ``tolerance``; ``start`` ``[rows, m]``: this rank's rows of W_0."""
        walk, norm_bound = self.walk, self.walk.norm_bound()
        relative, lost = walk.rounding()
        lost *= math.sqrt(walk.graph.nodes * walk.columns)
        if self.step == 0:
            walks = start
            self._store(walks)
        else:
            walks = self._stored(self.step, 0, walk.rows)
        spare = np.empty_like(walks)
        limit = MAX_EXPONENT[walk.dtype.name]
        while True:
            if self.normalise:
                self.totals += np.array(walk.ranks.sum(*walks.sum(0, dtype=np.float64))) @ self.coefficients[-1]
            walks, spare = walk.step(walks, spare), walks
            count = walks if walks.shape[1] == 1 else walks.sum(1, dtype=np.float64)
            peak, count_peak, due = walk.ranks.max(_peak(walks), _peak(count), self.workspace.due)
            shift = round(math.log2(peak)) if peak > 0 and abs(math.log2(peak)) > limit else 0
            if shift:
                walks *= 2.0**-shift
            self.shifts.append(shift)
            self.coefficients.append(self.coefficients[-1] @ self.transition * 2.0**shift)
            norm = math.sqrt(walk.dot((walks, walks))[0])
            size = float(np.linalg.norm(self.coefficients[-1], 2)) / rhs_norm if rhs_norm else 0.0
            residual = norm * size
            self.rounding += (relative * norm + lost * max(1.0, 2.0**-shift)) * size
            bound = norm_bound
            if self.counts and count_peak > 0:
                exponent = math.log2(count_peak) + sum(self.shifts[:-1])
                bound = min(bound, 2.0 ** (exponent / self.step) * (1.0 + 2.0 * relative))
            proven = norm == 0 or self.radius * bound < 1
            self.progress("walking", self.step, self._expected(residual, tolerance))
            if (residual <= tolerance and proven) or self.step >= max_steps or not math.isfinite(residual):
                return SumResult(self.step, residual + self.rounding, bound, residual <= tolerance and proven)
            self._store(walks)
            if self.step - self.block == BLOCK_STEPS:
                self._fold()
            elif due:
                self._commit()

    def _expected(self, residual: float, tolerance: float) -> float | None:
        """Guess the number of steps from the decrease so far."""
        if not 0 < residual < 1:
            return None
        return max(self.step, round(self.step * math.log(tolerance) / math.log(residual)))

    def _store(self, walks: NDArray[Any]) -> None:
        self.workspace.write(_WALKS, self._position(self.step, 0), walks)

    def _stored(self, step: int, first: int, last: int) -> NDArray[Any]:
        shape = (last - first, self.walk.columns)
        return self.workspace.read(_WALKS, self._position(step, first), shape, self.walk.dtype)

    def _position(self, step: int, row: int) -> int:
        # One place more than a block has steps: the last step of a block is the first of the next.
        slot = step % (BLOCK_STEPS + 1)
        return (slot * self.walk.graph.nodes + self.walk.first + row) * self.walk.columns

    def _commit(self) -> None:
        totals, rounding = self.totals.tolist(), self.rounding
        self.workspace.commit(shifts=self.shifts, block=self.block, totals=totals, rounding=rounding)

    def _fold(self) -> None:
        """Add the terms on disk to the partial sum, in a new file: the old one is needed until that is recorded."""
        old = f"sum-{self.block}.bin"
        for first, values in self._rows(np.ones(self.coefficients[0].shape[1])):
            self.workspace.write(f"sum-{self.step}.bin", (self.walk.first + first) * values.shape[1], values)
        self.block = self.step
        self._commit()
        self.workspace.remove(old)

    def _rows(self, scale: Array) -> Iterator[tuple[int, Array]]:
        """Yield the rows of the sum so far, a block at a time, with the number of the first."""
        steps = range(self.block, self.step)
        c = np.concatenate(self.coefficients[self.block : self.step]) * scale
        width = c.shape[1]
        for first in range(0, self.walk.rows, BLOCK_ROWS):
            last = min(first + BLOCK_ROWS, self.walk.rows)
            walks = np.concatenate([self._stored(t, first, last) for t in steps], axis=1)
            values = walks.astype(np.float64, copy=False) @ c
            if self.block:
                position = (self.walk.first + first) * width
                values += scale * self.workspace.read(
                    f"sum-{self.block}.bin", position, (last - first, width), np.float64
                )
            yield first, values

    def write(self, out: RowFile) -> None:
        """Write this rank's rows of X."""
        scale = np.ones(self.coefficients[0].shape[1])
        if self.normalise:
            np.divide(1.0, self.totals, out=scale, where=self.totals != 0)
        for first, values in self._rows(scale):
            out.write(self.walk.first + first, values)
            self.progress("writing", first + len(values), self.walk.rows)


def _peak(x: NDArray[Any]) -> float:
    return float(np.abs(x).max()) if x.size else 0.0


def random_signs(first: int, last: int, samples: range, seed: int) -> Array:
    """Return signs ``[last - first, samples]``; they depend on the seed, the node and the sample only."""
    nodes = np.arange(first, last, dtype=np.uint64)[:, None]
    start = splitmix(np.array([seed % 2**64], dtype=np.uint64))
    keys = nodes + splitmix(start + np.array(samples, dtype=np.uint64))
    return (splitmix(keys) & np.uint64(1)).astype(np.float64) * 2 - 1


def estimate_returns(
    walk: SplitWalk,
    workspace: Workspace,
    *,
    length: int,
    samples: int,
    seed: int,
    values: RowFile,
    errors: RowFile,
    progress: Progress,
) -> float:
    """Write estimates of (Wᵗ)_vv, t = 1 … ``length``, and their standard errors; return the largest of these.

    Hutchinson's estimator, as in :func:`gape.encodings.estimate_random_walk`: the same numbers on undirected graphs.
    ``walk`` carries some samples side by side. Sums and sums of squares are on disk, one vector per t.
    """
    n, rows, width = walk.graph.nodes, walk.rows, walk.columns
    symmetric = walk.matrix == "symmetric"
    done: int = workspace.state.get("samples", 0)
    while done < samples:
        batch = range(done, min(done + width, samples))
        signs = random_signs(walk.first, walk.last, batch, seed)
        if len(batch) < width:  # the last samples: columns of zeros add nothing
            signs = np.concatenate([signs, np.zeros((rows, width - len(batch)))], axis=1)
        old, new = f"returns-{done}.bin", f"returns-{batch.stop}.bin"
        kept, x = [signs], signs
        for t in range(1, length + 1):
            if not symmetric:
                x = walk.step(x)
                found = signs * x
            else:
                # (Mⁱz) ∘ (Mʲz) with i + j = t has the same mean, and needs half the steps.
                if t - t // 2 == len(kept):
                    kept.append(walk.step(kept[-1]))
                found = kept[t // 2] * kept[t - t // 2]
            for i, term in ((t - 1, found.sum(1)), (length + t - 1, np.square(found).sum(1))):
                position = i * n + walk.first
                if done:
                    term += workspace.read(old, position, (rows,), np.float64)
                workspace.write(new, position, term)
            progress("walking", done + len(batch) * t / length, samples)
        done = batch.stop
        # A checkpoint needs its file until there is another one.
        committed = f"returns-{workspace.state.get('samples', 0)}.bin"
        if walk.ranks.max(workspace.due or done == samples)[0]:
            workspace.commit(samples=done)
            workspace.remove(old, committed)
        elif old != committed:
            workspace.remove(old)
    return _write(workspace, f"returns-{samples}.bin", walk, length, samples, values, errors, progress)


def _write(
    workspace: Workspace,
    name: str,
    walk: SplitWalk,
    length: int,
    samples: int,
    values: RowFile,
    errors: RowFile,
    progress: Progress,
) -> float:
    largest = 0.0
    for first in range(0, walk.rows, BLOCK_ROWS):
        count = min(BLOCK_ROWS, walk.rows - first)
        row = walk.first + first
        sums: NDArray[np.float64] = np.stack(
            [workspace.read(name, i * walk.graph.nodes + row, (count,), np.float64) for i in range(2 * length)], axis=1
        )
        mean = sums[:, :length] / samples
        variance = np.maximum(sums[:, length:] / samples - mean**2, 0.0) * samples / (samples - 1)
        error = np.sqrt(variance / samples)
        values.write(row, mean)
        errors.write(row, error)
        largest = max(largest, float(error.max(initial=0.0)))
        progress("writing", first + count, walk.rows)
    return walk.ranks.max(largest)[0]
