"""What the closed and the pair readout share: an automaton on one part of a batch, with dense matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gape.automaton import Automaton
from gape.encodings.certificate import Certificate
from gape.encodings.from_sources import ROOM, runs_from_each, schur
from gape.encodings.nearest import dense_runs, too_large
from gape.encodings.run_lengths import RunLengths, run_lengths
from gape.graph.batching import Block
from gape.graph.graph import Graph
from gape.graph.walk_matrix import WalkMatrix
from gape.solvers.certificate import below_one
from gape.solvers.equation import check_fit
from gape.solvers.kronecker import within
from gape.solvers.schur_form import SchurForm, pole_gaps, solve_diagonal
from gape.solvers.singular import MAX_DENSE_UNKNOWNS
from gape.solvers.solution import OnSingular


@dataclass(frozen=True, eq=False)
class Readout:
    """One automaton on one part of a batch.

    Args:
        automaton: with one μ, in float64.
        form: the Schur form of μ.
        walk: the walk matrix.
        labels: ``[n]``, ``None`` if there is only one.
        lengths: the worth of walks by length where few lengths matter, ``None`` otherwise.
        on_singular: what to do with singular equations.
        certificate: filled in on the way.
    """

    automaton: Automaton
    form: SchurForm
    walk: WalkMatrix
    labels: Tensor | None
    lengths: RunLengths | None
    on_singular: OnSingular
    certificate: Certificate

    @classmethod
    def of(cls, automaton: Automaton, part: Graph, matrix: str, on_singular: OnSingular) -> Readout:
        """``automaton`` on ``part``; nothing dense is made yet."""
        walk, form = part.walk(matrix), SchurForm.of(automaton.transition)
        lengths = run_lengths(automaton, walk)
        if lengths is not None:
            certificate = Certificate(part.num_graphs, part.device, "Series", True, lengths.steps)
            radius = 0.0 if lengths.finite else float(form.eigenvalues.abs().max())
            certificate.add_bound(radius * walk.norm_bounds)
            certificate.gap += lengths.left
            certificate.rounding += 0.0 if lengths.finite else 2.0**-52 * lengths.size
        else:
            name = "Schur" if walk.similarity is None else "Spectral"
            certificate = Certificate(part.num_graphs, part.device, name, False, int(part.sizes.max()))
        labels = part.labels if automaton.labels > 1 else None
        return cls(automaton, form, walk, labels, lengths, on_singular, certificate)

    def bytes_needed(self, *, pairs: bool) -> int:
        """Memory that work on the largest graph takes, counted in the arrays of the code below and then measured."""
        n, k = int(self.walk.adjacency.sizes.max()), self.automaton.states
        if self.lengths is not None:
            powers = self.lengths.steps + 1
            return 8 * n**2 * (2 * powers + 2 * k + 2 if pairs else 6 + 4 * math.isqrt(powers))
        if self.walk.similarity is not None:
            return 8 * n**2 * (5 * k + 6 if pairs else 10)
        return 8 * n**2 * (14 + (3 * k // 2 if pairs else 0)) + 4 * 16 * min(ROOM, n**2 * k)

    @property
    def _norm(self) -> float:
        """‖μ‖₂."""
        return float(torch.linalg.matrix_norm(self.automaton.transition, 2))

    def labels_of(self, block: Block) -> Tensor | None:
        return None if self.labels is None else self.labels[block.nodes]

    def eigenvectors(self, block: Block) -> tuple[Tensor, Iterator[tuple[Tensor | float, Tensor]]]:
        """Eigenvectors ``[B, n, J]`` and, label by label, where it is, and (I - θ_jμᵀ)⁻¹α of it ``[B, J, k]``."""
        theta, vectors = torch.linalg.eigh(symmetrised(block, self.walk))
        return vectors, self._by_label(block, theta, vectors)

    def _by_label(self, block: Block, theta: Tensor, vectors: Tensor) -> Iterator[tuple[Tensor | float, Tensor]]:
        labels, distance = self.labels_of(block), pole_gaps(theta, self.form)
        gap, total, size = theta.new_zeros(3, len(theta))
        for label in [0] if labels is None else torch.unique(labels).tolist():
            source = self.automaton.initial[:, label]
            here = torch.ones_like(theta) if labels is None else (labels == label).to(theta.dtype)
            y, left = solve_diagonal(
                theta, self.automaton.transition, self.form, source.expand(*theta.shape, -1), distance
            )
            share = (here.unsqueeze(1) @ vectors.square()).squeeze(1)
            gap += (share * left.square()).sum(1)
            size += (share * y.abs().square().sum(-1)).sum(1)
            total += here.sum(1) * source.square().sum()
            yield (1.0 if labels is None else labels == label), y
        total = torch.where(total > 0, total, 1.0)
        self.certificate.add_spectrum(block.graphs, theta, self.form)
        self.certificate.gap[block.graphs] = (gap / total).sqrt()
        self.certificate.add_rounding(block.graphs, (size / total).sqrt(), self._norm * theta.abs().amax(1))

    def schur(self, block: Block, *, back: bool) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
        """Graph in the block, its Schur vectors, source nodes ``[b]`` and their runs ``[k, n, b]``, piece by piece.

        Singular graphs are left to :meth:`nearest`. ``back``: the runs need only be right where they come back to,
        which is in the strongly connected component where they began.
        """
        for i, matrix in enumerate(block.matrices):
            graph = block.graphs[i : i + 1]
            component = self.walk.components[block.nodes[i]]
            inside = within(matrix, component)
            self.certificate.add_spectrum(graph, torch.linalg.eigvals(inside).unsqueeze(0), self.form)
            if self.certificate.singular[graph]:
                continue
            upper, vectors = schur(inside if back else matrix)
            initial = self._initial(block, i)
            size = torch.zeros(2, dtype=torch.float64, device=matrix.device)
            for sources, columns in runs_from_each(upper, vectors, self.form, initial):
                size += torch.stack([columns.abs().square().sum(), initial[sources].square().sum()])
                yield i, vectors, sources, columns
            norm = self._norm * float(torch.linalg.matrix_norm(matrix))
            self.certificate.add_rounding(graph, (size[0] / size[1].clamp(min=1e-300)).sqrt(), norm)
            self.certificate.suspect_large(graph)

    def nearest(self, block: Block) -> Iterator[tuple[int, Tensor]]:
        """Graphs in the block that are, or seem, singular without orthogonal eigenvectors; their runs ``[n, n, k]``.

        The only solution for each source node, or the shortest that comes nearest, by one dense system for each graph.
        """
        if self.walk.symmetric:  # settled with the eigenvectors
            return
        for i in self.certificate.singular[block.graphs].nonzero().flatten().tolist():
            initial, graph = self._initial(block, i), block.graphs[i]
            if initial.numel() > MAX_DENSE_UNKNOWNS:
                if self.certificate.suspect[graph]:
                    continue
                if self.on_singular == "least_squares":
                    raise ValueError(too_large(*initial.shape))
                self.certificate.gap[graph] = torch.inf
                continue
            component, contracts = self.walk.components[block.nodes[i]], bool(below_one(self.certificate.radius[graph]))
            runs, residual, regular = dense_runs(
                block.matrices[i], self.automaton.transition, initial, component, contracts
            )
            self.certificate.settle(graph, residual, regular)
            yield i, runs

    def _initial(self, block: Block, i: int) -> Tensor:
        """``[n, k]``: what the runs from each node of a graph begin with."""
        labels = self.labels_of(block)
        return self.automaton.initial.T[torch.zeros_like(block.nodes[i]) if labels is None else labels[i]]


def symmetrised(block: Block, walk: WalkMatrix) -> Tensor:
    """``diag(c) M diag(1/c)``, symmetric; its powers have the diagonals of those of M."""
    matrices = block.matrices
    if not walk.symmetric:
        assert walk.similarity is not None
        c = walk.similarity[block.nodes]
        matrices = c.unsqueeze(2) * matrices / c.unsqueeze(1)
    return (matrices + matrices.mT) / 2


def check(automaton: Automaton, graph: Graph, on_singular: str) -> None:
    """Refuse automata with several transition matrices or complex weights, and graphs without the labels needed."""
    if on_singular not in ("raise", "least_squares"):
        raise ValueError(f"on_singular must be 'raise' or 'least_squares', got {on_singular!r}")
    if automaton.typed:
        raise ValueError(
            f"closed and pair readouts need one transition matrix, got {len(automaton.transition)} by "
            f"{automaton.transition_by}; use gape.solve"
        )
    if automaton.dtype.is_complex or automaton.final is not None:
        raise ValueError(f"closed and pair readouts need real weights and no final weights, got {automaton!r}")
    check_fit(automaton, graph)
