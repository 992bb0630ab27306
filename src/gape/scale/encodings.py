"""Encodings of a graph on disk: GAPE, Katz, personalised PageRank and estimated return probabilities, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

import torch

from gape._internal.validation import check_at_least, check_one_of, finite_number, parse_setting, seed_number
from gape.encodings.gape import GAPE
from gape.encodings.pagerank import Dangling
from gape.encodings.random_walk import MIN_SAMPLES
from gape.encodings.registry import PRESETS, make


@dataclass(frozen=True)
class Katz:
    """Katz centrality: every walk of t steps that ends in the node counts βᵗ (Katz, 1953).

    Args:
        beta: weight of a step.
        relative: take ``beta`` as a fraction of 1/ρ(A).
        dtype: of the result.
    """

    beta: float = 0.1
    relative: bool = False
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        if finite_number(self.beta, "beta") < 0:
            raise ValueError(f"beta must be at least 0, got {self.beta!r}")


@dataclass(frozen=True)
class PersonalisedPageRank:
    """Distribution of a walk that restarts at a given node, one column per node (Page et al., 1999).

    Args:
        sources: the nodes at which walks start, by their ids in the edge file: numbers, or text such as "3,17".
        beta: restart probability.
        dangling: behaviour at nodes without outgoing edges, see :class:`gape.encodings.PageRank`.
        dtype: of the result.
    """

    sources: str | Sequence[int] = ()
    beta: float = 0.15
    dangling: Dangling = "restart"
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        parts = self.sources.replace(",", " ").split() if isinstance(self.sources, str) else self.sources
        try:
            numbers = tuple(int(part) for part in parts)
        except (TypeError, ValueError) as error:
            raise ValueError(f"sources must be node ids such as '3,17', got {self.sources!r}") from error
        if not numbers:
            raise ValueError("ppr of a graph on disk needs the nodes where walks start, such as sources='3,17'")
        object.__setattr__(self, "sources", numbers)
        if not 0 < self.beta <= 1:
            raise ValueError(f"beta is a restart probability in (0, 1], got {self.beta!r}")
        check_one_of(get_args(Dangling), dangling=self.dangling)


@dataclass(frozen=True)
class ReturnEstimate:
    """Probability that a random walk is back after 1, 2, …, ``length`` steps, estimated, with standard errors.

    See :func:`gape.encodings.estimate_random_walk`.

    Args:
        length: number of steps.
        samples: random sign vectors; standard errors fall as one over its root.
        seed: of the signs.
        dtype: of the result.
    """

    length: int = 20
    samples: int = 256
    seed: int = 0
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        check_at_least(1, length=self.length)
        check_at_least(MIN_SAMPLES, samples=self.samples)
        seed_number(self.seed)


LargeEncoding = GAPE | Katz | PersonalisedPageRank | ReturnEstimate
#: Encodings of graphs on disk by name, beside the presets of GAPE.
NAMES: dict[str, Any] = {"katz": Katz, "ppr": PersonalisedPageRank, "rw": ReturnEstimate}


def large_encoding(name: str, **settings: Any) -> LargeEncoding:
    """Make the encoding of that name for a graph on disk; settings may be values or text.

    >>> large_encoding("katz", beta="0.5", relative="true")
    Katz(beta=0.5, relative=True, dtype=torch.float32)
    """
    if name in PRESETS:
        return make(name, **settings)  # type: ignore[return-value]
    if name not in NAMES:
        raise ValueError(
            f"{name!r} is not available on disk; there are {', '.join(PRESETS)}, {', '.join(NAMES)}; others need the "
            "graph in memory, so leave out --on-disk"
        )
    kind = NAMES[name]
    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind)]
    values = {}
    for key, value in settings.items():
        if key not in known:
            raise ValueError(f"{name} on disk has no setting {key!r}; it has {', '.join(known)}")
        text = isinstance(value, str) and key != "sources"
        values[key] = parse_setting(value, hints[key], key) if text else value
    if isinstance(values.get("dtype"), str):
        values["dtype"] = {"float32": torch.float32, "float64": torch.float64}.get(values["dtype"], values["dtype"])
    if values.get("dtype", torch.float32) not in (torch.float32, torch.float64):
        raise ValueError(f"dtype must be float32 or float64, got {values['dtype']!r}")
    return kind(**values)  # type: ignore[no-any-return]
