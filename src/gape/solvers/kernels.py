"""Calls of the compiled kernels that solve equations on batches of small graphs, several ranges of graphs at a time."""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_int32, c_int64, c_void_p
from typing import NamedTuple

import torch
from torch import Tensor

from gape._internal.threads import map_threads, num_threads
from gape.graph.small_graphs import SmallGraphs, address
from gape.graph.spectral_radius import RITZ_TOLERANCE
from gape.native import kernel as find_kernel
from gape.native import library
from gape.solvers.equation import Equation

# Longest runs and most labels that a kernel follows.
MAX_KERNEL_STEPS = 64
MAX_KERNEL_LABELS = 8
# Numbers in the Hessenberg matrices of graphs that are solved together: 128 MiB.
MAX_HESSENBERG_NUMBERS = 1 << 24


class LabelledGraphs(SmallGraphs):
    """The graphs of an equation with the column of each node's label among those in use."""

    def __init__(self, equation: Equation, chosen: Tensor | None) -> None:
        super().__init__(equation.walk, chosen)
        self.labels = len(equation.used_labels)
        self.label: Tensor | None = None
        if equation.labels is not None:
            column = torch.full((equation.initial.shape[1],), -1)
            column[equation.used_labels] = torch.arange(self.labels)
            self.label = column[equation.labels]


def supported(equation: Equation) -> bool:
    """True if the kernels take the equation: small graphs on the CPU, real numbers, labels rather than a given rhs."""
    return (
        library() is not None
        and equation.adjacency.scan is not None
        and not equation.typed
        and not equation.requires_grad
        and equation.given_rhs is None
        and not equation.initial.is_complex()
        and not equation.transition.is_complex()
        and len(equation.used_labels) <= MAX_KERNEL_LABELS
    )


def output(equation: Equation) -> Tensor:
    """Return memory for the weights: ``equation.out`` if a kernel knows its dtype, otherwise new float64 memory."""
    if equation.out is not None and equation.out.dtype in (torch.float32, torch.float64):
        assert equation.out.is_contiguous()
        return equation.out
    return torch.empty(equation.walk.num_nodes, equation.states, dtype=torch.float64)


def padded_columns(x: Tensor) -> Tensor:
    """``[…, k]`` with zeros up to a multiple of four columns, as many as the kernels multiply at a time."""
    return torch.nn.functional.pad(x, (0, -x.shape[-1] % 4)).contiguous()


class WalkSums(NamedTuple):
    """Results of the series kernel per graph; ``residual`` is infinite where the sum did not end."""

    weights: Tensor
    residual: Tensor
    growth: Tensor
    moved: Tensor
    steps: int


_SERIES = (
    *(c_void_p, c_int64, c_int64, c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_int64, c_void_p),
    *(c_double, c_int64, c_int32, c_void_p, c_int64, c_int32, c_void_p, c_void_p, c_void_p),
)


def walk_sums(
    equation: Equation,
    coefficients: Tensor,
    sizes: Tensor,
    tolerance: float,
    in_a_row: int,
    counts: bool,
    chosen: Tensor | None,
) -> WalkSums:
    """Sum the runs of the chosen graphs: ``X = Σ_t W_t C_t`` from ``coefficients`` C ``[steps, labels, k]``.

    Args:
        equation: one that is ``supported``.
        coefficients: C.
        sizes: ``[steps]``, ‖C_t‖₂.
        tolerance: relative residual at which a graph is done, if so many terms ``in_a_row`` stay below.
        in_a_row: that number.
        counts: whether the walk counts bound the spectral radius.
        chosen: ``[graphs]``, which graphs; all if ``None``.
    """
    kernel = find_kernel("series", *_SERIES)
    assert kernel is not None
    graphs, weights, c = LabelledGraphs(equation, chosen), output(equation), padded_columns(coefficients)
    rhs_norm = equation.rhs_norm.contiguous()
    residual, growth, moved = torch.full((3, equation.num_graphs), torch.inf, dtype=torch.float64)
    steps = graphs.run(
        kernel,
        *(address(graphs.label), graphs.labels, c.data_ptr(), c.shape[-1], sizes.data_ptr(), len(sizes)),
        *(rhs_norm.data_ptr(), tolerance, in_a_row, counts),
        *(weights.data_ptr(), equation.states, weights.dtype == torch.float32),
        *(residual.data_ptr(), growth.data_ptr(), moved.data_ptr()),
    )
    return WalkSums(weights, residual, growth, moved, steps)


class Diagonalised(ctypes.Structure):
    """The automaton for the Krylov kernel, as ``automaton`` in ``native/krylov.c``."""

    _fields_ = [
        *((name, c_int64) for name in ("poles", "states", "stride", "labels")),
        *((name, c_void_p) for name in ("re", "im", "g_re", "g_im", "transition", "initial")),
        ("radius", c_double),
    ]

    @classmethod
    def of(cls, equation: Equation, poles: Tensor, parts: Tensor) -> Diagonalised:
        """From the eigenvalues of μ and their parts of the weights, as :func:`galerkin` has them."""
        numbers = [
            *(poles.real.contiguous(), poles.imag.contiguous()),
            *(padded_columns(x) for x in (parts.real, parts.imag, equation.transition)),
            padded_columns(equation.initial.T[equation.used_labels]),
        ]
        shape = len(poles), equation.states, numbers[-1].shape[-1], len(equation.used_labels)
        found = cls(*shape, *map(address, numbers), equation.transition_bounds[1])
        found.alive = numbers  # the tensors to which it points
        return found


class Galerkin(NamedTuple):
    """Results of the Krylov kernels per graph; ``residual`` is infinite where they certify nothing."""

    weights: Tensor
    residual: Tensor
    radius: Tensor
    separation: Tensor
    size: Tensor
    steps: int


_KRYLOV = (
    *(c_void_p, c_int64, c_int64, c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_int32, c_double),
    *(c_void_p, c_double, c_void_p, c_int32, c_void_p, c_void_p, c_void_p, c_void_p),
)


def galerkin(
    equation: Equation,
    poles: Tensor,
    parts: Tensor,
    limit: int,
    tolerance: float,
    chosen: Tensor | None,
    relative: bool = False,
) -> Galerkin:
    """Solve the chosen graphs in Krylov spaces by the Lanczos process.

    Args:
        equation: one that is ``supported``, with a walk matrix similar to a symmetric one.
        poles: ``[poles]``, eigenvalues λ of μ, complex.
        parts: ``[labels, poles, k]``, complex: the weights are Re Σ_λ (I - λH)⁻¹ times these, see ``native/krylov.c``.
        limit: largest dimension of a space.
        tolerance: relative residual at which a graph is done.
        chosen: ``[graphs]``, which graphs; all if ``None``.
        relative: divide the matrix of each graph by its spectral radius, found in the same space; for one label and
            nonnegative matrices.
    """
    kernel = find_kernel("krylov", *_KRYLOV)
    assert kernel is not None
    graphs, weights, walk = LabelledGraphs(equation, chosen), output(equation), equation.walk
    similarity = None if walk.symmetric or walk.similarity is None else walk.similarity.contiguous()
    automaton = Diagonalised.of(equation, poles, parts)
    rhs_norm, norm = equation.rhs_norm.contiguous(), walk.norm_bounds.contiguous()
    found = torch.full((4, equation.num_graphs), torch.inf, dtype=torch.float64)
    steps = graphs.run(
        kernel,
        *(address(graphs.label), ctypes.addressof(automaton), address(similarity), limit, norm.data_ptr()),
        *(
            walk.nonnegative,
            RITZ_TOLERANCE if relative else 0.0,
            rhs_norm.data_ptr(),
            tolerance,
            weights.data_ptr(),
            weights.dtype == torch.float32,
        ),
        *(x.data_ptr() for x in found),
    )
    residual, radius, separation, size = found
    return Galerkin(weights, residual, radius, separation, size, steps)


_ARNOLDI = (
    *(c_void_p, c_int64, c_int64, c_void_p, c_void_p, c_int64, c_void_p, c_double),
    *(c_void_p, c_int32, c_void_p, c_void_p, c_void_p, c_void_p),
)


def directed_galerkin(
    equation: Equation, poles: Tensor, parts: Tensor, limit: int, tolerance: float, chosen: Tensor | None
) -> Galerkin:
    """Solve the chosen graphs in Krylov spaces by the Arnoldi process: as :func:`galerkin` for any walk matrix."""
    kernel = find_kernel("arnoldi", *_ARNOLDI)
    assert kernel is not None
    weights, automaton = output(equation), Diagonalised.of(equation, poles, parts)
    labels, graphs = len(equation.used_labels), equation.num_graphs
    limit = min(limit, int(equation.sizes.max()))
    rhs_norm = equation.rhs_norm.contiguous()
    residual, size = torch.full((2, graphs), torch.inf, dtype=torch.float64)
    radius, separation = torch.zeros(graphs, dtype=torch.float64), torch.ones(graphs, dtype=torch.float64)
    everyone = torch.ones(graphs, dtype=torch.bool) if chosen is None else chosen
    steps = 0
    groups = torch.split(everyone.nonzero().flatten(), max(1, MAX_HESSENBERG_NUMBERS // (labels * limit**2)))
    for some in groups:
        h = torch.zeros(len(some), labels, limit, limit, dtype=torch.float64)
        slot = torch.zeros(graphs, dtype=torch.int64)
        slot[some] = torch.arange(len(some))
        mask = torch.zeros(graphs, dtype=torch.bool).index_fill(0, some, True)
        batch = LabelledGraphs(equation, mask)
        found = batch.run(
            kernel,
            *(address(batch.label), ctypes.addressof(automaton), limit, rhs_norm.data_ptr(), tolerance),
            *(weights.data_ptr(), weights.dtype == torch.float32),
            *(slot.data_ptr(), h.data_ptr(), residual.data_ptr(), size.data_ptr()),
        )
        steps = max(steps, found)
        pieces = h.chunk(num_threads())
        theta = torch.cat(map_threads(torch.linalg.eigvals, pieces)).flatten(1)
        radius[some] = theta.abs().amax(1)
        separation[some] = (1.0 - theta.unsqueeze(-1) * poles).abs().flatten(1).amin(1).clamp(max=1.0)
    return Galerkin(weights, residual, radius, separation, size, steps)
