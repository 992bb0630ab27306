"""The plan of a sharded run, and the manifest and log of what is finished."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gape._internal.files import replacing
from gape.encodings.base import Encoding
from gape.io.edge_list import Columns

# Readers of a folder of parquet files leave out names that start with "_".
MANIFEST, LOG = "_manifest.jsonl", "_log.jsonl"
#: Advice after an interruption.
RESUME_ADVICE = "finished shards are kept, and the same call resumes"
_HASH_BYTES = 1 << 20
_USUAL = Columns()

#: Content of a line of the manifest or of the log.
Record = dict[str, Any]


@dataclass(frozen=True)
class Reading:
    """Options of reading the files.

    Args:
        columns: names of the columns of tables.
        weighted: False to leave out edge weights, and to count repeated edges once.
        undirected: take every edge in both directions.
        text_names: write names of graphs and nodes as text, also where they are whole numbers.
    """

    columns: Columns = _USUAL
    weighted: bool = True
    undirected: bool = False
    text_names: bool = False


@dataclass(frozen=True)
class Shard:
    """A piece of work: all that a worker must know.

    Args:
        name: of the file it becomes, below ``out``.
        source: file with the graphs.
        start, stop: the shard has the graphs whose first rows these are; ``stop`` is ``None`` for a whole file.
        state: size and time of change of the source.
        out: folder of the results.
        encoding: settings.
        label: name of the encoding, for the columns.
        reading: how to read the file.
        cost: bytes of the source, or its share of them.
    """

    name: str
    source: Path
    start: int
    stop: int | None
    state: str
    out: Path
    encoding: Encoding
    label: str
    reading: Reading
    cost: float

    @property
    def identity(self) -> Record:
        """The fields in which a finished shard must agree to be skipped."""
        rows = None if self.stop is None else [self.start, self.stop]
        return {"shard": self.name, "source": str(self.source), "state": self.state, "rows": rows}


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_HASH_BYTES):
            digest.update(piece)
    return digest.hexdigest()


class Manifest:
    """The manifest and the log of a folder; one process at a time writes them.

    The manifest's first line has the settings, the others a finished shard each. Lines are appended while shards
    finish, and in the end written again by name, so that the file does not depend on the order.
    """

    def __init__(self, folder: Path, settings: Record) -> None:
        self.folder, self.settings = folder, settings
        self.done: dict[str, Record] = {}
        path = folder / MANIFEST
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for number, line in enumerate(lines):
            try:
                record = json.loads(line)
            except ValueError:
                if number == len(lines) - 1:
                    break  # cut short when its writer was killed: that shard is done again
                raise ValueError(f"{path}, line {number + 1} is damaged: {line[:80]!r}; remove it") from None
            if number == 0:
                self._check(path, record)
            else:
                self.done[record["shard"]] = record
        self.rewrite()

    def _check(self, path: Path, before: Record) -> None:
        for key, value in self.settings.items():
            if before.get(key) != value:
                raise ValueError(
                    f"{path.parent} has shards of another run, {key} {before.get(key)!r}, now {value!r}; choose "
                    "another folder, or delete it"
                )

    def rewrite(self) -> None:
        with replacing(self.folder / MANIFEST) as temporary:
            records = [self.settings, *(self.done[name] for name in sorted(self.done))]
            temporary.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")

    def add(self, record: Record) -> None:
        self.done[record["shard"]] = record
        self._append(MANIFEST, record)

    def log(self, record: Record) -> None:
        self._append(LOG, {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **record})

    def _append(self, name: str, record: Record) -> None:
        try:
            with open(self.folder / name, "a", encoding="utf-8") as file:
                file.write(f"{json.dumps(record)}\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(
                error.errno, f"{os.strerror(error.errno or 0)}; {RESUME_ADVICE}", str(self.folder / name)
            ) from error

    def has(self, shard: Shard) -> bool:
        """Return whether a shard is finished: as planned, and its file as it was written."""
        record, path = self.done.get(shard.name), self.folder / shard.name
        if record is None or any(record[key] != value for key, value in shard.identity.items()):
            return False
        if not record["graphs"]:
            return True
        return path.is_file() and path.stat().st_size == record["bytes"] and sha256(path) == record["sha256"]

    def forget_others(self, shards: Sequence[Shard]) -> None:
        """Remove what is out of date: shards that their source no longer has, and temporary files of killed workers."""
        planned = {shard.name: shard for shard in shards}
        sources = {str(shard.source) for shard in shards}
        for name, record in list(self.done.items()):
            if record["source"] in sources and name not in planned:
                self.remove(name)
            elif name in planned and record["source"] != str(planned[name].source):
                raise ValueError(
                    f"{self.folder / name} was made from {record['source']}, now from {planned[name].source}; choose "
                    "another folder"
                )
        for part in self.folder.rglob(".*.part"):
            if part.name.split(".parquet.")[0].removeprefix(".") + ".parquet" in {Path(name).name for name in planned}:
                part.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        del self.done[name]
        (self.folder / name).unlink(missing_ok=True)
