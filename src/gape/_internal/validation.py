"""Convert and validate user input; errors quote the value, the expectation and its name."""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Iterable
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import numpy as np
import torch
from torch import Tensor


def as_tensor(value: Any, name: str) -> Tensor:
    """Convert a tensor, NumPy array or nested list of numbers to a tensor.

    Example:
        >>> as_tensor([[1, 2], [3, 4]], "weights").shape
        torch.Size([2, 2])
    """
    if isinstance(value, Tensor):
        # PyG's EdgeIndex overrides some operations; unwrap it.
        plain: Tensor = value.as_tensor() if hasattr(value, "as_tensor") else value
        return plain
    try:
        array = np.asarray(value, order="C")
        # PyTorch has no read-only tensors: it would warn and share the memory.
        return torch.as_tensor(array if array.flags.writeable else array.copy())
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} must be an array of numbers, got {reprlib.repr(value)}") from error


def check_finite(tensor: Tensor, name: str) -> None:
    """Raise if a tensor holds infinity or NaN."""
    finite = torch.isfinite(tensor.detach())
    if not bool(finite.all()):
        place = (~finite).nonzero()[0].tolist()
        raise ValueError(f"{name} must be finite, got {tensor.detach()[tuple(place)].item()} at {place}")


def check_batch(batch: Tensor) -> None:
    """Validate PyG's ``batch`` vector: the graph number of every node, ascending."""
    if not isinstance(batch, Tensor) or batch.dim() != 1 or batch.dtype not in (torch.int64, torch.int32):
        got = f"{batch.dtype} of shape {list(batch.shape)}" if isinstance(batch, Tensor) else type(batch).__name__
        raise ValueError(f"batch must be an integer tensor [n] with the graph number of every node, got {got}")
    if batch.numel() and int(batch[0]) < 0:
        raise ValueError(f"batch must hold graph numbers from 0, got {int(batch[0])}")
    falls = (batch.diff() < 0).nonzero()
    if len(falls):
        at = int(falls[0]) + 1
        raise ValueError(
            f"batch must be ascending: node {at} belongs to graph {int(batch[at])}, "
            f"the node before it to graph {int(batch[at - 1])}; sort the nodes by graph"
        )


def whole_number(value: Any, name: str, at_least: int, at_most: int = 2**63 - 1) -> int:
    """Return ``value`` as an ``int`` within ``at_least … at_most``, or raise."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if not at_least <= value <= at_most:
        bound = f"at least {at_least}" if value < at_least else f"at most {at_most}"
        raise ValueError(f"{name} must be {bound}, got {value}")
    return int(value)


def seed_number(value: Any) -> int:
    """Return a seed: any 64-bit integer."""
    return whole_number(value, "seed", -(2**63))


def finite_number(value: Any, name: str) -> float:
    """Return ``value`` as a finite ``float``, or raise."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number, got {value!r}") from error
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def finite_numbers(values: Any, name: str) -> tuple[float, ...]:
    """Return one number or several as a tuple of finite ``float``, or raise if there is none.

    >>> finite_numbers((1, 0.5), "times"), finite_numbers(2, "times")
    ((1.0, 0.5), (2.0,))
    """
    several = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else (values,)
    if not several:
        raise ValueError(f"{name} must be at least one number, got {values!r}")
    return tuple(finite_number(value, name) for value in several)


def positive(value: Any, name: str) -> int:
    """Return ``value`` as an ``int`` of at least 1, or raise."""
    return whole_number(value, name, at_least=1)


def check_at_least(least: float, **settings: float) -> None:
    """Raise an error if one of the named settings is below ``least`` or NaN.

    Example:
        >>> check_at_least(1, states=0)
        Traceback (most recent call last):
        ValueError: states must be at least 1, got 0
    """
    for name, value in settings.items():
        if not value >= least:
            raise ValueError(f"{name} must be at least {least}, got {value!r}")


def check_one_of(choices: tuple[str, ...], **settings: str) -> None:
    """Raise an error if one of the named settings is not among ``choices``.

    Example:
        >>> check_one_of(("path", "cycle"), shape="star")
        Traceback (most recent call last):
        ValueError: shape must be one of 'path', 'cycle', got 'star'
    """
    for name, value in settings.items():
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message that suggests the most similar known word, or nothing if none is similar.

    Short words, whose share of common letters says little, are similar if they differ by one typo, or if three letters
    or more begin a known word.

    >>> did_you_mean("lenght", ["length", "memory"]), did_you_mean("x", ["length"])
    ("; did you mean 'length'?", '')
    >>> did_you_mean("spf", ["sa", "spd"])
    "; did you mean 'spd'?"
    """
    word, lowered = str(word).lower(), {name.lower(): name for name in known}
    found = (
        difflib.get_close_matches(word, lowered, n=1, cutoff=0.7)
        or sorted((name for name in lowered if within_one_typo(word, name)), key=lambda name: name[0] != word[0])
        or [name for name in lowered if len(word) >= 3 and name.startswith(word)]
    )
    return f"; did you mean {lowered[found[0]]!r}?" if found else ""


def within_one_typo(a: str, b: str) -> bool:
    """Return True if the words differ by one typo: a letter changed, missing or added, or two swapped.

    >>> within_one_typo("spf", "spd"), within_one_typo("zinc", "zinck"), within_one_typo("rw", "sa")
    (True, True, False)
    """
    if min(len(a), len(b)) < 2:
        return False
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def indices(values: Any, name: str, below: int) -> tuple[int, ...]:
    """Return distinct whole numbers in ``0 … below - 1``, sorted, or raise."""
    try:
        return tuple(sorted({whole_number(value, name, 0, below - 1) for value in values}))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be whole numbers in 0 … {below - 1}, got {values!r}") from error


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_setting(text: str, hint: Any, name: str) -> Any:
    """Parse the text of a setting as the type of its annotation; names of a ``torch.dtype`` stay text.

    >>> parse_setting("true", bool, "x"), parse_setting("1e-3", float, "x"), parse_setting("none", int | None, "x")
    (True, 0.001, None)
    >>> parse_setting("0.5, 2", tuple[float, ...], "times")
    (0.5, 2.0)
    >>> parse_setting("many", int, "layers")
    Traceback (most recent call last):
    ValueError: layers must be a whole number, got 'many'
    """
    if get_origin(hint) is Literal:
        if text not in get_args(hint):
            raise ValueError(f"{name} must be one of {', '.join(get_args(hint))}, got {text!r}")
        return text
    if NoneType in get_args(hint):
        rest = next(kind for kind in get_args(hint) if kind is not NoneType)
        return None if text.lower() in ("", "none") else parse_setting(text, rest, name)
    if hint is bool:
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{name} must be true or false, got {text!r}")
        return _BOOLEANS[text.lower()]
    if hint is str:
        return text
    if get_origin(hint) is tuple:
        return tuple(parse_setting(part.strip(), get_args(hint)[0], name) for part in text.split(","))
    if hint is torch.dtype:
        return text.removeprefix("torch.")
    try:
        return hint(text)
    except ValueError as error:
        kind = "a whole number" if hint is int else "a number"
        raise ValueError(f"{name} must be {kind}, got {text!r}") from error
