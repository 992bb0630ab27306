"""Encodings by name, their settings listed and set from text: what a command line needs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch

from gape._internal.validation import typed
from gape.encodings.base import Encoding
from gape.encodings.degree import Degree
from gape.encodings.gape import GAPE
from gape.encodings.laplacian import Laplacian
from gape.encodings.pagerank import PageRank, PageRankPowers
from gape.encodings.presets import PRESETS
from gape.encodings.random_walk import RandomWalk
from gape.encodings.sequence_laplacian import CycleSpectrum, SequenceLaplacian
from gape.encodings.sequence_walk import PathRandomWalk
from gape.encodings.shortest_path import ShortestPath
from gape.encodings.sinusoidal import Sinusoidal
from gape.encodings.spectrum import Spectrum

#: The class behind each name and the settings that the name fixes in advance.
REGISTRY: dict[str, tuple[type[Encoding], Mapping[str, Any]]] = {
    **{name: (GAPE, preset) for name, preset in PRESETS.items()},
    "rw": (RandomWalk, {}),
    "lape": (Laplacian, {}),
    "sa": (Spectrum, {}),
    "spd": (ShortestPath, {}),
    "degree": (Degree, {}),
    "ppr": (PageRank, {}),
    "pprp": (PageRankPowers, {}),
    "sinusoidal": (Sinusoidal, {}),
    "lape-p": (SequenceLaplacian, {"shape": "path"}),
    "lape-c": (SequenceLaplacian, {"shape": "cycle"}),
    "lape-c10k": (SequenceLaplacian, {"shape": "cycle", "length": 10_000}),
    "sa-c": (CycleSpectrum, {}),
    "rw-p": (PathRandomWalk, {}),
}


@dataclass(frozen=True)
class Setting:
    """One setting of an encoding.

    Args:
        name: as a keyword.
        type: of its values.
        default: its value if not set.
        choices: the values it may take, if they are few.
        help: what it does.
    """

    name: str
    type: Any
    default: Any
    choices: tuple[str, ...]
    help: str


def names() -> list[str]:
    """The names of all encodings."""
    return list(REGISTRY)


def make(name: str, **settings: Any) -> Encoding:
    """The encoding of that name. Settings may be values, or their text.

    Example:
        >>> make("rw", length="5")
        RandomWalk(dtype=torch.float32, length=5, memory=4.0)
    """
    kind, fixed = _find(name)
    hints = get_type_hints(kind)
    known = [setting.name for setting in settings_of(name)]
    for key in settings:
        if key not in known:
            raise ValueError(f"{name} has no setting {key!r}; it has {', '.join(known)}")
    values = {
        key: typed(value, hints[key], key) if isinstance(value, str) else value for key, value in settings.items()
    }
    return kind(**{**fixed, **values})


def settings_of(name: str) -> list[Setting]:
    """The settings of the encoding of that name, with the defaults that the name implies."""
    kind, fixed = _find(name)
    hints, texts = get_type_hints(kind), _argument_texts(kind)
    out = []
    for item in fields(kind):
        default = fixed.get(item.name, item.default)
        choices = _choices(kind, hints[item.name])
        default = None if default is MISSING else default
        out.append(Setting(item.name, hints[item.name], default, choices, texts.get(item.name, "")))
    return out


def summary(name: str) -> str:
    """The first sentence of an encoding's documentation."""
    kind, _ = _find(name)
    return (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")


def _find(name: str) -> tuple[type[Encoding], Mapping[str, Any]]:
    if name not in REGISTRY:
        raise ValueError(f"there is no encoding {name!r}; there are {', '.join(REGISTRY)}")
    return REGISTRY[name]


def _choices(kind: type[Encoding], hint: Any) -> tuple[str, ...]:
    if hint is torch.dtype:
        return tuple(str(dtype).removeprefix("torch.") for dtype in kind.dtypes)
    return tuple(get_args(hint)) if get_origin(hint) is Literal else ()


def _argument_texts(kind: type[Encoding]) -> dict[str, str]:
    """The text of each argument in the ``Args:`` sections of a class and its bases."""
    texts: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        section = re.search(r"^Args:\n((?:    .*\n|\n)+)", inspect.cleandoc(owner.__doc__ or "") + "\n", re.MULTILINE)
        for entry in re.split(r"^    (?=\w+: )", section.group(1) if section else "", flags=re.MULTILINE):
            name, _, text = entry.partition(":")
            if text:
                texts[name.strip()] = " ".join(text.split())
    return texts
