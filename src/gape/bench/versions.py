"""What a result was computed with."""

from __future__ import annotations

import platform
from importlib.metadata import version

_PACKAGES = ("torch", "torch_geometric", "lightning", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Versions of Python, of this package and of those that its numbers depend on.

    >>> sorted(versions())[:2]
    ['gape', 'lightning']
    """
    from gape import __version__

    found = {name: version(name) for name in _PACKAGES}
    return {"gape": __version__, "python": platform.python_version(), **found, "machine": platform.machine()}
