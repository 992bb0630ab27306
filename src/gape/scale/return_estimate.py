"""Return probabilities of random walks on a graph on disk, estimated with random signs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gape.scale.build import Progress
from gape.scale.rmat import splitmix
from gape.scale.walk import Array, SplitWalk
from gape.scale.walk_sum import BLOCK_ROWS
from gape.scale.workspace import RowFile, Workspace


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
