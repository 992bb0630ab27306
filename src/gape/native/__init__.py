"""Compiled kernels for the CPU: a C library without Python or torch in it, called through ctypes.

PyTorch does the same work where there is no library (no C compiler at installation), and everything on a GPU, with
gradients, or out of the ordinary. ``GAPE_NATIVE=0`` turns the kernels off, ``GAPE_NATIVE=baseline`` uses those for
processors without AVX2, and the path of another build replaces them.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILE = {"win32": "libgape.dll", "darwin": "libgape.dylib"}.get(sys.platform, "libgape.so")


@dataclass(frozen=True)
class Library:
    """The loaded library; ``variant``: the instruction set of the kernels that are called."""

    file: ctypes.CDLL
    variant: str


_switched_off = False


def library() -> Library | None:
    """The kernels, ``None`` if PyTorch does their work."""
    return None if _switched_off else _load()[0]


def kernel(name: str, *arguments: Any) -> Callable[..., int] | None:
    """The kernel ``name`` as a function of ``arguments`` (ctypes types) that releases the GIL; ``None`` without it."""
    found = library()
    return None if found is None else _kernel(found, name, arguments)


@functools.cache
def _kernel(found: Library, name: str, arguments: tuple[Any, ...]) -> Callable[..., int]:
    function: Any = getattr(found.file, f"gape_{name}_{found.variant}")
    function.argtypes, function.restype = list(arguments), ctypes.c_int
    return function  # type: ignore[no-any-return]


@contextmanager
def switched_off() -> Iterator[None]:
    """Leave the work to PyTorch meanwhile, to compare the two; affects all threads."""
    global _switched_off
    before, _switched_off = _switched_off, True
    try:
        yield
    finally:
        _switched_off = before


def description() -> str:
    """Name the kernels in use, or say why there are none, in a few words.

    Example:
        >>> with switched_off():
        ...     description()
        'no compiled kernels: switched off'
    """
    if _switched_off:
        return "no compiled kernels: switched off"
    found, reason = _load()
    return f"compiled kernels: {found.variant}" if found else f"no compiled kernels: {reason}"


def show_config() -> None:
    """Print versions, the kernels that are used and the number of threads."""
    from importlib.metadata import version
    from platform import platform, python_version

    import torch

    print(f"gape {version('gape')}, {description()}")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"Python {python_version()}, {platform()}")


@functools.cache
def _load() -> tuple[Library | None, str]:
    """The library, or the reason why there is none."""
    setting = os.environ.get("GAPE_NATIVE") or "1"
    if setting == "0":
        return None, "GAPE_NATIVE=0"
    own = setting in ("1", "baseline")
    path = HERE / FILE if own else Path(setting)
    if not path.exists():
        if not own:
            raise FileNotFoundError(
                f"GAPE_NATIVE={setting}: no such file; expected 0, 1, baseline or the path of a build"
            )
        return None, "not built; install gape where there is a C compiler"
    try:
        file = ctypes.CDLL(str(path))
    except OSError as error:
        return None, f"{path.name} does not load: {error}"
    if not all(hasattr(file, name) for name in ("gape_variant", "gape_sources")):
        raise ImportError(
            f"GAPE_NATIVE={setting}: {path} is a library, but not a build of the sources in {HERE}; unset GAPE_NATIVE "
            "for the one installed with gape, or set it to 0, 1, baseline or the path of another libgape"
        )
    file.gape_variant.restype = file.gape_sources.restype = ctypes.c_char_p
    if _fingerprint() not in ("", file.gape_sources().decode()):
        reason = "built from other sources than these; install gape again"
        warnings.warn(f"gape runs without its compiled kernels: {path.name} was {reason}", stacklevel=2)
        return None, reason
    return Library(file, setting if setting == "baseline" else file.gape_variant().decode()), ""


def _fingerprint() -> str:
    """Hash of the sources as in CMakeLists.txt; '' where there are none, as in a wheel."""
    build = HERE / "CMakeLists.txt"
    if not build.exists():
        return ""
    text = build.read_text(encoding="utf-8")
    lists = [text.split(f"set({part}", 1)[1].split(")", 1)[0].split() for part in ("COMMON", "KERNELS", "HEADERS")]
    sources = [name for names in lists for name in names]
    hashes = (hashlib.sha256((HERE / name).read_bytes()).hexdigest() for name in sources)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()
