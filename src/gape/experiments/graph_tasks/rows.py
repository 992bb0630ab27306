"""The rows of the comparison: what stands between a graph and the transformer's first layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

How = Literal["none", "linear", "signed", "spectral", "degree-distance", "learned"]


@dataclass(frozen=True)
class Row:
    """A position encoding in the comparison.

    Args:
        name: on the command line; the encoding's name in :func:`gape.encodings.names`.
        title: in the paper's tables.
        how: how it enters the model: not at all; "linear", a linear layer, added; "signed", the same with random
            signs in training; "spectral", a small transformer, concatenated; "degree-distance", degree embeddings,
            added, and a bias by distance; "learned", automata trained with the model (:mod:`gape.nn.learnable`).
        width: the setting of the encoding that is the number of its features k, if it has one.
        fixed: settings of the encoding in every task.
    """

    name: str
    title: str
    how: How = "linear"
    width: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)


# Where a graph's equation is singular the paper's code went on with whatever came out; we take the least-squares
# solution, and every result says for how many graphs.
_GAPE: Mapping[str, Any] = MappingProxyType({"on_singular": "least_squares"})
# The softmax of the authors' runs is over the nodes of a graph; the paper's text has it over the states.
_TWO_STAR: Mapping[str, Any] = MappingProxyType({**_GAPE, "initial": "softmax_nodes"})

ROWS: tuple[Row, ...] = (
    Row("none", "Baseline", "none"),
    Row("lape", "LAPE", "signed", "vectors"),
    Row("sa", "SA", "spectral", "pairs"),
    Row("rw", "RW", "linear", "length"),
    Row("spd", "SPD+C", "degree-distance"),
    Row("pprp", "PPRP", "linear", "powers"),
    Row("gape", "GAPE", "linear", "states", _GAPE),
    Row("gape-star", "GAPE*", "linear", "states", _GAPE),
    Row("gape-star-20", "GAPE*20", "linear", "states", _GAPE),
    Row("gape-2star", "GAPE**", "linear", "states", _TWO_STAR),
    Row("gape-2star-20", "GAPE**20", "linear", "states", _TWO_STAR),
    Row("gape-2star-max", "GAPE**max", "linear", "states", _TWO_STAR),
)

#: Automata that are learned with the model; not in the paper.
LEARNED_ROWS: tuple[Row, ...] = tuple(
    Row(name, title, "learned")
    for name, title in {
        "gape-learned-node": "learned, node",
        "gape-learned-closed": "learned, closed",
        "gape-learned-closed-node": "learned, closed + node",
        "gape-learned-typed": "learned, typed closed + RW",
        "gape-learned-typed-alone": "learned, typed closed",
    }.items()
)


def names() -> list[str]:
    """All that ``--encoding`` takes: the rows of the paper, learnable automata, and every other encoding of nodes.

    >>> names()[:4]
    ['none', 'lape', 'sa', 'rw']
    """
    from gape import encodings

    ours = [row.name for row in (*ROWS, *LEARNED_ROWS)]
    return ours + [name for name in encodings.names() if name not in ours]


def find(name: str) -> Row:
    """The row of that name. Encodings that the paper does not have enter by a linear layer.

    >>> find("gape-star").title
    'GAPE*'
    >>> find("gape*")
    Traceback (most recent call last):
    ValueError: there is no encoding 'gape*'; there are none, lape, sa, rw, ...
    """
    for row in (*ROWS, *LEARNED_ROWS):
        if row.name == name:
            return row
    if name not in names():
        raise ValueError(f"there is no encoding {name!r}; there are {', '.join(names())}")
    return Row(name, name)
