"""Encode millions of small graphs: shards of files in, one Parquet file each out, by any executor."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import gape
from gape._internal.executors import ProcessPool, completed
from gape._internal.files import folder_lock
from gape.encodings.base import Encoding
from gape.encodings.registry import make
from gape.io.blocks import GraphTable
from gape.io.edge_list import Columns
from gape.io.read import file_kind
from gape.scale.manifest import RESUME_ADVICE, Manifest, Reading, Record, Shard
from gape.scale.worker import encode_shard
from gape.solvers.solution import Status

#: Rows per shard: molecules, or edges.
SHARD_MOLECULES = 50_000
SHARD_EDGES = 2_000_000
_USUAL = Columns()

#: Called with a line of the log, and with the bytes of input done and in all.
Progress = Callable[[Record, float, float], None]


@dataclass(frozen=True)
class ShardsResult:
    """Summary of a call of :func:`encode_shards`.

    Args:
        folder: of the results.
        shards: number of shards, those without graphs included.
        skipped: how many of them were finished before.
        graphs, nodes: encoded, in all.
        status: number of graphs by status, if the encoding has certificates.
    """

    folder: Path
    shards: int
    skipped: int
    graphs: int
    nodes: int
    status: dict[Status, int] = field(default_factory=dict)


class ShardsFailed(ValueError):
    """Some shards could not be encoded; the others are complete.

    Args:
        failures: reasons by shard.
        shards: number of shards in all.
    """

    def __init__(self, failures: dict[str, str], shards: int) -> None:
        self.failures, self.shards = failures, shards
        lines = "\n".join(f"{name}: {reason}" for name, reason in sorted(failures.items()))
        super().__init__(f"{len(failures)} of {shards} shards failed, the others are kept:\n{lines}")


def encode_shards(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    encoding: Encoding | str,
    out: str | os.PathLike[str],
    executor: Executor | None = None,
    *,
    workers: int | None = None,
    label: str | None = None,
    reading: Reading | None = None,
    shard_rows: int | None = None,
    progress: Progress | None = None,
) -> ShardsResult:
    """Encode the graphs of many files, shard by shard.

    A shard is a file; tables of molecules, and parquet tables of edges with a column ``graph``, are cut into shards of
    ``shard_rows`` rows. A worker reads a shard in blocks of whole graphs, so that its memory does not grow with the
    shard, and writes one parquet file as :func:`gape.io.write.write_encoding` does. Its bytes depend on the source and
    the settings alone.

    ``out`` has the files, ``_manifest.jsonl`` with their checksums, and ``_log.jsonl`` with a line per shard.
    Called again after an interruption or a failure, it resumes: finished shards are skipped unless their source has
    changed or their checksum is wrong.

    Molecules without a column ``graph`` are numbered by row, per file; a file with one graph without a name has its own
    name for that. Other names must differ in the whole dataset.

    Args:
        source: a file, a folder (all files that can be read, also below it), or a list of files.
        encoding: an encoding, or its name.
        out: folder of the results; made if it is missing. With workers on other machines, on a file system they share.
        executor: anything with the interface of ``concurrent.futures``, such as ``client.get_executor()`` of
            ``dask.distributed``. Default: worker processes.
        workers: number of worker processes; 0 to work in this process. Default: one per processor.
        label: start of the columns' names. Default: the encoding's name, or ``pe``.
        reading: how to read the files.
        shard_rows: rows per shard. Default: 50,000 molecules or 2 million edges.
        progress: called after every shard.

    Raises:
        ShardsFailed: with the reasons by shard, when all others are done.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "two.csv")
        ...     _ = path.write_text("source,target,graph\\n0,1,a\\n1,2,a\\n0,1,b\\n")
        ...     result = encode_shards(path, "rw", Path(folder, "out"), workers=0)
        ...     result.shards, result.graphs, sorted(os.listdir(result.folder))
        (1, 2, ['.lock', '_log.jsonl', '_manifest.jsonl', 'two.csv-00000.parquet'])
    """
    if executor is not None and workers is not None:
        raise ValueError(f"give an executor or workers, got {executor!r} and workers={workers}")
    if workers is not None and workers < 0:
        raise ValueError(f"workers must be at least 0 (in this process), got {workers}")
    if shard_rows is not None and shard_rows < 1:
        raise ValueError(f"shard_rows must be at least 1, got {shard_rows}")
    label = label or (encoding if isinstance(encoding, str) else "pe")
    encoding = make(encoding) if isinstance(encoding, str) else encoding
    out, reading = Path(out).resolve(), reading or Reading()
    sources = _sources(source, out)
    shards = [shard for path, name in sources for shard in _plan(path, name, out, encoding, label, reading, shard_rows)]
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; shards go to a folder: name another one")
    out.mkdir(parents=True, exist_ok=True)
    with folder_lock(out):
        settings = {"gape": gape.__version__, "encoding": f"{label}: {encoding!r}", "reading": asdict(reading)}
        book = Manifest(out, settings)
        book.forget_others(shards)
        waiting = [shard for shard in shards if not book.has(shard)]
        run = _Run(book, shards, waiting, progress)
        if executor is not None:
            run.through(executor)
        elif workers == 0:
            run.through(None)
        elif waiting:
            with ProcessPool(min(workers or _processors(), len(waiting))) as pool:
                run.through(pool)
        return run.finish()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _sources(source: Any, out: Path) -> list[tuple[Path, str]]:
    """Return the files and their names relative to the folder they share, which are different."""
    listed = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not listed:
        raise ValueError("expected files with graphs, got an empty list")
    paths: list[Path] = []
    for path in map(Path, listed):
        if not path.is_dir():
            file_kind(path)  # raises if it cannot be read
            paths.append(path.resolve())
            continue
        found = [file.resolve() for file in sorted(path.rglob("*")) if _is_readable(file.relative_to(path), file)]
        found = [file for file in found if not file.is_relative_to(out)]
        if not found:
            raise ValueError(f"{path} has no files with graphs")
        paths += found
    if twice := [path for path, count in Counter(paths).items() if count > 1]:
        raise ValueError(f"{twice[0]} is given twice")
    root = Path(os.path.commonpath([path.parent for path in paths]))
    return [(path, path.relative_to(root).as_posix()) for path in paths]


def _is_readable(relative: Path, file: Path) -> bool:
    """Return whether a file of a folder is one of its graphs; hidden files and those with ``_`` (Spark's) are not."""
    if not file.is_file() or any(part[0] in "._" for part in relative.parts):
        return False
    try:
        file_kind(file)
    except ValueError:
        return False
    return True


def _plan(
    path: Path, name: str, out: Path, encoding: Encoding, label: str, reading: Reading, shard_rows: int | None
) -> Iterator[Shard]:
    """Cut a file into shards; one that cannot be read is one shard, whose worker says so."""
    stat = path.stat()
    state = f"{stat.st_size} bytes, modified {stat.st_mtime_ns}"
    whole = Shard(
        f"{name}-00000.parquet", path, 0, None, state, out, encoding, label, reading, float(max(stat.st_size, 1))
    )
    try:
        table = GraphTable.open(path, reading.columns)
        # A part of a text of edges could be found only by reading all that is before it, which takes long.
        cut = table is not None and (table.molecules or file_kind(path) == ".parquet")
        rows = table.count() if table is not None and cut else 0
        size = shard_rows or (SHARD_MOLECULES if cut and table is not None and table.molecules else SHARD_EDGES)
    except (ValueError, OSError):
        rows, size = 0, 1
    if rows <= size:
        yield whole
        return
    for number, start in enumerate(range(0, rows, size)):
        stop = min(start + size, rows)
        part = f"{name}-{number:05d}.parquet"
        yield replace(whole, name=part, start=start, stop=stop, cost=whole.cost * (stop - start) / rows)


class _Run:
    """The shards of one call: what is done, what failed and why."""

    def __init__(
        self, book: Manifest, shards: Sequence[Shard], waiting: Sequence[Shard], progress: Progress | None
    ) -> None:
        self.book, self.shards, self.waiting = book, shards, waiting
        self.progress = progress or (lambda *_: None)
        self.failures: dict[str, str] = {}
        self.total = sum(shard.cost for shard in shards)
        self.cost = self.total - sum(shard.cost for shard in waiting)

    def through(self, executor: Executor | None) -> None:
        """Encode what is waiting."""
        names = {shard.name for shard in self.waiting}
        for shard in self.shards:
            if shard.name not in names:
                self.progress({"shard": shard.name, "status": "skipped"}, self.cost, self.total)
        results = completed(executor, encode_shard, self.waiting, self._retried)
        try:
            for shard, record, error in results:
                self._take(shard, record, error)
        finally:
            results.close()
            self.book.forget_others(self.shards)

    def _retried(self, shard: Shard, error: Exception) -> None:
        self.book.log({"status": "retried", "shard": shard.name, "failed": str(error)})

    def _take(self, shard: Shard, record: Record | None, error: Exception | None) -> None:
        record = record or {"shard": shard.name, "failed": f"{type(error).__name__}: {error}"}
        done = record.pop("done", None)
        if done is not None and done["graphs"] and not (shard.out / shard.name).is_file():
            reason = (
                f"{record['host']} wrote it, but it is not in {shard.out} here; name a folder that all machines share"
            )
            record, done = {**record, "failed": reason}, None
        self.cost += shard.cost
        if done is None:
            self.failures[shard.name] = record["failed"]
            line = {"status": "failed", **record}
        else:
            self.book.add(done)
            line = {"status": "done", **record, "graphs": done["graphs"], "nodes": done["nodes"]}
        self.book.log(line)
        self.progress(line, self.cost, self.total)
        if record.get("disk"):
            raise OSError(f"{record['failed']}; {RESUME_ADVICE}")

    def finish(self) -> ShardsResult:
        """Compare the shards with each other, sort the manifest, and raise if a shard failed."""
        self._compare_columns()
        self._compare_ids()
        self.book.rewrite()
        if self.failures:
            raise ShardsFailed(self.failures, len(self.shards))
        records = [self.book.done[shard.name] for shard in self.shards]
        counts: Counter[str] = Counter()
        for record in records:
            counts.update(record.get("status", {}))
        return ShardsResult(
            self.book.folder,
            len(self.shards),
            len(self.shards) - len(self.waiting),
            sum(record["graphs"] for record in records),
            sum(record["nodes"] for record in records),
            {Status[name]: count for name, count in counts.items()},
        )

    def _compare_columns(self) -> None:
        """Raise if a shard has other columns than the first; they could not be read as one dataset."""
        expected: Record | None = None
        for name in sorted(self.book.done):
            columns = self.book.done[name].get("columns")
            if columns is None:
                continue
            expected = expected or {"shard": name, "columns": columns}
            if columns != expected["columns"]:
                differ = [key for key in columns if columns[key] != expected["columns"].get(key)]
                differ += [key for key in expected["columns"] if key not in columns]
                found, other = columns.get(differ[0], "missing"), expected["columns"].get(differ[0], "missing")
                self._reject(
                    name,
                    f"column {differ[0]} is {found}, but {other} in {expected['shard']}; text_names (--text-names) "
                    "writes all names as text",
                )

    def _reject(self, name: str, reason: str) -> None:
        self.book.remove(name)
        self.failures[name] = reason
        self.book.log({"status": "failed", "shard": name, "failed": reason})

    def _compare_ids(self) -> None:
        """Raise if a shard has a graph whose name an earlier shard has; only where ranges of names overlap."""
        named = [record for record in self.book.done.values() if record.get("ids")]
        ranges = sorted((*record["ids"], record["shard"]) for record in named)
        if all(before[1] < after[0] for before, after in pairwise(ranges)):
            return
        shard_of: dict[int, str] = {}
        for name in sorted(record["shard"] for record in named):
            graphs = _graph_names(self.book.folder / name)
            for graph in graphs:
                other = shard_of.get(hash(graph))
                if other is not None and graph in _graph_names(self.book.folder / other):
                    self._reject(name, f"graph {graph!s} is in {other}, too; names of graphs must differ")
                    break
            else:
                shard_of.update((hash(graph), name) for graph in graphs)


def _graph_names(path: Path) -> list[Any]:
    import pyarrow.compute
    import pyarrow.parquet

    column = pyarrow.parquet.read_table(path, columns=["graph"]).column("graph")
    return list(pyarrow.compute.unique(column).to_pylist())
