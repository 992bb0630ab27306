"""Settings from ``key=value``: typed, and unknown keys refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, get_type_hints

from gape._internal.validation import parse_setting
from gape.experiments.graph_tasks.rows import find
from gape.experiments.graph_tasks.settings import Settings

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

    Values are converted to the type of their setting; :mod:`gape.experiments.graph_tasks.check` checks combinations.

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
            hint = _data_type(settings.task, name) if group == "data" else _encoding_type(settings.encoding, name)
            changes[target] = {**changes.get(target, getattr(settings, target)), name: parse_setting(text, hint, key)}
        elif key in plain_keys():
            changes[key] = parse_setting(text, hints[key], key)
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
    from gape.experiments.graph_tasks.learned import learned_settings

    of_data = data.settings_of(settings.task)
    of_encoding: list[str] = []
    if find(settings.encoding).how == "learned":
        of_encoding = list(learned_settings())
    elif settings.encoding in encodings.names():
        of_encoding = [known.name for known in encodings.settings_of(settings.encoding)]
    return plain_keys() + [f"data.{name}" for name in of_data] + [f"encoding.{name}" for name in of_encoding]


def _data_type(task: str, name: str) -> Any:
    from gape import data

    known = data.setting_types(task)
    if name not in known:
        raise ValueError(f"data set {task!r} has no option {name!r}; it has {', '.join(known)}")
    return known[name]


def _encoding_type(encoding: str, name: str) -> Any:
    from gape import encodings
    from gape.experiments.graph_tasks.learned import learned_settings

    if find(encoding).how == "learned":
        known = learned_settings()
    elif encoding in encodings.names():
        known = {setting.name: setting.type for setting in encodings.settings_of(encoding)}
    else:
        raise ValueError(f"{encoding!r} has no settings, got encoding.{name}")
    if name not in known:
        raise ValueError(f"{encoding} has no setting {name!r}; it has {', '.join(known)}")
    return known[name]
