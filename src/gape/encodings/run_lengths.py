r"""An automaton seen from the graph: what a walk of each length is worth.

A walk of t steps that starts on label a is worth row a of C_t = αᵀμᵗ. When the C_t vanish, because μ is nilpotent as in
the shift automaton or because ‖C_t‖‖A‖ᵗ has become negligible, a few powers of A are all that a readout needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gape.automaton import Automaton
from gape.graph.walk_matrix import WalkMatrix
from gape.solvers.certificate import contracting_power

# Beyond so many powers eigenvectors are cheaper.
MOST = 64
NEGLIGIBLE = 1e-17


@dataclass(frozen=True, eq=False)
class RunLengths:
    """``worth[t]`` ``[m, k]`` for walks of t steps over A / ``scale``: ``[T + 1, m, k]``.

    ``finite``: longer walks are worth exactly nothing, whatever the graph. ``left``: else their worth, in relation to
    that of walks of no steps, is at most this, and ``size`` is that of all together.
    """

    worth: Tensor
    scale: float
    finite: bool
    left: float
    size: float

    @property
    def steps(self) -> int:
        return len(self.worth) - 1


def run_lengths(automaton: Automaton, walk: WalkMatrix) -> RunLengths | None:
    """The worth of all walks that matter, ``None`` if more than a few lengths do."""
    mu, k = automaton.transition.detach(), automaton.states
    nilpotent = not bool(torch.linalg.matrix_power(mu, k).any())
    largest = float(walk.norm_bounds.max()) if len(walk.ptr) > 1 else 0.0
    # A power of two, so that scaling rounds nothing.
    scale = 2.0 ** math.ceil(math.log2(largest)) if largest > 0 else 1.0
    term = automaton.initial.detach().T
    # Label by label: what is little beside another label's weights may be all that its own nodes have.
    rows = torch.linalg.vector_norm(term, dim=1)
    rows = torch.where(rows > 0, rows, 1.0)
    together = contracting_power(scale * mu, MOST)
    worth, sizes = [term], [1.0]
    for _ in range(max(k, MOST) if nilpotent else MOST):
        term = scale * (term @ mu)
        sizes.append(float((torch.linalg.vector_norm(term, dim=1) / rows).max()))
        if not bool(term.any()):
            return RunLengths(torch.stack(worth), scale, nilpotent, 0.0, sum(sizes))
        worth.append(term)
        last = sizes[-(together or 1) :]
        if together and not nilpotent and len(sizes) > together and max(last) <= NEGLIGIBLE:
            return RunLengths(torch.stack(worth), scale, False, 2.0 * sum(last), sum(sizes))
    return None


def weigh(amounts: Tensor, worth: Tensor, labels: Tensor | None) -> Tensor:
    """``[…, T]`` amounts of walks of each length times their worth ``[T, m, k]`` for the label that each row has."""
    if labels is None:
        return amounts @ worth[:, 0]
    out = amounts.new_zeros(*amounts.shape[:-1], worth.shape[2])
    for label in torch.unique(labels).tolist():
        if label >= 0:
            here = labels == label
            out[here] = amounts[here] @ worth[:, label]
    return out
