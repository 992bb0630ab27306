"""Tensors that an object keeps as they were given and makes fit for use whenever they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor

T = TypeVar("T")


def following(*names: str) -> Callable[[type[T]], type[T]]:
    """Let fields of a dataclass follow tensors that require gradients when they are set, when an optimiser steps.

    What is made of such a tensor once, by a cast or a mask, is left behind at the first step; so it is made at every
    read, by the object's method ``_fit(name, tensor)``, also after the tensor was frozen. Other tensors are read as
    they were set.
    """

    def attach(kind: type[T]) -> type[T]:
        for name in names:
            setattr(kind, name, _Followed(name))
        return kind

    return attach


class _Followed:
    def __init__(self, name: str) -> None:
        self._name, self._mark = name, f"_follows_{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        held = vars(instance)
        given = held[self._name]
        return instance._fit(self._name, given) if held[self._mark] else given

    def __set__(self, instance: Any, given: Any) -> None:
        vars(instance)[self._name] = given
        vars(instance)[self._mark] = isinstance(given, Tensor) and given.requires_grad
