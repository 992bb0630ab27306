"""The contract of a solver: frozen settings, ``solve(equation) -> Result``, and class attributes for what it supports.

To add a solver, subclass :class:`Solver` in a file of its own; to have it chosen automatically, add it to
:mod:`gape.solvers.auto`. No other dispatch goes by the name of a solver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, TypeVar

import torch
from torch import Tensor

from gape.graph.batching import group_by_size
from gape.solvers.certificate import RADIUS_KINDS, STATUSES, UNKNOWN, YES, code
from gape.solvers.equation import Equation
from gape.solvers.solution import Status

if TYPE_CHECKING:
    from gape.solvers.projection import Projection

T = TypeVar("T")


@dataclass(eq=False)
class Result:
    """Weights and certificates of one batch.

    Args:
        weights: ``[n, k]``; ``[Σ n², k]`` of a pair readout.
        residual: ``[graphs]``, relative residual.
        spectral_radius: ``[graphs]``, ρ(μ)ρ(A).
        separation: ``[graphs]``, min |1 - λδ| over the eigenvalues λ of μ and δ of A; NaN if not known.
        unique: ``[graphs]``, YES, NO or UNKNOWN.
        status: ``[graphs]``, indices of ``STATUSES``.
        steps: products with the walk matrix, or the size of the dense problem.
        radius_kind: one of ``RADIUS_KINDS``.
        confirmed: if ``False``, a singular status is a suspicion that :mod:`gape.solvers.singular` has to confirm; if
            ``True``, the weights of singular graphs are their least-squares solution.
        weight_bound: no weight is larger in absolute value, as far as the solver knows.
        projection, coordinates: vectors of the graphs and the solution in their coordinates. Gradients then go through
            the small projected equation.
        solver: the name of the solver of each graph; filled in by :func:`gape.solve`.
    """

    weights: Tensor
    residual: Tensor
    spectral_radius: Tensor
    separation: Tensor
    unique: Tensor
    status: Tensor
    steps: int
    radius_kind: str = "exact"
    confirmed: bool = True
    weight_bound: float = float("inf")
    projection: Projection | None = None
    coordinates: Tensor | None = None
    solver: list[str] = field(default_factory=list)

    PER_GRAPH: ClassVar[tuple[str, ...]] = (
        "residual",
        "spectral_radius",
        "separation",
        "unique",
        "status",
        "error_bound",
    )

    def __post_init__(self) -> None:
        # ``[graphs]``: bound of the relative error where :mod:`gape.solvers.error_bound` was asked for one, else NaN.
        self.error_bound = torch.full_like(self.residual, torch.nan)

    @classmethod
    def constant(cls, equation: Equation, status: Status, value: float) -> Result:
        """The result where there is nothing to solve: all weights and residuals are ``value``."""
        graphs, device = equation.num_graphs, equation.walk.ptr.device
        weights = equation.out
        if weights is None:
            weights = torch.empty(equation.walk.num_nodes, equation.states, dtype=equation.dtype, device=device)
        weights.fill_(value)
        values = torch.full((3, graphs), value, dtype=torch.float64, device=device)
        unique = torch.full((graphs,), YES if status.ok else UNKNOWN, device=device)
        codes = torch.full((graphs,), code(status), device=device)
        return cls(weights, values[0], values[1], 1.0 - values[2], unique, codes, 0, solver=["none"] * graphs)

    def update(self, graphs: Tensor, other: Result) -> None:
        """Replace the certificates of ``graphs`` by those of ``other``, which is about these graphs only."""
        for name in self.PER_GRAPH:
            getattr(self, name)[graphs] = getattr(other, name)
        self.steps = max(self.steps, other.steps)
        kinds = [other.radius_kind] if len(graphs) == len(self.status) else [self.radius_kind, other.radius_kind]
        self.radius_kind = max(kinds, key=RADIUS_KINDS.index)
        for graph, name in zip(graphs.tolist(), other.solver, strict=False):
            self.solver[graph] = name

    def update_where(self, chosen: Tensor, other: Result) -> None:
        """Replace the certificates of the ``chosen`` ``[graphs]`` by those of ``other``, about the same graphs."""
        for name in self.PER_GRAPH:
            setattr(self, name, torch.where(chosen, getattr(other, name), getattr(self, name)))
        self.steps = max(self.steps, other.steps)
        self.radius_kind = max(self.radius_kind, other.radius_kind, key=RADIUS_KINDS.index)
        self.weight_bound = max(self.weight_bound, other.weight_bound)
        names = zip(chosen.tolist(), other.solver, self.solver, strict=True)
        self.solver = [theirs if better else mine for better, theirs, mine in names]

    def has_status(self, status: Status) -> Tensor:
        """``[graphs]``: True if a graph ended with that status."""
        return self.status == code(status)

    def status_list(self) -> list[Status]:
        """The status of each graph."""
        return per_graph(self.status, STATUSES)


def per_graph(codes: Tensor, meaning: Mapping[int, T] | Sequence[T]) -> list[T]:
    """Return ``[meaning[code] for code in codes]``; faster if all codes are equal, as they mostly are.

    Example:
        >>> per_graph(torch.tensor([1, 1, 1]), "ab"), per_graph(torch.tensor([0, 1]), "ab")
        (['b', 'b', 'b'], ['a', 'b'])
    """
    if len(codes) and bool((codes == codes[0]).all()):
        return [meaning[int(codes[0])]] * len(codes)
    return [meaning[one] for one in codes.tolist()]


@dataclass(frozen=True, eq=False)
class Assignment:
    """Graphs that one solver solves together.

    Args:
        solver: the solver.
        equation: the equation of these graphs.
        graphs: their numbers in the batch; ``None`` for all.
        fallback: the solver for graphs on which ``solver`` runs out of steps, if they have at most ``fallback_nodes``
            nodes.
    """

    solver: Solver
    equation: Equation
    graphs: Tensor | None = None
    fallback: Solver | None = None
    fallback_nodes: int = 0

    def among(self, graphs: Tensor | None) -> Assignment:
        """The same, where the batch consists of ``graphs`` of a larger one."""
        if graphs is None:
            return self
        return replace(self, graphs=graphs if self.graphs is None else graphs[self.graphs])


class Solver(ABC):
    """Settings of a solver, a frozen dataclass.

    Class attributes say what it supports:

    * ``typed``: transitions by node label or edge type;
    * ``needs_symmetry``: only walk matrices that are symmetric or similar to a symmetric one;
    * ``groups_by_size``: graphs of similar size are solved together, because the largest sets the cost of all;
    * ``iterative``: it may end with ``Status.NOT_CONVERGED``.
    """

    typed: ClassVar[bool] = False
    needs_symmetry: ClassVar[bool] = False
    groups_by_size: ClassVar[bool] = False
    iterative: ClassVar[bool] = False

    @abstractmethod
    def solve(self, equation: Equation) -> Result:
        """Solve the equation of all graphs together, without gradients."""

    def compiled(self, equation: Equation, chosen: Tensor | None = None, *, relative: bool = False) -> Result | None:
        """Solve an equation that is :func:`gape.solvers.kernels.supported` by compiled kernels.

        The status of graphs that they do not certify, or that are not ``chosen`` (``[graphs]``), is
        ``Status.NOT_CONVERGED``. ``None`` if there is no kernel.

        Args:
            equation: the equation.
            chosen: ``[graphs]``, which graphs; all if ``None``.
            relative: divide the matrix of each graph by its spectral radius first.
        """
        return None

    @classmethod
    def prepares(cls) -> bool:
        """True if the solver has a :meth:`projection`."""
        return cls.projection is not Solver.projection

    def projection(self, equation: Equation) -> Projection:
        """Compute vectors of the graphs that serve any automaton with the same labels, for :func:`gape.prepare`."""
        raise NotImplementedError(f"{self.name} computes no basis")

    @property
    def name(self) -> str:
        """The name in :attr:`Solution.solver`."""
        return type(self).__name__

    def supports(self, equation: Equation) -> bool:
        """True if the solver takes this equation."""
        return (self.typed or not equation.typed) and (not self.needs_symmetry or equation.walk.similarity is not None)

    def check(self, equation: Equation) -> None:
        """Raise if the solver does not take this equation."""
        if self.supports(equation):
            return
        if equation.typed and not self.typed:
            raise ValueError(f"transitions by type need {solver_names(lambda kind: kind.typed)}, got {self!r}")
        raise ValueError(
            f"{self.name} needs a symmetric walk matrix, and {equation.walk.name!r} of this directed graph is not; "
            f"use {solver_names(lambda kind: not kind.needs_symmetry)}, or add the reverse edges"
        )

    def assign(self, equation: Equation) -> Iterator[Assignment]:
        """Cut the batch into graphs that are solved together."""
        groups = group_by_size(equation.sizes) if self.groups_by_size else []
        if len(groups) < 2:
            yield Assignment(self, equation)
            return
        for graphs in groups:
            for assignment in self.assign(equation.select(graphs)):
                yield assignment.among(graphs)


def solver_names(supports: Callable[[type[Solver]], bool]) -> str:
    """Name the solvers of the library of which ``supports`` is true, for error messages.

    Example:
        >>> solver_names(lambda kind: kind.typed)
        'Auto, FixedPoint or Kronecker'
    """
    public = vars(import_module("gape.solvers")).values()
    kinds = [kind for kind in public if isinstance(kind, type) and issubclass(kind, Solver)]
    *others, last = sorted(kind.__name__ for kind in kinds if kind is not Solver and supports(kind))
    return f"{', '.join(others)} or {last}"
