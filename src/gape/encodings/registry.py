"""Registry of encodings by name, with the presets of the paper; settings can be listed and parsed from text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch

from gape._internal.validation import did_you_mean, parse_setting
from gape.encodings.base import Encoding
from gape.encodings.communicability import Communicability
from gape.encodings.degree import Degree
from gape.encodings.electrostatic import Electrostatic
from gape.encodings.gape import GAPE
from gape.encodings.heat import HeatKernel
from gape.encodings.laplacian import Laplacian, Spectrum
from gape.encodings.magnetic import MagneticLaplacian
from gape.encodings.mix import Mix, MixScaling
from gape.encodings.pagerank import PageRank, PageRankPowers
from gape.encodings.random_walk import RandomWalk, RelativeRandomWalk
from gape.encodings.resistance import EffectiveResistance
from gape.encodings.rooted import RootedGAPE
from gape.encodings.sequence import CycleSpectrum, PathRandomWalk, SequenceLaplacian, Sinusoidal
from gape.encodings.shortest_path import ShortestPath
from gape.encodings.svd import SingularVectors
from gape.encodings.walk_profile import WalkProfile

_PAPER: dict[str, Any] = {"damping": 0.02, "relative": False}
_STAR = {"transition": "stochastic", "damping": 1.0, "relative": False, "on_singular": "least_squares"}
_TWO_STAR = {**_STAR, "initial": "softmax_states"}
_TWENTY = {"labels": 20, "labelling": "random"}

#: GAPE by default, as in the paper (§3.2), and its variants there (§4.2.3). Names have no ``*``, which shells
#: would expand. For ``**`` the paper's text takes the softmax over the states, the authors' code over the nodes: set
#: ``initial="softmax_nodes"`` for the latter.
PRESETS = MappingProxyType(
    {
        "gape": {},
        "gape-paper": _PAPER,
        "gape-star": _STAR,
        "gape-star-20": {**_STAR, **_TWENTY},
        "gape-2star": _TWO_STAR,
        "gape-2star-20": {**_TWO_STAR, **_TWENTY},
        "gape-2star-max": {**_TWO_STAR, "labels": 200, "labelling": "index"},
    }
)

#: Class and preset settings by name.
REGISTRY: dict[str, tuple[type[Encoding], Mapping[str, Any]]] = {
    **{name: (GAPE, preset) for name, preset in PRESETS.items()},
    "gape-rooted": (RootedGAPE, {}),
    "rw": (RandomWalk, {}),
    "rrwp": (RelativeRandomWalk, {}),
    "lape": (Laplacian, {}),
    "sa": (Spectrum, {}),
    "spd": (ShortestPath, {}),
    "degree": (Degree, {}),
    "ppr": (PageRank, {}),
    "pprp": (PageRankPowers, {}),
    "heat": (HeatKernel, {}),
    "resistance": (EffectiveResistance, {}),
    "electrostatic": (Electrostatic, {}),
    "communicability": (Communicability, {}),
    "svd": (SingularVectors, {}),
    "magnetic": (MagneticLaplacian, {}),
    "walk-profile": (WalkProfile, {}),
    "sinusoidal": (Sinusoidal, {}),
    "lape-p": (SequenceLaplacian, {"shape": "path"}),
    "lape-c": (SequenceLaplacian, {"shape": "cycle"}),
    "lape-c10k": (SequenceLaplacian, {"shape": "cycle", "length": 10_000}),
    "sa-c": (CycleSpectrum, {}),
    "rw-p": (PathRandomWalk, {}),
}
#: One-line recommendation per encoding.
ADVICE = {
    "gape": "one huge or directed graph; with node features or labels that differ",
    "gape-paper": "to repeat the paper",
    "gape-rooted": "molecules, whitened; small graphs that are hard to tell apart",
    "rw": "molecules, scaled: cheaper than gape-rooted",
    "rrwp": "attention over pairs of small graphs",
    "lape": "communities and long distances; mind the signs",
    "sa": "the input of spectral attention",
    "spd": "attention over pairs: distances",
    "degree": "cheap; with any other",
    "ppr": "attention over pairs of directed graphs",
    "pprp": "molecules; needs no scaling",
    "heat": "a smooth rw with few columns",
    "resistance": "attention over pairs: many paths count as near",
    "electrostatic": "centrality at all ranges in ten columns",
    "communicability": "closed walks without a length to choose",
    "svd": "directed graphs: roles as source and target",
    "magnetic": "directed graphs: positions along flows",
    "walk-profile": "directed graphs: motifs, nothing to choose",
}

#: Aliases. Untrained, ``gape-closed`` is ``rw`` up to a scale per feature.
ALIASES: Mapping[str, str] = MappingProxyType({"rwse": "rw", "rwpe": "rw", "lappe": "lape", "gape-closed": "rw"})


@dataclass(frozen=True)
class Setting:
    """Description of one setting of an encoding.

    Args:
        name: keyword.
        type: type hint of the values.
        default: value if not set.
        choices: allowed values of a setting that is one of a few names, else empty.
        help: text of the setting in the encoding's docstring.
    """

    name: str
    type: Any
    default: Any
    choices: tuple[str, ...]
    help: str


def names() -> list[str]:
    """List the names of all encodings, without :data:`ALIASES`."""
    return list(REGISTRY)


def is_name(name: str) -> bool:
    """Return whether :func:`make` knows that name, or those that it joins by ``+``.

    >>> is_name("rw+gape-rooted"), is_name("none")
    (True, False)
    """
    return all(part in REGISTRY or part in ALIASES for part in name.split("+"))


def make(name: str, **settings: Any) -> Encoding:
    """Make the encoding of that name; settings may be values or text.

    Names joined by ``+`` are encodings side by side (:class:`Mix`), their settings those of the parts:

    Example:
        >>> make("rw", length="5")
        RandomWalk(dtype=torch.float32, length=5, memory=4.0)
        >>> len(make("rw+gape-rooted", **{"rw.length": 16, "dtype": "float64"}).parts)
        2
    """
    if "+" in name:
        return _mix(name, settings)
    kind, fixed = _find(name)
    hints = get_type_hints(kind)
    _check_settings(name, settings)
    values = {
        key: parse_setting(value, hints[key], key) if isinstance(value, str) else value
        for key, value in settings.items()
    }
    return kind(**{**fixed, **values})


def settings_of(name: str) -> list[Setting]:
    """List the settings of the encoding of that name; defaults include those of the preset."""
    if "+" in name:
        return _settings_of_parts(name)
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
    """Return the first sentence of an encoding's docstring."""
    kind = Mix if "+" in name else _find(name)[0]
    return (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")


def _find(name: str) -> tuple[type[Encoding], Mapping[str, Any]]:
    name = ALIASES.get(name, name)
    if name not in REGISTRY:
        hint = did_you_mean(name, [*REGISTRY, *ALIASES])
        raise ValueError(f"there is no encoding {name!r}; there are {', '.join(REGISTRY)}{hint}")
    return REGISTRY[name]


def _check_settings(name: str, settings: Iterable[str]) -> None:
    known = [setting.name for setting in settings_of(name)]
    for key in settings:
        if key not in known:
            raise ValueError(f"{name} has no setting {key!r}; it has {', '.join(known)}{did_you_mean(key, known)}")


def _mix(name: str, settings: Mapping[str, Any]) -> Mix:
    _check_settings(name, settings)
    names, dtype = _part_names(name), settings.get("dtype", "float32")
    of_part: dict[str, dict[str, Any]] = {part: {} for part in names}
    for key, value in settings.items():
        part, _, setting = key.rpartition(".")
        if part:
            of_part[part][setting] = value
    scaling = tuple(of_part[part].pop("scaling", "none") for part in names)
    # Integer encodings are converted when they are joined with the others.
    parts = [
        make(part, **({"dtype": dtype} if "float32" in _dtypes(_find(part)[0]) else {}), **of_part[part])
        for part in names
    ]
    return Mix(tuple(parts), scaling if any(each != "none" for each in scaling) else (), dtype=dtype)


def _settings_of_parts(name: str) -> list[Setting]:
    """The settings of each part, by names such as ``rw.length`` and ``rw.scaling``, and one ``dtype`` for all."""
    shared = next(setting for setting in settings_of("gape") if setting.name == "dtype")
    texts = _argument_texts(Mix)
    out = [shared]
    for part in _part_names(name):
        own = [setting for setting in settings_of(part) if setting.name != "dtype"]
        scaling = Setting("scaling", MixScaling, "none", get_args(MixScaling), texts["scaling"])
        out += [replace(setting, name=f"{part}.{setting.name}") for setting in (*own, scaling)]
    return out


def _part_names(name: str) -> list[str]:
    parts = name.split("+")
    for part in parts:
        _find(part)
    if len({ALIASES.get(part, part) for part in parts}) < len(parts):
        raise ValueError(f"{name!r} names an encoding twice")
    return parts


def _dtypes(kind: type[Encoding]) -> tuple[str, ...]:
    return tuple(str(dtype).removeprefix("torch.") for dtype in kind.dtypes)


def _choices(kind: type[Encoding], hint: Any) -> tuple[str, ...]:
    if hint is torch.dtype:
        return _dtypes(kind)
    return tuple(get_args(hint)) if get_origin(hint) is Literal else ()


def _argument_texts(kind: type[Encoding]) -> dict[str, str]:
    """Collect the text of each argument from the ``Args:`` sections of a class and its bases."""
    texts: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        section = re.search(r"^Args:\n((?:    .*\n|\n)+)", inspect.cleandoc(owner.__doc__ or "") + "\n", re.MULTILINE)
        for entry in re.split(r"^    (?=\w+: )", section.group(1) if section else "", flags=re.MULTILINE):
            name, _, text = entry.partition(":")
            if text:
                texts[name.strip()] = " ".join(text.split())
    return texts
