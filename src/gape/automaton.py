"""Weighted graph-walking automata: Definition 2 of Soga & Chiang (2023), and the named machines of the paper."""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gape._internal.files import replacing
from gape._internal.validation import (
    as_tensor,
    check_finite,
    finite_number,
    indices,
    positive,
    seed_number,
    whole_number,
)

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


class _TrackedField:
    """Field that re-applies cast and mask on every read, so that optimiser steps stay visible.

    A tensor that requires gradients is kept as it was set and passed through ``Automaton._fit`` at every read, also
    after it was frozen. Other tensors are read as they were set.
    """

    def __init__(self, name: str) -> None:
        self._name, self._mark = name, f"_tracked_{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        held = vars(instance)
        given = held[self._name]
        return instance._fit(self._name, given) if held[self._mark] else given

    def __set__(self, instance: Any, given: Any) -> None:
        vars(instance)[self._name] = given
        vars(instance)[self._mark] = isinstance(given, Tensor) and given.requires_grad


@dataclass(frozen=True, eq=False, repr=False)
class Automaton:
    r"""A weighted graph-walking automaton over node labels ``0 … m-1`` (Definition 2 of the paper).

    A run starts at any node ``u`` in state ``q`` with weight ``initial[q, label(u)]``; moving from state
    ``q`` to ``r`` along an edge multiplies by ``transition[q, r]`` and the edge's weight; stopping in state
    ``r`` at node ``v`` multiplies by ``final[r, label(v)]``. :func:`gape.solve` sums the runs.

    An automaton never changes: it keeps copies of the weights, except of tensors that require gradients, which
    it follows when an optimiser steps.

    Args:
        initial: α, ``[states, labels]``. Rows outside ``starting`` are set to zero.
        transition: μ, ``[states, states]``, or ``[types, states, states]`` for one matrix per type.
        final: τ, ``[states, labels]``; all ones if ``None``, as in the paper's experiments.
        starting: the starting states S, as indices; all states if ``None``.
        transition_by: what a type is: ``"node"`` (the label of the node being left, as in the paper) or
            ``"edge"`` (the type of the edge taken). Read only when ``transition`` has three axes.

    Example:
        >>> walker = Automaton(initial=[[1.0]], transition=[[0.5]])
        >>> walker.states, walker.labels
        (1, 1)
    """

    initial: Tensor
    transition: Tensor
    final: Tensor | None = None
    starting: tuple[int, ...] | None = None
    transition_by: Literal["node", "edge"] = "node"
    # The call of a named constructor, for the repr.
    made_by: str = field(default="", kw_only=True)
    _dtype: torch.dtype = field(init=False)

    def __post_init__(self) -> None:
        given = vars(self)
        initial = _weights(given["initial"], "initial")
        transition = _weights(given["transition"], "transition")
        dtype = torch.promote_types(initial.dtype, transition.dtype)
        if transition.device != initial.device:
            raise ValueError(f"initial is on {initial.device}, transition on {transition.device}; move one of them")
        if initial.dim() != 2:
            raise ValueError(f"initial must be [states, labels], got shape {list(initial.shape)}")
        states, labels = initial.shape
        if states < 1 or labels < 1:
            raise ValueError(f"an automaton needs at least 1 state and 1 label, got initial {[states, labels]}")
        if transition.dim() not in (2, 3) or tuple(transition.shape[-2:]) != (states, states):
            raise ValueError(
                f"transition must be [{states}, {states}] or [types, {states}, {states}] to fit the "
                f"{states} states of initial, got shape {list(transition.shape)}"
            )
        if self.transition_by not in ("node", "edge"):
            raise ValueError(f"transition_by must be 'node' or 'edge', got {self.transition_by!r}")
        if transition.dim() == 3 and self.transition_by == "node" and len(transition) != labels:
            raise ValueError(
                f"transition by node label needs one matrix for each of the {labels} labels, got "
                f"{len(transition)}; pass transition_by='edge' if its types are edge types"
            )
        final = None if given["final"] is None else _weights(given["final"], "final")
        if final is not None:
            if final.shape != initial.shape:
                raise ValueError(f"final must be [{states}, {labels}] like initial, got {list(final.shape)}")
            if final.device != initial.device:
                raise ValueError(f"initial is on {initial.device}, final on {final.device}; move one of them")
            dtype = torch.promote_types(dtype, final.dtype)
        object.__setattr__(self, "_dtype", dtype)
        if self.starting is not None:
            object.__setattr__(self, "starting", indices(self.starting, "starting states", states))
        for name, tensor in (("initial", initial), ("transition", transition), ("final", final)):
            if tensor is not None and not tensor.requires_grad:
                tensor = self._fit(name, tensor)
            object.__setattr__(self, name, tensor)

    def _fit(self, name: str, tensor: Tensor) -> Tensor:
        """Cast to the common dtype, and set α to zero outside the starting states."""
        tensor = tensor.to(self.dtype)
        if name != "initial" or self.starting is None:
            return tensor
        allowed = torch.zeros(len(tensor), 1, dtype=torch.bool, device=tensor.device)
        allowed[list(self.starting)] = True
        return tensor * allowed

    # ------------------------------------------------------------------ properties

    @property
    def states(self) -> int:
        """Number of states k."""
        return len(vars(self)["initial"])

    @property
    def labels(self) -> int:
        """Number of node labels m."""
        return int(vars(self)["initial"].shape[1])

    @property
    def typed(self) -> bool:
        """True if the transition depends on a node label or an edge type."""
        return bool(vars(self)["transition"].dim() == 3)

    @property
    def dtype(self) -> torch.dtype:
        return self._dtype

    @property
    def device(self) -> torch.device:
        return self.initial.device

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {"initial": self.initial, "transition": self.transition}
        return tensors if self.final is None else {**tensors, "final": self.final}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Automaton):
            return NotImplemented
        mine, theirs = self._tensors(), other._tensors()
        return (
            self.starting == other.starting
            and (not self.typed or self.transition_by == other.transition_by)
            and mine.keys() == theirs.keys()
            and all(
                mine[name].dtype == theirs[name].dtype
                and mine[name].device == theirs[name].device
                and torch.equal(mine[name], theirs[name])
                for name in mine
            )
        )

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that change with any weight, shape, dtype or setting, not with the device."""
        text = f"{self.starting}{self.transition_by if self.typed else ''}{self.dtype}"
        digest = hashlib.sha256(text.encode())
        for name, tensor in self._tensors().items():
            digest.update(f"{name}{list(tensor.shape)}".encode())
            # + 0 turns -0.0 into 0.0, so that equal weights have equal digests.
            digest.update((tensor.detach().cpu() + 0.0).contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        parts = [f"states={self.states}", f"labels={self.labels}"]
        if self.typed:
            parts.append(f"types={len(self.transition)} by {self.transition_by}")
        if self.starting is not None:
            parts.append(f"starting={list(self.starting)}")
        parts.append("final=ones" if self.final is None else "final=given")
        if self.made_by:
            parts.append(f"made_by={self.made_by}")
        parts += [f"dtype={_name(self.dtype)}", f"digest={self.digest}"]
        return f"Automaton({', '.join(parts)})"

    def to(self, device: torch.device | torch.dtype | str | None = None, dtype: torch.dtype | None = None) -> Automaton:
        """Return the automaton on another device or in another floating-point type.

        Example:
            >>> Automaton.katz(0.5).to(dtype=torch.float32).dtype
            torch.float32
        """
        if isinstance(device, torch.dtype):  # as in tensor.to(dtype)
            device, dtype = None, device
        allowed = [each for each in DTYPES if each.is_complex >= self.dtype.is_complex]
        if dtype is not None and dtype not in allowed:
            raise ValueError(
                f"the weights are {_name(self.dtype)} and cannot become {_name(dtype)}: dtype must be one of "
                f"{', '.join(map(_name, allowed))}, got {_name(dtype)}"
            )
        if dtype in (None, self.dtype) and (device is None or torch.device(device) == self.initial.device):
            return self
        return Automaton(
            initial=self.initial.to(device=device, dtype=dtype),
            transition=self.transition.to(device=device, dtype=dtype),
            final=None if self.final is None else self.final.to(device=device, dtype=dtype),
            starting=self.starting,
            transition_by=self.transition_by,
            made_by=self.made_by,
        )

    # ------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NumPy ``.npz`` file (no pickle in it), whole or not at all."""
        arrays: dict[str, Any] = {name: t.detach().cpu().numpy() for name, t in self._tensors().items()}
        if self.starting is not None:
            arrays["starting"] = np.array(self.starting, dtype=np.int64)
        arrays["transition_by"] = np.array(self.transition_by)
        arrays["made_by"] = np.array(self.made_by)
        with replacing(path) as temporary, open(temporary, "xb") as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Automaton:
        """Read what :meth:`save` wrote."""
        try:
            with zipfile.ZipFile(path):
                loaded = np.load(path, allow_pickle=False)
            with loaded:
                arrays = {name: loaded[name] for name in loaded.files}
        except (zipfile.BadZipFile, ValueError, EOFError) as error:
            raise ValueError(f"{os.fspath(path)} is not a saved automaton: {error}") from error
        missing = {"initial", "transition"} - arrays.keys()
        if missing:
            raise ValueError(f"{os.fspath(path)} holds {sorted(arrays)}; it lacks {sorted(missing)}")
        return cls(
            initial=arrays["initial"],
            transition=arrays["transition"],
            final=arrays.get("final"),
            starting=tuple(arrays["starting"].tolist()) if "starting" in arrays else None,
            transition_by=str(arrays.get("transition_by", "node")),  # type: ignore[arg-type]  # checked when made
            made_by=str(arrays.get("made_by", "")),
        )

    # ------------------------------------------------------------------ the named machines of the paper

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
    ) -> Automaton:
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
    ) -> Automaton:
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
    def sinusoidal(cls, states: int) -> Automaton:
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
    def pagerank(cls, nodes: int, beta: float = 0.15) -> Automaton:
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
    def shift(cls, length: int) -> Automaton:
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
    def katz(cls, beta: float = 0.1) -> Automaton:
        """Katz centrality: one state, every walk of ``t`` steps that ends in the node counts βᵗ."""
        beta = finite_number(beta, "beta")
        return cls(
            torch.ones(1, 1, dtype=torch.float64),
            torch.full((1, 1), beta, dtype=torch.float64),
            made_by=f"katz({beta})",
        )


# Not in the class, where a dataclass takes a descriptor for a default value.
for _field in ("initial", "transition", "final"):
    setattr(Automaton, _field, _TrackedField(_field))


def _weights(value: Any, name: str) -> Tensor:
    tensor = as_tensor(value, name)
    if not (tensor.is_floating_point() or tensor.is_complex()):
        tensor = tensor.to(torch.float64)
    if tensor.dtype not in DTYPES:
        raise ValueError(f"{name} must be one of {', '.join(map(_name, DTYPES))}, got {_name(tensor.dtype)}")
    check_finite(tensor, name)
    return tensor if tensor.requires_grad else tensor.detach().clone(memory_format=torch.contiguous_format)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


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


@dataclass(frozen=True, eq=False)
class RootedAutomaton:
    r"""Automata of one state whose weights depend on the distances of both ends of a step from a root.

    For ``gape.solve(automaton, graph, readout="rooted")``; the mathematics is in :mod:`gape.solvers.rooted`.

    Args:
        transition: ``[machines, layers, layers]``, weights T of steps from layer to layer, relative to 1/ρ(A): each
            below 1 in absolute value, and symmetric, T[a, b] = T[b, a]. The last layer has all nodes beyond.
        radius: nodes further from the root than that do not exist for its runs; ``None`` to keep all.
        length: give the runs of 1, 2, … ``length`` steps each on its own instead of the sum over all lengths.

    Example:
        >>> RootedAutomaton(torch.full((2, 3, 3), 0.5), radius=2).states
        2
    """

    transition: Tensor
    radius: int | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        weights = _weights(self.transition, "transition")
        if weights.dim() != 3 or weights.shape[1] != weights.shape[2] or 0 in weights.shape:
            raise ValueError(f"transition must have shape [machines, layers, layers], got {list(weights.shape)}")
        if weights.is_complex():
            raise ValueError(f"rooted automata need real weights, got {_name(weights.dtype)}")
        values = weights.detach()
        if not torch.equal(values, values.mT):
            raise ValueError("transition must be symmetric: a step from layer a to b weighs as much as one from b to a")
        if not bool((values.abs() < 1).all()):
            raise ValueError(
                f"transition weights must be below 1 in absolute value, got {values.abs().max().item():.3g}; they are "
                "relative to 1/ρ(A), and runs sum up below that only"
            )
        if self.radius is not None:
            whole_number(self.radius, "radius", at_least=0)
        if self.length is not None:
            whole_number(self.length, "length", at_least=1)
            if weights.requires_grad and torch.is_grad_enabled():
                raise ValueError(
                    f"runs by length have no gradients, got length={self.length} and weights that require them"
                )
        object.__setattr__(self, "transition", weights)

    @property
    def states(self) -> int:
        """Number of machines: each has one state."""
        return len(self.transition)

    @property
    def dtype(self) -> torch.dtype:
        return self.transition.dtype
