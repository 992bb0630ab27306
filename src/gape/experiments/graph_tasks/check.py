"""Settings of a run that do not go together, found before anything is computed."""

from __future__ import annotations

from gape import data, encodings
from gape.experiments.graph_tasks.learned import learned
from gape.experiments.graph_tasks.rows import find
from gape.experiments.graph_tasks.settings import Settings


def check(settings: Settings) -> None:
    """Refuse settings that no run can have.

    Example:
        >>> check(Settings("cycles", "rw", readout="node"))
        Traceback (most recent call last):
        ValueError: readout=node is for targets of nodes, and cycles asks about graphs: use readout=sum or mean
    """
    if settings.hidden % settings.heads:
        raise ValueError(f"heads must divide hidden, got heads={settings.heads} and hidden={settings.hidden}")
    data.check(settings.task, **settings.data)
    level = data.task_of(settings.task).level
    if (settings.readout == "node") != (level == "node"):
        wanted = "node" if level == "node" else "sum or mean"
        kind = "nodes" if settings.readout == "node" else "graphs"
        raise ValueError(
            f"readout={settings.readout} is for targets of {kind}, and {settings.task} asks about {level}s: "
            f"use readout={wanted}"
        )
    how, walks = find(settings.encoding).how, 0
    if how == "learned":
        automata = learned(settings.encoding, **settings.encoding_options)
        automata.check()
        walks = automata.walks
    elif how != "none":
        encoding = encodings.make(settings.encoding, **settings.encoding_options)
        if encoding.pairwise and how != "degree-distance":
            raise ValueError(f"{settings.encoding!r} encodes pairs of nodes; the comparison is of encodings of nodes")
    if settings.scaling != "none" and how != "linear" and not walks:
        raise ValueError(
            f"scaling={settings.scaling} is for fixed encodings that enter by a linear layer, got {settings.encoding}"
            + ("; set encoding.scaling" if how == "learned" else "")
        )
