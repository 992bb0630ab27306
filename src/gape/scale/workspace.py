"""Files that the processes working on one graph share: checkpoints, and output written row by row."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gape._internal.files import replacing
from gape.scale.ranks import Ranks

_STATE = "state.json"
# Seconds between two checkpoints, at least.
CHECKPOINT_SECONDS = 10.0


class Workspace:
    """A folder for one computation. Every rank writes its rows; the first rank records what is complete.

    Files hold rows of all ranks in their order, so a computation may go on with another number of ranks.

    Args:
        parent: the folder of the graph.
        settings: complete description of the computation; another one gets another folder.
        ranks: the processes.
        kind: start of the folder's name.
    """

    def __init__(self, parent: Path, settings: str, ranks: Ranks, kind: str = "encode") -> None:
        self.folder = parent / f"{kind}-{hashlib.sha256(settings.encode()).hexdigest()[:16]}"
        self.settings, self.ranks = settings, ranks
        self._written: set[Path] = set()
        self._committed = time.monotonic()
        if ranks.first:
            self.folder.mkdir(exist_ok=True)
        self.state: dict[str, Any] = ranks.agree(self._read() if ranks.first else None)

    def _read(self) -> dict[str, Any]:
        try:
            held = json.loads((self.folder / _STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return held["state"] if held["settings"] == self.settings else {}

    @property
    def due(self) -> bool:
        """True if it is time for a checkpoint, as the first rank sees it; to be reduced by max over all ranks."""
        return self.ranks.first and time.monotonic() - self._committed >= CHECKPOINT_SECONDS

    def commit(self, **state: Any) -> None:
        """Record a state that refers only to rows written before, by any rank."""
        for path in self._written:
            with open(path, "rb") as file:
                os.fsync(file.fileno())
        self._written.clear()
        self.ranks.barrier()
        self.state = {**self.state, **state}
        if self.ranks.first:
            with replacing(self.folder / _STATE) as temporary:
                temporary.write_text(json.dumps({"settings": self.settings, "state": self.state}), encoding="utf-8")
        self.ranks.barrier()
        self._committed = time.monotonic()

    def write(self, name: str, position: int, values: NDArray[Any]) -> None:
        """Write values from element ``position`` on."""
        path = self.folder / name
        write_at(path, position * values.itemsize, values)
        self._written.add(path)

    def read(self, name: str, position: int, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Read values from element ``position`` on."""
        count, width = int(np.prod(shape)), np.dtype(dtype).itemsize
        found = np.fromfile(self.folder / name, dtype=dtype, count=count, offset=position * width)
        return found.reshape(shape)

    def remove(self, *names: str) -> None:
        """Delete files that the recorded state does not need; by the first rank."""
        for name in names:
            self._written.discard(self.folder / name)
            if self.ranks.first:
                (self.folder / name).unlink(missing_ok=True)

    def delete(self) -> None:
        """Delete the folder when all is done."""
        self.ranks.barrier()
        if self.ranks.first:
            shutil.rmtree(self.folder)


class RowFile:
    """A ``.npy`` file ``[nodes, columns]`` to which every rank writes its rows; appears under its name when complete.

    Args:
        path: the file; until :meth:`finish` it has another name in the same folder.
        shape: of the array.
        dtype: of the numbers.
        ranks: the processes.
    """

    def __init__(self, path: Path, shape: tuple[int, int], dtype: Any, ranks: Ranks) -> None:
        self.path, self.shape, self.dtype, self.ranks = path, shape, np.dtype(dtype), ranks
        self.temporary = path.with_name(f".{path.name}.part")
        header = io.BytesIO()
        described = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, described)
        self._start = header.tell()
        if ranks.first:
            with open(self.temporary, "wb") as file:
                file.write(header.getvalue())
                file.truncate(self._start + shape[0] * shape[1] * self.dtype.itemsize)
        ranks.barrier()

    def write(self, row: int, values: NDArray[Any]) -> None:
        """Write rows from ``row`` on."""
        offset = self._start + row * self.shape[1] * self.dtype.itemsize
        write_at(self.temporary, offset, values.astype(self.dtype, copy=False))

    def finish(self) -> None:
        """Rename the file when all ranks have written their rows."""
        with open(self.temporary, "rb") as file:
            os.fsync(file.fileno())
        self.ranks.barrier()
        if self.ranks.first:
            os.replace(self.temporary, self.path)
        self.ranks.barrier()

    def discard(self) -> None:
        if self.ranks.first:
            self.temporary.unlink(missing_ok=True)


def write_at(path: Path, offset: int, values: NDArray[Any]) -> None:
    """Write an array into a file that other processes may write to elsewhere."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        left = memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
        while left:
            done = os.pwrite(file, left[: 1 << 30], offset)
            left, offset = left[done:], offset + done
    finally:
        os.close(file)
