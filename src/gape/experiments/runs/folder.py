"""Run folders (records, a lock, versions, checkpoints), and files of results."""

from __future__ import annotations

import json
import pickle
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch

from gape._internal.files import file_lock, folder_lock, replacing
from gape.experiments.runs.settings import describe_changes

T = TypeVar("T")
Record = dict[str, Any]

_PACKAGES = ("torch", "torch_geometric", "lightning", "numpy", "scipy")


@dataclass(frozen=True)
class RunFolder:
    """The folder of one training run.

    It holds ``settings.json`` and other records of how the run was started, checkpoints while it trains, and
    ``result.json``, written last: a folder that has it is complete.

    Args:
        path: of the folder, created by :meth:`locked` or the first write.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as path:
        ...     folder = RunFolder(Path(path))
        ...     folder.pin("settings.json", {"lr": 0.1})
        ...     folder.pin("settings.json", {"lr": 0.2})
        Traceback (most recent call last):
        ValueError: ... holds a run with other settings: lr is 0.1 there and 0.2 here; remove it, or choose another ...
    """

    path: Path

    @property
    def started(self) -> bool:
        """True once the settings are written."""
        return (self.path / "settings.json").exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and hold its lock; refuse if another process holds it."""
        self.path.mkdir(parents=True, exist_ok=True)
        with folder_lock(self.path):
            yield

    def pin(
        self,
        name: str,
        record: Mapping[str, Any],
        differences: Callable[[Mapping[str, Any], Mapping[str, Any]], Sequence[str]] = describe_changes,
    ) -> None:
        """Write a record when the run starts; refuse to continue if the record there differs.

        Args:
            name: of the file.
            record: what the run has now.
            differences: describes how a recorded run (first argument) differs from the current one (second).
        """
        path = self.path / name
        if path.exists():
            self.refuse(differences(read_record(path), record))
        write_record(path, record)

    def refuse(self, changes: Sequence[str]) -> None:
        """Raise an error that quotes the changes since the run was started, if there are any."""
        if changes:
            raise ValueError(
                f"{self.path} holds a run with other settings: {', '.join(changes)}; remove it, or choose another "
                "folder"
            )

    def result(self) -> Record | None:
        """Read ``result.json``; None while the run is not complete."""
        path = self.path / "result.json"
        return read_record(path) if path.is_file() else None

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write ``result.json``, which completes the run."""
        write_record(self.path / "result.json", result)

    def add_versions(self) -> Record:
        """Add the current versions to ``versions.json``.

        Returns:
            What a result says of them: ``versions``, and ``versions_before``, if earlier sessions had others.
        """
        path = self.path / "versions.json"
        record = read_record(path) if path.exists() else {}
        # Earlier files call the list "sittings", or hold the versions of one session without a list.
        earlier: list[dict[str, str]] = record.get("sessions") or record.get("sittings") or ([record] if record else [])
        before = [known for known in earlier if known != versions()]
        write_record(path, {"sessions": [*before, versions()]})
        return {"versions": versions(), **({"versions_before": before} if before else {})}


def read_record(path: Path) -> Record:
    """Read a JSON object from a file; errors name the file."""
    return parse_record(path.read_text(encoding="utf-8"), path)


def parse_record(text: str, where: str | Path) -> Record:
    """Parse a JSON object; errors name the file, or the line of a file, that it comes from."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is damaged: {error}; remove it, and train that run again") from error
    if not isinstance(record, dict):
        raise ValueError(
            f"{where} is damaged: expected an object, got {text[:40]!r}; remove it, and train that run again"
        )
    return record


def load_checkpoint(path: Path, build: Callable[[Any], T]) -> T:
    """Return ``build(content)`` of a file with tensors and plain values; errors name the file."""
    try:
        return build(torch.load(path, map_location="cpu", weights_only=True))
    except (RuntimeError, ValueError, TypeError, LookupError, EOFError, pickle.UnpicklingError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path} is damaged ({reason}); remove its folder and train again") from error


def write_record(path: Path, record: Any) -> None:
    """Write a record as JSON; the file is whole or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


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
        "processor": processor_name(),
        "accelerator": str(torch.accelerator.current_accelerator() or "cpu"),
    }


def processor_name() -> str:
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


def read_lines(path: Path) -> list[tuple[str, Record]]:
    """Read the records of a file, each with its position for error messages; empty if there is no file."""
    if not path.is_file():
        return []
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    placed = [(f"line {number} of {path}", line) for number, line in lines if line.strip()]
    return [(where, parse_record(line, where)) for where, line in placed]


def require_keys(record: Record, keys: Iterable[str], where: str | Path) -> Record:
    """Return the record if it has all keys; else raise an error that names its position.

    >>> require_keys({"task": "csl"}, ("task", "seed"), "line 3 of csl.jsonl")
    Traceback (most recent call last):
    ValueError: line 3 of csl.jsonl is not a result: it has no seed; remove it, and train that run again
    """
    if absent := [key for key in keys if key not in record]:
        raise ValueError(f"{where} is not a result: it has no {', '.join(absent)}; remove it, and train that run again")
    return record


def write_lines(path: Path, records: Iterable[Record]) -> None:
    """Write records, one per line; the file is whole or absent. Hold :func:`results_lock` from before reading."""
    with replacing(path) as temporary:
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def results_lock(folder: Path) -> Iterator[None]:
    """Create a folder of result files and hold its lock, so that no process overwrites what another one adds."""
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / ".lock"):
        yield


def update_lines(path: Path, change: Callable[[list[Record]], Iterable[Record]]) -> list[Record]:
    """Replace the records of one file by ``change(records)`` while holding the lock of its folder."""
    with results_lock(path.parent):
        records = list(change([record for _, record in read_lines(path)]))
        write_lines(path, records)
    return records
