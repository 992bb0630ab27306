"""An automaton whose weights are parameters."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from gape._internal.validation import positive, seed_number
from gape.automaton import Automaton
from gape.nn.learnable.transitions import DenseTransition, DiagonalTransition

TransitionForm = Literal["dense", "diagonal"]
TransitionBy = Literal["none", "node", "edge", "both"]


class LearnableAutomaton(nn.Module):
    """A weighted graph-walking automaton (Definition 2 of Soga & Chiang, 2023) to be learned.

    Args:
        states: number of states k.
        labels: number of node labels m.
        form: of μ: "dense", or "diagonal" for complex poles in conjugate pairs (then k is even).
        transition_by: one μ ("none"), one for the label of the node left ("node"), for the type of the edge taken
            ("edge"), or for each combination ("both").
        edge_types: number of edge types R.
        damping: γ, the bound of ‖μ‖₂.
        final: whether to learn final weights τ.
        seed: of the first weights. A dense automaton without types starts as :meth:`gape.Automaton.random` does.

    Example:
        >>> machine = LearnableAutomaton(states=8, labels=28, transition_by="node", damping=0.9)
        >>> machine.automaton.transition.shape
        torch.Size([28, 8, 8])
    """

    def __init__(
        self,
        states: int,
        labels: int = 1,
        *,
        form: TransitionForm = "dense",
        transition_by: TransitionBy = "none",
        edge_types: int = 1,
        damping: float = 0.9,
        final: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if form not in ("dense", "diagonal"):
            raise ValueError(f"transition must be 'dense' or 'diagonal', got {form!r}")
        if transition_by not in ("none", "node", "edge", "both"):
            raise ValueError(f"transition_by must be 'none', 'node', 'edge' or 'both', got {transition_by!r}")
        for name, count in (("states", states), ("labels", labels), ("edge_types", edge_types)):
            positive(count, name)
        seed = seed_number(seed)
        if form == "diagonal" and states % 2:
            raise ValueError(f"a diagonal transition has conjugate pairs of poles: states must be even, got {states}")
        if transition_by in ("none", "node") and edge_types > 1:
            raise ValueError(f"edge_types={edge_types} needs transition_by='edge' or 'both', got {transition_by!r}")
        self.states, self.labels, self.transition_by = states, labels, transition_by
        #: Number of matrices by label, and by edge type.
        self.by_label = labels if transition_by in ("node", "both") else 1
        self.by_edge = edge_types if transition_by in ("edge", "both") else 1
        count = self.by_label * self.by_edge
        shape = () if transition_by == "none" else (self.by_label, self.by_edge)
        drawn = [Automaton.random(states, 1.0, labels=labels, seed=one) for one in _seeds(seed, count)]
        self.transition: DenseTransition | DiagonalTransition
        if form == "dense":
            start = torch.stack([one.transition for one in drawn]).reshape(*shape, states, states)
            self.transition = DenseTransition(start, damping)
        else:
            draw = torch.rand(2, count, states // 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
            phase, decay = draw.reshape(2, *shape, states // 2)
            # Phases all around the half circle; of each pole between half and nearly all of the damping.
            self.transition = DiagonalTransition(torch.pi * phase, 0.5 + 0.45 * decay, damping)
        dtype = torch.get_default_dtype()
        self.initial = nn.Parameter(drawn[0].initial.to(dtype))
        self.final = nn.Parameter(torch.ones(states, labels, dtype=dtype)) if final else None

    @property
    def typed(self) -> bool:
        """Whether transitions depend on labels or edge types."""
        return self.transition_by != "none"

    @property
    def dtype(self) -> torch.dtype:
        """That of the parameters, float32 at least."""
        return torch.promote_types(self.initial.dtype, torch.float32)

    def weights(self) -> tuple[Tensor, Tensor]:
        """μ, ``[k, k]`` or ``[m or 1, R or 1, k, k]``, and α, ``[k, m]``, in float64 and following the parameters."""
        return self.transition(), self.initial.to(torch.float64)

    @property
    def automaton(self) -> Automaton:
        """The automaton as it is now, for walk matrices of radius 1."""
        with torch.no_grad():
            transition, initial = self.weights()
            if self.transition_by == "both":
                raise ValueError("an automaton with transitions by node and edge at once has no plain form")
            transition = transition if not self.typed else transition.flatten(0, 1)
            final = None if self.final is None else self.final.to(torch.float64)
            by: Literal["node", "edge"] = "edge" if self.transition_by == "edge" else "node"
            return Automaton(initial, transition, final, transition_by=by)


def _seeds(seed: int, count: int) -> list[int]:
    """``seed`` itself and others that no neighbouring seed has."""
    # NumPy's entropy is not negative: the same 64 bits without their sign.
    return [seed, *(int(np.random.SeedSequence([seed % 2**64, i]).generate_state(1)[0]) for i in range(1, count))]
