"""The named machines of the paper, as constructors of :class:`gape.Automaton`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor

from gape.arrays import finite_number, indices, positive, seed_number, whole_number


class NamedMachines:
    """What :class:`gape.Automaton` inherits: each constructor cites its place in the paper."""

    if TYPE_CHECKING:

        def __init__(self, initial: Tensor, transition: Tensor, *, made_by: str) -> None: ...

        def to(self, *, dtype: torch.dtype) -> Self: ...

    @classmethod
    def random(
        cls,
        states: int,
        damping: float = 0.02,
        *,
        labels: int = 1,
        initial_labels: Iterable[int] | None = None,
        orthogonal_initial: bool = False,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
    ) -> Self:
        """Base GAPE (§3.2 and §4.2 of the paper): orthogonal μ times ``damping``, random α.

        Args:
            states: number of states k.
            damping: γ ≥ 0, the factor on the orthogonal transition matrix, and so its spectral radius ρ(μ). Any size
                is allowed: on a graph without cycles the runs sum up whatever it is, elsewhere while γ·ρ(A) < 1.
            labels: number of node labels m, each with its own initial vector.
            initial_labels: the labels on which α is not zero; all if ``None``. The translation experiment
                (§4.1) starts runs on the first token only, ``initial_labels=(0,)`` with ``labels=2``.
            orthogonal_initial: draw α with orthonormal columns (rows if ``labels > states``), as the paper's
                text says, instead of independent standard normals, as the authors' code does.
            seed: the same seed gives the same automaton in every process.
        """
        states, labels = positive(states, "states"), positive(labels, "labels")
        damping, seed = finite_number(damping, "damping"), seed_number(seed)
        if damping < 0:
            raise ValueError(
                f"damping is the spectral radius of the transition matrix and must be at least 0, got {damping}; "
                f"-Q is as random an orthogonal matrix as Q, so {-damping} with another seed does the same"
            )
        generator = torch.Generator().manual_seed(seed)
        transition = damping * _orthogonal(states, states, generator)
        initial = (
            _orthogonal(states, labels, generator)
            if orthogonal_initial
            else torch.randn(states, labels, generator=generator, dtype=torch.float64)
        )
        made_by = f"random(states={states}, damping={damping}, labels={labels}"
        if initial_labels is not None:
            kept = indices(initial_labels, "initial_labels", labels)
            mask = torch.zeros(labels, dtype=torch.float64)
            mask[list(kept)] = 1.0
            initial = initial * mask
            made_by += f", initial_labels={kept}"
        made_by += f", orthogonal_initial={orthogonal_initial}, seed={seed})"
        return cls(initial, transition, made_by=made_by).to(dtype=dtype)

    @classmethod
    def stochastic(
        cls,
        states: int,
        *,
        labels: int = 1,
        softmax_initial: bool = False,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
    ) -> Self:
        """GAPE* (§4.2.3): the softmax of every row of an orthogonal μ, without damping.

        With ``softmax_initial`` GAPE** as the paper's text has it: each column of α goes through a softmax
        over the states. A row-stochastic μ has eigenvalue 1, so the equation is singular on every graph whose
        walk matrix has eigenvalue 1 and whose labels excite it; :func:`gape.solve` finds those.
        """
        states, labels, seed = positive(states, "states"), positive(labels, "labels"), seed_number(seed)
        generator = torch.Generator().manual_seed(seed)
        transition = torch.softmax(_orthogonal(states, states, generator), dim=1)
        initial = torch.randn(states, labels, generator=generator, dtype=torch.float64)
        if softmax_initial:
            initial = torch.softmax(initial, dim=0)
        made_by = f"stochastic(states={states}, labels={labels}, softmax_initial={softmax_initial}, seed={seed})"
        return cls(initial, transition, made_by=made_by).to(dtype=dtype)

    @classmethod
    def sinusoidal(cls, states: int) -> Self:
        """Proposition 1: the sinusoids of Vaswani et al. (2017) on a directed path.

        Label 0 on the first node, 1 elsewhere; node ``i`` (counted from 0) gets position ``i``. (The paper
        writes μ to the power of the 1-based node number; its equation (2) gives one less.)

        Example:
            >>> import gape
            >>> gape.Automaton.sinusoidal(4).initial[:, 0].tolist()
            [0.0, 1.0, 0.0, 1.0]
        """
        if whole_number(states, "states", at_least=1) % 2:
            raise ValueError(f"sinusoids come in pairs, so states must be even, got {states}")
        angle = -(10000.0 ** (-torch.arange(0, states, 2, dtype=torch.float64) / states))
        transition = torch.zeros(states, states, dtype=torch.float64)
        sine, cosine = torch.arange(0, states, 2), torch.arange(1, states, 2)
        transition[sine, sine] = transition[cosine, cosine] = angle.cos()
        transition[sine, cosine] = angle.sin()
        transition[cosine, sine] = -angle.sin()
        initial = torch.zeros(states, 2, dtype=torch.float64)
        initial[cosine, 0] = 1.0
        return cls(initial, transition, made_by=f"sinusoidal({states})")

    @classmethod
    def pagerank(cls, nodes: int, beta: float = 0.15) -> Self:
        """Personalised PageRank (remark after equation (3)): μ = (1-β)I and αℓ = βI, with node-index labels.

        On the walk matrix D⁻¹A, entry ``[v, u]`` of the weights is the probability that a walk from ``u``
        that restarts with probability β is at ``v``: column ``u`` is PPR(u), on directed graphs too.
        """
        nodes, beta = positive(nodes, "nodes"), finite_number(beta, "beta")
        if not 0 < beta <= 1:
            raise ValueError(f"beta is a restart probability in (0, 1], got {beta}")
        eye = torch.eye(nodes, dtype=torch.float64)
        return cls(beta * eye, (1 - beta) * eye, made_by=f"pagerank(nodes={nodes}, beta={beta})")

    @classmethod
    def shift(cls, length: int) -> Self:
        """A chain of ``length + 1`` states that counts steps (§3.3.3).

        State ``t`` holds the walks of exactly ``t`` steps. Its closed readout on D⁻¹A without state 0 is the
        random-walk encoding [W_vv, (W²)_vv, …] of Dwivedi et al. (2022).
        """
        length = positive(length, "length")
        initial = torch.zeros(length + 1, 1, dtype=torch.float64)
        initial[0] = 1.0
        transition = torch.diag(torch.ones(length, dtype=torch.float64), 1)
        return cls(initial, transition, made_by=f"shift({length})")

    @classmethod
    def katz(cls, beta: float = 0.1) -> Self:
        """Katz centrality: one state, every walk of ``t`` steps that ends in the node counts βᵗ."""
        beta = finite_number(beta, "beta")
        return cls(
            torch.ones(1, 1, dtype=torch.float64),
            torch.full((1, 1), beta, dtype=torch.float64),
            made_by=f"katz({beta})",
        )


def _orthogonal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """Haar-distributed: orthonormal columns, or rows if ``columns > rows``.

    The factor Q of a Gaussian matrix G = QR with positive diag(R), written as a product of Householder reflections
    of independent Gaussian vectors (Stewart, 1980). LAPACK's QR adds in an order that depends on the number of
    threads from about k = 64 on; here the same seed gives the same bits in every process.
    """
    if columns > rows:
        return _orthogonal(columns, rows, generator).T.contiguous()
    gaussian = torch.randn(rows, columns, generator=generator, dtype=torch.float64).numpy()
    q = np.eye(rows, columns)
    for j in reversed(range(columns)):
        v = gaussian[j:, j].copy()
        sign = 1.0 if v[0] >= 0 else -1.0
        v[0] += sign * math.sqrt(math.fsum(v * v))
        block = q[j:, j:]
        block -= v[:, None] * ((v[:, None] * block).sum(0) * (2.0 / math.fsum(v * v)))
        q[:, j] *= -sign
    return torch.from_numpy(q)
