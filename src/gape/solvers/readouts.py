r"""The closed and the pair readout: runs from a node back to itself, and from every node to every node.

    closed(v) = Σ_t (Aᵗ)_vv · (μᵀ)ᵗ α[:, ℓ(v)],      pair(u, v) = Σ_t (Aᵗ)_uv · (μᵀ)ᵗ α[:, ℓ(u)]

They are blocks of a resolvent, so they exist where the power series diverges. With the shift automaton on D⁻¹A the
closed readout is the random-walk encoding, and the pair readout is RRWP (Ma et al., 2023).

A walk of t steps that starts on label a has the coefficient row a of C_t = αᵀμᵗ. If the C_t vanish, because μ is
nilpotent as in the shift automaton or because ‖C_t‖‖A‖ᵗ has become negligible, a few powers of A are all that a readout
needs. Otherwise :mod:`gape.solvers.dense_runs` computes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from gape._internal.validation import check_one_of
from gape.automaton import Automaton, RootedAutomaton
from gape.graph.batching import BLOCK_ELEMENTS, Block, blocks, check_memory, offsets, scatter_pairs, scatter_rows
from gape.linalg.powers import PowerDiagonals, matrix_powers
from gape.linalg.radius_bounds import EPSILON, split_components
from gape.solvers.base import Result
from gape.solvers.certificate import MAX_ROUNDING_RESIDUAL, contracting_power
from gape.solvers.dense_runs import BlockCertificate, DenseRuns
from gape.solvers.equation import Equation
from gape.solvers.solution import OnSingular

#: Runs of an automaton that are read out: into each node, back to the node where they began, or between all pairs of
#: nodes.
ReadoutName = Literal["node", "closed", "pair"]
#: All readouts of a solve and of a layer: also closed runs in each layer around a root, of rooted automata.
SolveReadout = Literal[ReadoutName, "rooted"]

# With more powers eigenvectors are cheaper.
MAX_POWERS = 64
# Coefficients below this, relative to those of walks of no steps, are left out.
NEGLIGIBLE_RATIO = 1e-17


def check_readout(readout: str, automaton: Automaton | RootedAutomaton, **unused: Any) -> None:
    """Raise if the automaton has no such readout, or if settings of the node readout are given (not ``None``)."""
    check_one_of(get_args(SolveReadout), readout=readout)
    if readout == "node":
        return
    given = [name for name, value in unused.items() if value is not None]
    if given:
        raise ValueError(f"{', '.join(given)} goes with readout='node', got readout={readout!r}; leave it out")
    if isinstance(automaton, RootedAutomaton):
        return
    if automaton.typed:
        raise ValueError(
            f"closed and pair readouts need one transition matrix, got {len(automaton.transition)} by "
            f"{automaton.transition_by}; use readout='node'"
        )
    if automaton.dtype.is_complex or automaton.final is not None:
        raise ValueError(f"closed and pair readouts need real weights and no final weights, got {automaton!r}")


def read_out(readout: SolveReadout, equations: list[Equation], on_singular: OnSingular, memory: float) -> list[Result]:
    """Compute the closed or pair readout of every part of a batch, one after the other; ``memory`` in GiB."""
    parts = [_Part(equation, on_singular) for equation in equations]
    if readout == "closed":
        largest = max(int(equation.sizes.max()) for equation in equations)
        needed = max(part.bytes_needed(pairs=False) for part in parts)
        check_memory(memory, needed, f"the closed readout on a graph of {largest} nodes", "raise memory to allow it")
        return [part.closed() for part in parts]
    if readout != "pair":
        raise ValueError(f"readout must be 'closed' or 'pair' here, got {readout!r}")
    pairs, k = sum(int(equation.sizes.square().sum()) for equation in equations), equations[0].states
    check_memory(
        memory,
        pairs * k * equations[0].dtype.itemsize + max(part.bytes_needed(pairs=True) for part in parts),
        f"the pair readout of {k} states on {pairs} pairs of nodes",
        "encode fewer graphs at a time, take fewer states, or raise memory",
    )
    return [part.pair() for part in parts]


class _Part:
    """The readouts of one part of a batch: by powers of A if few are needed, by dense matrices otherwise."""

    def __init__(self, equation: Equation, on_singular: OnSingular) -> None:
        self.equation = equation
        self.coefficients = walk_coefficients(equation)
        self.runs = DenseRuns(equation, on_singular)

    def bytes_needed(self, *, pairs: bool) -> int:
        """Memory for the largest graph, counted in the arrays below and confirmed by measurement."""
        if self.coefficients is None:
            return self.runs.bytes_needed(pairs=pairs)
        n, powers = int(self.equation.sizes.max()), self.coefficients.steps + 1
        return 8 * n**2 * (2 * powers + 2 * self.equation.states + 2 if pairs else 6 + 4 * math.isqrt(powers))

    def closed(self) -> Result:
        walk = self.equation.walk
        out = self._empty(walk.num_nodes)
        for block in blocks(walk):
            found = self.runs.closed(block) if self.coefficients is None else self._closed_by_powers(block)
            scatter_rows(out, block, found)
        return self._result(out, self.equation.sizes)

    def pair(self) -> Result:
        walk, squares = self.equation.walk, self.equation.sizes.square()
        out, starts = self._empty(int(squares.sum())), offsets(squares)
        for block in blocks(walk, entries=BLOCK_ELEMENTS // self.equation.states):
            found = self.runs.pair(block) if self.coefficients is None else self._pairs_by_powers(block)
            scatter_pairs(out, starts, block, found)
        return self._result(out, squares)

    def _empty(self, rows: int) -> Tensor:
        equation = self.equation
        return torch.zeros(rows, equation.states, dtype=equation.dtype, device=equation.walk.ptr.device)

    def _result(self, weights: Tensor, rows: Tensor) -> Result:
        coefficients = self.coefficients
        if coefficients is None:
            return self.runs.certificate.result(weights, rows, summed=False)
        certificate = BlockCertificate(self.equation, "Series", coefficients.steps)
        radius = 0.0 if coefficients.finite else self.equation.transition_bounds[1]
        certificate.radius = radius * self.equation.walk.norm_bounds
        certificate.separation = (1.0 - certificate.radius).clamp(min=0.0)
        certificate.gap += coefficients.left
        # Every step loses as many digits as the coefficients may cancel.
        certificate.rounding += (
            EPSILON * coefficients.size * max(1.0, self.equation.transition_norm * coefficients.scale)
        )
        if bool((certificate.rounding > MAX_ROUNDING_RESIDUAL).any()):
            # Sums of terms of one sign lose no digits, however large they are.
            bound = EPSILON * (coefficients.steps + 1) * (int(self.equation.sizes.max()) + self.equation.states)
            positive = self.equation.walk.nonnegative and bool((coefficients.values >= 0).all())
            certificate.error_bound[:] = bound if positive else torch.inf
        return certificate.result(weights, rows, summed=True)

    def _closed_by_powers(self, block: Block) -> Tensor:
        assert self.coefficients is not None
        steps, matrices = self.coefficients.steps, block.matrices
        amounts = matrices.new_ones(*matrices.shape[:2], steps + 1)
        if steps:
            diagonals = PowerDiagonals(steps, matrices.dtype)
            amounts[..., 1:] = diagonals(matrices / self.coefficients.scale, symmetric=self.equation.walk.symmetric)
        return self.coefficients.combine(amounts, self.equation.labels_of(block.nodes))

    def _pairs_by_powers(self, block: Block) -> Tensor:
        assert self.coefficients is not None
        powers = matrix_powers(block.matrices / self.coefficients.scale, self.coefficients.steps)
        return self.coefficients.combine(powers, self.equation.labels_of(block.nodes))


@dataclass(frozen=True, eq=False)
class WalkCoefficients:
    """The coefficients of walks by length.

    Args:
        values: ``[T + 1, m, k]``, C_t of walks of t steps over A / ``scale``.
        scale: a power of two, so that scaling is exact.
        finite: whether longer walks have coefficient 0, whatever the graph.
        left: bound of the coefficients of longer walks, relative to walks of no steps.
        size: sum of the relative coefficients of all lengths.
    """

    values: Tensor
    scale: float
    finite: bool
    left: float
    size: float

    @property
    def steps(self) -> int:
        return len(self.values) - 1

    def combine(self, amounts: Tensor, labels: Tensor | None) -> Tensor:
        """Multiply amounts of walks of each length ``[…, T + 1]`` by the coefficients of each row's label."""
        if labels is None:
            return amounts @ self.values[:, 0]
        out = amounts.new_zeros(*amounts.shape[:-1], self.values.shape[2])
        for label in torch.unique(labels).tolist():
            if label >= 0:
                here = labels == label
                out[here] = amounts[here] @ self.values[:, label]
        return out


def walk_coefficients(equation: Equation) -> WalkCoefficients | None:
    """Compute the coefficients of all lengths that matter; ``None`` if they are more than a few."""
    mu, k, walk = equation.transition, equation.states, equation.walk
    nilpotent = not bool(split_components(mu).any())
    largest = float(walk.norm_bounds.max()) if len(walk.ptr) > 1 else 0.0
    scale = 2.0 ** math.ceil(math.log2(largest)) if largest > 0 else 1.0
    term = equation.initial.T
    # Relative to each label: a label with small weights has nodes that see nothing else.
    rows = torch.linalg.vector_norm(term, dim=1)
    rows = torch.where(rows > 0, rows, 1.0)
    together = contracting_power(scale * mu, MAX_POWERS)
    values, sizes = [term], [1.0]
    for _ in range(max(k, MAX_POWERS) if nilpotent else MAX_POWERS):
        term = scale * (term @ mu)
        sizes.append(float((torch.linalg.vector_norm(term, dim=1) / rows).max()))
        if not bool(term.any()):
            return WalkCoefficients(torch.stack(values), scale, nilpotent, 0.0, sum(sizes))
        values.append(term)
        last = sizes[-(together or 1) :]
        if together and not nilpotent and len(sizes) > together and max(last) <= NEGLIGIBLE_RATIO:
            return WalkCoefficients(torch.stack(values), scale, False, 2.0 * sum(last), sum(sizes))
    return None
