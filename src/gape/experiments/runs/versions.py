"""Versions of the software and the machine that a result was computed with."""

from __future__ import annotations

import platform
import shutil
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

_PACKAGES = ("torch", "torch_geometric", "lightning", "numpy", "scipy")


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, gape and the packages its numbers depend on, and the hardware.

    Cached on the first call: a checkout may change while a process runs for hours.

    >>> sorted(versions())[:2]
    ['accelerator', 'gape']
    """
    return {
        "gape": _gape_version(),
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
        "machine": platform.machine(),
        "processor": _processor(),
        "accelerator": str(torch.accelerator.current_accelerator() or "cpu"),
    }


def _processor() -> str:
    """Return the processor's name if the system tells it: the order of sums depends on the processor."""
    listed = Path("/proc/cpuinfo")  # Linux, where the platform module has no name
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _gape_version() -> str:
    """Return gape's version, with the commit when it is imported from a git checkout."""
    from gape import __version__

    here, git = Path(__file__), shutil.which("git")
    if git is None:
        return __version__
    commands = (("ls-files", "--error-unmatch", here.name), ("describe", "--always", "--dirty", "--abbrev=12"))
    answers = [subprocess.run((git, *words), cwd=here.parent, capture_output=True, text=True) for words in commands]
    if any(answer.returncode for answer in answers):  # installed, not a checkout
        return __version__
    return f"{__version__}+{answers[1].stdout.strip()}"
