"""Values written as text, as command lines and queues give them."""

from __future__ import annotations

from types import NoneType
from typing import Any, Literal, get_args, get_origin

import torch

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def typed(text: str, hint: Any, name: str) -> Any:
    """What a text means for a value of that type; names of a ``torch.dtype`` stay text.

    >>> typed("true", bool, "x"), typed("3", int, "x"), typed("1e-3", float, "x"), typed("none", int | None, "x")
    (True, 3, 0.001, None)
    >>> typed("many", int, "layers")
    Traceback (most recent call last):
    ValueError: layers must be a whole number, got 'many'
    """
    if get_origin(hint) is Literal:
        if text not in get_args(hint):
            raise ValueError(f"{name} must be one of {', '.join(get_args(hint))}, got {text!r}")
        return text
    if NoneType in get_args(hint):
        rest = next(kind for kind in get_args(hint) if kind is not NoneType)
        return None if text.lower() in ("", "none") else typed(text, rest, name)
    if hint is bool:
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{name} must be true or false, got {text!r}")
        return _BOOLEANS[text.lower()]
    if hint is str:
        return text
    if hint is torch.dtype:
        return text.removeprefix("torch.")
    try:
        return hint(text)
    except ValueError as error:
        kind = "a whole number" if hint is int else "a number"
        raise ValueError(f"{name} must be {kind}, got {text!r}") from error
