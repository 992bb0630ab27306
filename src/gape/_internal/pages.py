"""Files that HTML pages are made of, and the style that all pages share."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def asset(package: str, name: str) -> str:
    """Return a text file of a package's folder ``assets``.

    Example:
        >>> asset("gape._internal", "style.css").startswith("/*")
        True
    """
    return (files(package) / "assets" / name).read_text(encoding="utf-8")


def page_style() -> str:
    """Return the style sheet that all pages share: colours in light and dark, type, tables."""
    return asset("gape._internal", "style.css")
