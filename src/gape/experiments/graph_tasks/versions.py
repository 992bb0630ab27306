"""What a result was computed with."""

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
    """Versions of Python, of this package and of those that its numbers depend on, and what it ran on.

    As they are when first asked for: a checkout may change under a process that runs for hours.

    >>> sorted(versions())[:2]
    ['accelerator', 'gape']
    """
    found = {name: version(name) for name in _PACKAGES}
    return {
        "gape": _own(),
        "python": platform.python_version(),
        **found,
        "machine": platform.machine(),
        "processor": _processor(),
        "accelerator": str(torch.accelerator.current_accelerator() or "cpu"),
    }


def _processor() -> str:
    """Its name, where the system tells: sums come out in another order on another one."""
    listed = Path("/proc/cpuinfo")  # Linux, where the platform module has no name
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _own() -> str:
    """The version of this package, with the commit if it is used from a checkout: between releases both count."""
    from gape import __version__

    here, git = Path(__file__), shutil.which("git")
    if git is None:
        return __version__
    asked = (("ls-files", "--error-unmatch", here.name), ("describe", "--always", "--dirty", "--abbrev=12"))
    answers = [subprocess.run((git, *words), cwd=here.parent, capture_output=True, text=True) for words in asked]
    if any(answer.returncode for answer in answers):  # installed, not a checkout
        return __version__
    return f"{__version__}+{answers[1].stdout.strip()}"
