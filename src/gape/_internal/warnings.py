"""Warnings that point at the caller's line instead of a line of this library; needs no PyTorch, like `files`."""

from __future__ import annotations

import sys
import warnings

# Frames of these packages are skipped: transforms are called by PyG, layers by PyTorch, locks by contextlib.
_INSIDE = ("gape", "torch", "torch_geometric", "contextlib")


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this library, PyTorch and PyG."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
