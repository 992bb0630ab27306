"""Settings from ``key=value``: typed, and unknown keys refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch

from gape.bench.rows import find
from gape.bench.settings import Settings

# What makes a run another cell rather than the same cell with another setting.
_IDENTITY = ("task", "encoding", "seed")
_GROUPS = {"data": "data", "encoding": "encoding_options"}


def parse_pairs(words: Iterable[str]) -> dict[str, str]:
    """``["lr=0.001", "data.test=2000"]`` as a dictionary.

    >>> parse_pairs(["lr=0.001", "data.test = 2000"])
    {'lr': '0.001', 'data.test': '2000'}
    >>> parse_pairs(["lr"])
    Traceback (most recent call last):
    ValueError: expected key=value, got 'lr'
    """
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not key or not value:
            raise ValueError(f"expected key=value, got {word!r}")
        if pairs.get(key, value) != value:
            raise ValueError(f"{key} was set twice, to {pairs[key]!r} and to {value!r}")
        pairs[key] = value
    return pairs


def override(settings: Settings, pairs: Mapping[str, str]) -> Settings:
    """The settings with some changed: ``layers``, ``encoding.states``, ``data.test`` and so on, values as text.

    Example:
        >>> plain = Settings("cycles", "gape")
        >>> override(plain, {"lr": "1e-3", "encoding.damping": "0.1"}).lr
        0.001
        >>> override(plain, {"learning_rate": "1e-3"})
        Traceback (most recent call last):
        ValueError: there is no setting 'learning_rate'; there are layers, hidden, ...
        >>> override(plain, {"layers": "many"})
        Traceback (most recent call last):
        ValueError: layers must be a whole number, got 'many'
    """
    changes: dict[str, Any] = {}
    hints = get_type_hints(Settings)
    for key, text in pairs.items():
        group, dot, name = key.partition(".")
        if dot and group in _GROUPS:
            target = _GROUPS[group]
            value = _data_value(settings.task, name, text) if group == "data" else _encoding_value(settings, name, text)
            changes[target] = {**changes.get(target, getattr(settings, target)), name: value}
        elif key in plain_keys():
            changes[key] = typed(text, hints[key], key)
        else:
            raise ValueError(f"there is no setting {key!r}; there are {', '.join(known_keys(settings))}")
    return replace(settings, **changes)


def spelled(settings: Settings, key: str) -> str:
    """The value of a setting in its one spelling, whichever :func:`override` was given.

    >>> plain = Settings("cycles", "gape")
    >>> [spelled(override(plain, {"lr": text}), "lr") for text in ("2e-5", "0.00002")]
    ['2e-05', '2e-05']
    """
    group, dot, name = key.partition(".")
    value = getattr(settings, _GROUPS[group])[name] if dot else getattr(settings, key)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def plain_keys() -> list[str]:
    """Settings that stand alone."""
    return [field.name for field in fields(Settings) if field.name not in (*_IDENTITY, *_GROUPS.values())]


def known_keys(settings: Settings) -> list[str]:
    """All keys that can be set for this task and encoding."""
    from gape import data, encodings
    from gape.nn import learned_settings

    of_data = data.settings_of(settings.task)
    of_encoding: list[str] = []
    if find(settings.encoding).how == "learned":
        of_encoding = list(learned_settings())
    elif settings.encoding in encodings.names():
        of_encoding = [known.name for known in encodings.settings_of(settings.encoding)]
    return plain_keys() + [f"data.{name}" for name in of_data] + [f"encoding.{name}" for name in of_encoding]


def typed(text: str, hint: Any, name: str) -> Any:
    """What a text means for a value of that type.

    >>> typed("true", bool, "x"), typed("3", int, "x"), typed("1e-3", float, "x"), typed("none", int | None, "x")
    (True, 3, 0.001, None)
    """
    if get_origin(hint) is Literal:
        if text not in get_args(hint):
            raise ValueError(f"{name} must be one of {', '.join(get_args(hint))}, got {text!r}")
        return text
    if NoneType in get_args(hint):
        rest = next(kind for kind in get_args(hint) if kind is not NoneType)
        return None if text.lower() == "none" else typed(text, rest, name)
    if hint is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{name} must be true or false, got {text!r}")
        return text.lower() == "true"
    if hint is str:
        return text
    try:
        return hint(text)
    except ValueError as error:
        kind = "a whole number" if hint is int else "a number"
        raise ValueError(f"{name} must be {kind}, got {text!r}") from error


def _data_value(task: str, name: str, text: str) -> Any:
    from gape import data

    known = data.settings_of(task)
    if name not in known:
        raise ValueError(f"data set {task!r} has no option {name!r}; it has {', '.join(known)}")
    return typed(text, type(known[name]), f"data.{name}")


def _encoding_value(settings: Settings, name: str, text: str) -> Any:
    from gape import encodings
    from gape.nn import learned_settings

    if find(settings.encoding).how == "learned":
        known = learned_settings()
        if name not in known:
            raise ValueError(f"{settings.encoding!r} has no setting {name!r}; it has {', '.join(known)}")
        return typed(text, known[name], f"encoding.{name}")
    if settings.encoding not in encodings.names():
        raise ValueError(f"{settings.encoding!r} has no settings, got encoding.{name}={text}")
    made = encodings.make(settings.encoding, **{**settings.encoding_options, name: text})
    value = getattr(made, name)
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return value if isinstance(value, bool | int | float | str | None) else text
