"""Build a graph on disk from a stream of edges: an external bucket sort in bounded memory that can be resumed.

1. Edges are spread over buckets, files of 64-bit keys target · 2³² + source, by the high bits of the target.
2. Buckets are sorted one by one and appended to the CSR arrays. A bucket that is too large is split first.
3. The out-degrees are counted.

``state.json`` records how much of each file counts. On resuming, files are cut to that length, so whatever was written
after the last record is written again.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gape._internal.files import check_free_space, folder_lock, replacing
from gape._internal.validation import check_one_of
from gape.io.edge_chunks import EdgeChunk, EdgeFile
from gape.scale.disk_graph import DiskGraph

Duplicates = Literal["keep", "remove"]
#: Called with what is being done, how many units of it are done, and of how many (``None`` if not known).
Progress = Callable[[str, float, float | None], None]

# Target ids per bucket.
BUCKET_BITS = 20
# Edges sorted at a time: memory is about 24 bytes for each. Larger buckets are split.
MAX_BUCKET_EDGES = 1 << 25
# Seconds between two records of progress.
RECORD_SECONDS = 20.0
MAX_NODES = 2**31 - 1
# Offsets, counts and degrees.
NODE_BYTES = 24
_HALF = np.uint64(32)


class EdgeStream(Protocol):
    """Source of edges: :class:`gape.io.edge_chunks.EdgeFile`, :class:`gape.scale.RMAT`, or your own.

    ``nodes`` is their number if they are 0 … nodes - 1, and ``None`` if the nodes are those that have edges;
    ``fingerprint`` is text that changes when the edges do; ``chunks(skip)`` yields the same chunks every time.
    """

    @property
    def name(self) -> str: ...
    @property
    def nodes(self) -> int | None: ...
    @property
    def fingerprint(self) -> str: ...
    def chunks(self, skip: int = 0) -> Iterator[EdgeChunk]: ...


@dataclass
class _State:
    """Progress of a build, as recorded in ``state.json``."""

    settings: str
    chunks: int = 0
    weighted: bool = False
    spread: bool = False
    buckets: dict[str, int] = field(default_factory=dict)
    merged: int = -1
    rows: int = 0
    edges: int = 0
    repeated: int = 0


def build(
    edges: EdgeStream | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    undirected: bool = False,
    duplicates: Duplicates | None = None,
    progress: Progress | None = None,
) -> DiskGraph:
    """Sort edges into a graph on disk; resumes where an interrupted build with the same arguments ended.

    Memory is about a gigabyte, plus 16 bytes per node. Disk is 8 bytes per edge for the buckets (16 if weighted), which
    are deleted, and 4 (12) for the graph. If the folder holds the graph of these edges already, it is opened.

    Args:
        edges: a file, see :class:`gape.io.edge_chunks.EdgeFile`, or a stream such as :class:`RMAT`.
        folder: where the graph and temporary files go; made if it does not exist.
        undirected: take every edge in both directions; an edge that occurs in both is one edge.
        duplicates: "keep" repeated edges, which then count as parallel edges, as in memory, or "remove" them. The
            default is "keep", for undirected graphs "remove". Repeated edges with different weights are never removed,
            but refused.
        progress: called with the stage, how much of it is done, and how much there is.

    Example:
        >>> import tempfile
        >>> from gape.scale import RMAT
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graph = build(RMAT(scale=8, edges=1000), folder)
        ...     graph.nodes, graph.edges, int(graph.offsets[-1])
        (256, 1000, 1000)
    """
    stream: EdgeStream = EdgeFile(Path(edges)) if isinstance(edges, str | os.PathLike) else edges
    chosen = duplicates or ("remove" if undirected else "keep")
    check_one_of(("keep", "remove"), duplicates=chosen)
    if undirected and chosen == "keep":
        raise ValueError("duplicates='keep' does not go with undirected=True: an edge given in both directions is one")
    folder = Path(folder)
    settings = f"{stream.fingerprint}, undirected={undirected}, duplicates={chosen}"
    folder.mkdir(parents=True, exist_ok=True)
    with folder_lock(folder):
        if DiskGraph.holds(folder):
            graph = DiskGraph.open(folder)
            if graph.source != settings:
                raise ValueError(
                    f"{folder} holds the graph of {graph.source}; these edges are {settings}. Name another folder, or "
                    "delete that one"
                )
            return graph
        return _Build(stream, folder, settings, undirected, chosen, progress or (lambda *_: None)).run()


class _Build:
    def __init__(
        self, stream: EdgeStream, folder: Path, settings: str, undirected: bool, duplicates: str, progress: Progress
    ) -> None:
        self.stream, self.folder, self.progress = stream, folder, progress
        self.undirected, self.remove = undirected, duplicates == "remove"
        self.temporary = folder / "building"
        self.state = _State(settings)
        self.recorded = time.monotonic()

    def run(self) -> DiskGraph:
        self._resume()
        try:
            if not self.state.spread:
                self._spread()
            names, nodes = self._nodes()
            self._merge(names, nodes)
        finally:  # also when interrupted, so that the same call resumes from here
            self._record()
        return self._finish(names, nodes)

    # ------------------------------------------------------------------ records

    def _resume(self) -> None:
        path = self.temporary / "state.json"
        if path.exists():
            state = _State(**json.loads(path.read_text(encoding="utf-8")))
            if state.settings == self.state.settings:
                self.state = state
                for bucket, count in state.buckets.items():
                    for file, width in self._bucket_files(bucket):
                        _cut(file, width * count)
                for file, length in self._array_lengths():
                    _cut(file, length)
                for stray in self.temporary.glob("*.split"):
                    stray.unlink()
                return
            shutil.rmtree(self.temporary)  # of other edges or settings
        self.temporary.mkdir(exist_ok=True)

    def _record(self) -> None:
        written = self._array_lengths()
        if not self.state.spread or self.state.merged < 0:
            written += [pair for bucket in self.state.buckets for pair in self._bucket_files(bucket)]
        for file, _ in written:
            with open(file, "ab") as out:
                os.fsync(out.fileno())
        with replacing(self.temporary / "state.json") as temporary:
            temporary.write_text(json.dumps(asdict(self.state)), encoding="utf-8")
        self.recorded = time.monotonic()

    def _bucket_files(self, bucket: str | int) -> list[tuple[Path, int]]:
        names = [(self.temporary / f"{bucket}.keys", 8)]
        return [*names, (self.temporary / f"{bucket}.weights", 8)] if self.state.weighted else names

    def _array_lengths(self) -> list[tuple[Path, int]]:
        lengths = [("columns.bin", 4 * self.state.edges), ("counts.bin", 8 * self.state.rows)]
        if self.state.weighted:
            lengths.append(("weights.bin", 8 * self.state.edges))
        return [(self.temporary / name, length) for name, length in lengths]

    # ------------------------------------------------------------------ 1. spread

    def _spread(self) -> None:
        state = self.state
        began = state.chunks
        for chunk in self.stream.chunks(began):
            weighted = chunk.weight is not None
            if state.chunks == 0:
                state.weighted = weighted
            if state.chunks == began and chunk.fraction:
                self._check_space(chunk, chunk.fraction)
            buckets = self._append(_keys(chunk, self.undirected), _weights(chunk, self.undirected))
            # Counted when all is written and both at once, so that a record covers whole chunks even after Ctrl-C.
            state.buckets, state.chunks = buckets, state.chunks + 1
            done = sum(state.buckets.values())
            self.progress(f"reading {self.stream.name}", done, done / chunk.fraction if chunk.fraction else None)
            if time.monotonic() - self.recorded > RECORD_SECONDS:
                self._record()
        if not state.buckets and self.stream.nodes is None:
            raise ValueError(f"{self.stream.name} holds no edges")
        state.spread = True
        self._record()

    def _check_space(self, chunk: EdgeChunk, fraction: float) -> None:
        """Raise if the disk cannot hold the rest of the buckets and the arrays, by the first chunk's share of all."""
        held = sum(self.state.buckets.values())
        edges = (held + len(chunk.source) * (2 if self.undirected else 1)) / fraction
        bucket, array = (16, 12) if self.state.weighted else (8, 4)
        nodes = NODE_BYTES * (self.stream.nodes or 0)
        check_free_space(
            self.folder,
            bucket * (edges - held) + array * edges + nodes,
            f"sorting the {edges:,.0f} edges of {self.stream.name}",
        )

    def _append(self, keys: NDArray[np.uint64], weights: NDArray[np.float64] | None) -> dict[str, int]:
        """Write edges to the files of their buckets; the number of edges in each bucket then."""
        bucket = keys >> np.uint64(32 + BUCKET_BITS)
        counts = dict(self.state.buckets)
        for number, part, rest in _grouped(bucket, keys, weights):
            for (file, _), values in zip(self._bucket_files(number), (part, rest), strict=False):
                with open(file, "ab") as out:
                    values.tofile(out)
            counts[str(number)] = counts.get(str(number), 0) + len(part)
        return counts

    # ------------------------------------------------------------------ 2. merge

    def _nodes(self) -> tuple[NDArray[np.int64] | None, int]:
        """The ids that occur, ``None`` if they are 0, 1, 2, …, and how many nodes there are."""
        nodes = self.stream.nodes
        if nodes is None:
            path = self.temporary / "names.npy"
            if not path.exists():
                used = self._used_ids()
                with replacing(path) as temporary, open(temporary, "wb") as out:
                    np.save(out, used)
            names: NDArray[np.int64] = np.load(path)
            nodes = len(names)
            if nodes == 0 or names[-1] != nodes - 1:
                return self._checked(nodes, names)
        return self._checked(nodes, None)

    def _checked(self, nodes: int, names: NDArray[np.int64] | None) -> tuple[NDArray[np.int64] | None, int]:
        if nodes > MAX_NODES:
            raise ValueError(f"{self.stream.name} has {nodes} nodes; at most {MAX_NODES} are supported")
        return names, nodes

    def _used_ids(self) -> NDArray[np.int64]:
        used = np.zeros(0, dtype=bool)
        for bucket, count in self.state.buckets.items():
            for part in _pieces(self._bucket_files(bucket)[0][0], np.uint64, count):
                for ends in (part >> _HALF, part & np.uint64(0xFFFFFFFF)):
                    largest = int(ends.max())
                    if largest >= len(used):
                        used = np.concatenate([used, np.zeros(largest + 1 - len(used), dtype=bool)])
                    used[ends.astype(np.int64)] = True
        return np.flatnonzero(used)

    def _merge(self, names: NDArray[np.int64] | None, nodes: int) -> None:
        state = self.state
        total = sum(state.buckets.values())
        number: NDArray[np.int32] | None = None
        if names is not None:
            number = np.zeros(int(names[-1]) + 1, dtype=np.int32)
            number[names] = np.arange(nodes, dtype=np.int32)
        done = sum(count for bucket, count in state.buckets.items() if int(bucket) <= state.merged)
        merged: list[Path] = []
        for bucket in sorted(map(int, state.buckets)):
            if bucket <= state.merged:
                continue
            low, width = bucket << BUCKET_BITS, BUCKET_BITS
            rows, edges, repeated = state.rows, state.edges, state.repeated
            files = [file for file, _ in self._bucket_files(bucket)]
            for keys, weights, end in self._sorted(files, state.buckets[str(bucket)], low, width):
                before = len(keys)
                keys, weights = self._distinct(keys, weights)
                repeated += before - len(keys)
                target = (keys >> _HALF).astype(np.int64)
                source = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
                if number is not None:
                    assert names is not None
                    target, source = number[target].astype(np.int64), number[source].astype(np.int64)
                    end = int(np.searchsorted(names, end))
                end = min(end, nodes)
                counts = np.bincount(target - rows, minlength=end - rows)
                _append_to(self.temporary / "columns.bin", source.astype(np.int32))
                _append_to(self.temporary / "counts.bin", counts.astype(np.int64))
                if weights is not None:
                    _append_to(self.temporary / "weights.bin", weights)
                rows, edges = end, edges + len(keys)
                done += before
                self.progress("sorting edges", done, total)
            state.rows, state.edges, state.repeated, state.merged = rows, edges, repeated, bucket
            merged += files
            if time.monotonic() - self.recorded > RECORD_SECONDS or done == total:
                self._record()
                for file in merged:
                    file.unlink(missing_ok=True)
                merged = []

    def _sorted(
        self, files: list[Path], count: int, low: int, bits: int
    ) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.float64] | None, int]]:
        """Yield sorted keys, their weights, and the target id after the last, splitting what is too large."""
        if count <= MAX_BUCKET_EDGES or bits == 0:
            keys = np.fromfile(files[0], dtype=np.uint64)
            if len(files) == 1:
                keys.sort()
                yield keys, None, low + (1 << bits)
            else:
                order = np.argsort(keys, kind="stable")
                yield keys[order], np.fromfile(files[1], dtype=np.float64)[order], low + (1 << bits)
            return
        finer = max(bits - 4, 0)
        counts: dict[int, int] = {}
        streams = [_pieces(file, dtype, count) for file, dtype in zip(files, (np.uint64, np.float64), strict=False)]
        for pieces in zip(*streams, strict=True):
            keys, weights = pieces[0], pieces[1] if len(pieces) == 2 else None
            for part, group, rest in _grouped(keys >> np.uint64(32 + finer), keys, weights):
                for file, values in zip(files, (group, rest), strict=False):
                    _append_to(file.with_name(f"{file.name}-{part}-{finer}.split"), values)
                counts[part] = counts.get(part, 0) + len(group)
        for part in sorted(counts):
            split = [file.with_name(f"{file.name}-{part}-{finer}.split") for file in files]
            yield from self._sorted(split, counts[part], part << finer, finer)
            for file in split:
                file.unlink()

    def _distinct(
        self, keys: NDArray[np.uint64], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64] | None]:
        if not self.remove or len(keys) == 0:
            return keys, weights
        same = keys[1:] == keys[:-1]
        if weights is not None:
            clash = np.flatnonzero(same & (weights[1:] != weights[:-1]))
            if len(clash):
                key, first = int(keys[clash[0]]), int(clash[0])
                raise ValueError(
                    f"{self.stream.name}: edge {key & 0xFFFFFFFF} → {key >> 32} occurs with weights "
                    f"{weights[first]:g} and {weights[first + 1]:g}; keep duplicates (directed graphs only), or give "
                    "it one weight"
                )
        kept = np.concatenate([[True], ~same])
        return keys[kept], None if weights is None else weights[kept]

    # ------------------------------------------------------------------ 3. degrees

    def _finish(self, names: NDArray[np.int64] | None, nodes: int) -> DiskGraph:
        state = self.state
        columns, counts = self.temporary / "columns.bin", self.temporary / "counts.bin"
        offsets = np.zeros(nodes + 1, dtype=np.int64)
        if state.rows:
            np.cumsum(np.fromfile(counts, dtype=np.int64), out=offsets[1 : state.rows + 1])
        offsets[state.rows + 1 :] = state.edges
        offsets.tofile(self.temporary / "offsets.bin")
        del offsets
        degree = np.zeros(nodes)
        piece = max(1 << 22, nodes)  # a count costs as much as the nodes
        weights = _pieces(self.temporary / "weights.bin", np.float64, state.edges, piece) if state.weighted else None
        done = 0
        for part in _pieces(columns, np.int32, state.edges, piece):
            degree += np.bincount(part, None if weights is None else next(weights), minlength=nodes)
            done += len(part)
            self.progress("counting degrees", done, state.edges)
        degree.tofile(self.temporary / "out_degree.bin")
        if names is not None:
            names.astype(np.int64).tofile(self.temporary / "names.bin")
        graph = DiskGraph(
            folder=self.folder,
            nodes=nodes,
            edges=state.edges,
            weighted=state.weighted,
            undirected=self.undirected,
            named=names is not None,
            repeated=state.repeated,
            source=state.settings,
        )
        for name in graph._sizes():
            path = self.temporary / name
            with open(path, "ab") as out:  # made if there are no edges
                os.fsync(out.fileno())
            os.replace(path, self.folder / name)
        graph.save()
        shutil.rmtree(self.temporary)
        return graph


def _keys(chunk: EdgeChunk, both: bool) -> NDArray[np.uint64]:
    source, target = chunk.source.astype(np.uint64), chunk.target.astype(np.uint64)
    keys = (target << _HALF) | source
    return np.concatenate([keys, (source << _HALF) | target]) if both else keys


def _weights(chunk: EdgeChunk, both: bool) -> NDArray[np.float64] | None:
    return np.tile(chunk.weight, 2) if both and chunk.weight is not None else chunk.weight


def _grouped(
    group: NDArray[np.uint64], keys: NDArray[np.uint64], weights: NDArray[np.float64] | None
) -> Iterator[tuple[int, NDArray[np.uint64], Any]]:
    """Yield each group's number, keys and weights, in their order; at most 2¹⁶ groups side by side."""
    if len(keys) == 0:
        return
    lowest = int(group.min())
    # Stable sorts of 16-bit numbers are radix sorts.
    near = (group - np.uint64(lowest)).astype(np.uint16)
    order = np.argsort(near, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(near))])
    keys = keys[order]
    weights = None if weights is None else weights[order]
    for i in np.flatnonzero(np.diff(ends)):
        part = slice(ends[i], ends[i + 1])
        yield lowest + int(i), keys[part], None if weights is None else weights[part]


def _pieces(file: Path, dtype: Any, count: int, piece: int = 1 << 22) -> Iterator[NDArray[Any]]:
    for first in range(0, count, piece):
        length = min(piece, count - first)
        yield np.fromfile(file, dtype=dtype, count=length, offset=first * np.dtype(dtype).itemsize)


def _append_to(file: Path, values: NDArray[Any] | None) -> None:
    assert values is not None
    with open(file, "ab") as out:
        values.tofile(out)


def _cut(file: Path, length: int) -> None:
    """Cut a file to what was recorded; a bucket that was merged is gone, and 0 bytes may not exist yet."""
    if file.exists():
        os.truncate(file, length)
