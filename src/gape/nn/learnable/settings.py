"""Settings of a learnable automaton that go together."""

from __future__ import annotations

from typing import get_args

from gape._internal.validation import finite_number, positive
from gape.graph.walk_matrix import NAMES
from gape.solvers.solution import ReadoutName


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
    """Refuse readouts, lengths, transitions and scales that do not go together."""
    if readout not in get_args(ReadoutName):
        raise ValueError(f"readout must be 'node', 'closed' or 'pair', got {readout!r}")
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
        raise ValueError(f"damping must lie above 0 and be at most {bound}, got {damping}")
    if readout == "pair" and (out_channels is None or transition_by != "none" or final):
        raise ValueError(
            f"a pair readout needs out_channels, the attention heads, one transition for all and no final weights; "
            f"got out_channels={out_channels}, transition_by={transition_by!r}, final={final}"
        )
    if readout == "closed" and transition_by != "none" and length is None:
        raise ValueError("closed runs of a typed automaton are followed step by step; give their length, such as 10")
    if readout == "pair" and scaling in ("fixed", "whitened"):
        raise ValueError(f"pairs are not scaled, got scaling={scaling!r}; leave it out")
    if scaling == "whitened" and learn:
        raise ValueError(
            "scaling='whitened' takes the principal components once, and those of an automaton that is learned move; "
            "give learn=False, or scaling='batch' or 'fixed'"
        )


def check_labels(labels: int, labelling: str, transition_by: str) -> None:
    """Refuse a single label where labels are to be read."""
    if labels == 1 and labelling == "degree":
        raise ValueError("labelling='degree' needs the number of labels, got labels=1; give labels=8, say")
    if labels == 1 and transition_by == "node":
        raise ValueError("transition_by='node' needs the number of labels, got labels=1: one label is one transition")


def check_walk(matrix: str, memory: float) -> None:
    """Refuse a walk matrix that there is not, and memory that nobody has."""
    if matrix not in NAMES:
        raise ValueError(f"there is no walk matrix {matrix!r}; there are {', '.join(NAMES)}")
    if _number(memory, "memory") <= 0:
        raise ValueError(f"memory must be more than 0 GiB, got {memory}")


def _number(value: float, name: str) -> float:
    if isinstance(value, str):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return finite_number(value, name)
