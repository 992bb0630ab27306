"""Where what was computed, generated or downloaded before is kept."""

import os
import sys
from pathlib import Path


def cache_folder(kind: str) -> Path:
    """The folder of cached things of a kind, such as ``"encodings"`` or ``"data"``.

    It lies in the folder that the environment variable ``GAPE_CACHE`` names; without it, in ``gape`` in the platform's
    folder for caches: ``$XDG_CACHE_HOME`` or ``~/.cache``, on macOS ``~/Library/Caches``, on Windows
    ``%LOCALAPPDATA%``. Made by whoever writes there first.

    Example:
        >>> cache_folder("encodings").name
        'encodings'
    """
    chosen = os.environ.get("GAPE_CACHE")
    if chosen:
        return Path(chosen).expanduser() / kind
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gape" / kind
