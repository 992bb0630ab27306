"""Validate the settings of :class:`gape.nn.GAPE` and their combinations."""

from __future__ import annotations

from typing import Any, get_args

from gape._internal.validation import check_one_of, finite_number, positive
from gape.graph.walk_matrix import NAMES
from gape.nn.learnable.runs import LayerReadout


def check_settings(
    readout: str,
    length: int | None,
    out_channels: int | None,
    transition_by: str,
    damping: float,
    final: bool,
    labelling: str,
    scaling: str,
    learn: bool,
) -> None:
    """Validate settings that all readouts have, and their combinations."""
    if readout not in get_args(LayerReadout):
        *others, last = map(repr, get_args(LayerReadout))
        raise ValueError(f"readout must be {', '.join(others)} or {last}, got {readout!r}")
    if labelling not in ("given", "degree"):
        raise ValueError(f"labelling must be 'given' or 'degree', got {labelling!r}")
    if length is not None:
        positive(length, "length")
    if out_channels is not None:
        positive(out_channels, "out_channels")
    if not isinstance(learn, bool):
        raise ValueError(f"learn must be True or False, got {learn!r}")
    _number(damping, "damping")
    if not 0 < damping <= (1.0 if length else 1.0 - 1e-6):
        bound = "1" if length else "1 - 1e-6 (1 itself with a length)"
        raise ValueError(f"damping must be above 0 and at most {bound}, got {damping}")
    if readout == "pair" and (out_channels is None or transition_by != "none" or final):
        raise ValueError(
            f"a pair readout needs out_channels (the attention heads), transition_by='none' and final=False; "
            f"got out_channels={out_channels}, transition_by={transition_by!r}, final={final}"
        )
    if readout == "closed" and transition_by != "none" and length is None:
        raise ValueError("closed runs of a typed automaton need a length, got length=None; give one, such as length=10")
    if readout == "pair" and scaling in ("fixed", "whitened"):
        raise ValueError(f"pairs are not scaled, got scaling={scaling!r}; leave it out")
    if scaling == "whitened" and learn:
        raise ValueError(
            "scaling='whitened' computes principal components once, and training the automaton would change them; "
            "give learn=False, or scaling='batch' or 'fixed'"
        )


def check_rooted(length: int | None, damping: float, learn: bool, **others: Any) -> None:
    """Validate settings of rooted runs."""
    plain = {
        "transition": "dense",
        "transition_by": "none",
        "labels": 1,
        "edge_types": 1,
        "matrix": "adjacency",
        "final": False,
    }
    for name, value in others.items():
        if value != plain[name]:
            raise ValueError(f"rooted runs have {name}={plain[name]!r}, got {value!r}; leave it out")
    if damping >= 1:
        raise ValueError(f"rooted runs need damping below 1, got {damping}")
    if length is not None and learn:
        raise ValueError(f"rooted runs by length have no gradients, got length={length}; give learn=False")


def check_labels(labels: int, labelling: str, transition_by: str) -> None:
    """Validate the number of labels."""
    if labels == 1 and labelling == "degree":
        raise ValueError("labelling='degree' needs the number of labels, got labels=1; give it, such as labels=8")
    if labels == 1 and transition_by == "node":
        raise ValueError("transition_by='node' needs the number of labels, got labels=1; give it, such as labels=28")


def check_walk(matrix: str, memory: float) -> None:
    """Validate ``matrix`` and ``memory``."""
    check_one_of(NAMES, matrix=matrix)
    if _number(memory, "memory") <= 0:
        raise ValueError(f"memory must be more than 0 GiB, got {memory}")


def _number(value: float, name: str) -> float:
    if isinstance(value, str):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return finite_number(value, name)
