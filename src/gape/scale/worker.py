"""Encode one shard in a worker process: read blocks of graphs, encode them, write one Parquet file."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace

import numpy as np
import torch

from gape._internal.files import DISK_ERRORS, replacing
from gape.io.blocks import GraphTable
from gape.io.named_graphs import NamedGraphs, encode_counted, undirected, unweighted
from gape.io.read import read_graphs
from gape.io.write import ParquetBlocks
from gape.scale.manifest import Record, Shard, sha256
from gape.solvers.solution import Status


def encode_shard(shard: Shard) -> Record:
    """Read, encode and write one shard, whole or not at all; the work of a worker.

    Returns:
        The line of the manifest under ``"done"``, or why there is none under ``"failed"``; and where and how long.
    """
    began, processor = time.monotonic(), time.process_time()
    record: Record = {"shard": shard.name}
    try:
        with _one_thread():
            record["done"] = _encode_shard(shard)
    except (ValueError, OSError, ArithmeticError, ImportError, RuntimeError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            record["disk"] = True
        record["failed"] = str(error) or type(error).__name__
    record.update(host=socket.gethostname(), pid=os.getpid())
    seconds, cpu_seconds = time.monotonic() - began, time.process_time() - processor
    return {**record, "seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3)}


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute with one thread: threads would compete with other workers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _encode_shard(shard: Shard) -> Record:
    path = shard.out / shard.name
    blocks = _blocks(shard)
    first = next(blocks, None)
    if first is None:  # all its rows go on with a graph of the shard before
        return {**shard.identity, "graphs": 0, "nodes": 0}
    path.parent.mkdir(parents=True, exist_ok=True)
    counts: Counter[Status] = Counter()
    graphs = nodes = 0
    lowest = highest = None
    with replacing(path) as temporary:
        settings = f"{shard.label}: {shard.encoding!r}"
        with ParquetBlocks(temporary, shard.label.replace("-", "_"), settings) as file:
            for named in _chain(first, blocks):
                assert named.graphs is not None
                values = encode_counted(named.graph, shard.encoding, named.graphs, counts)
                try:
                    file.write(values, named)
                except ValueError as error:
                    raise ValueError(f"{shard.source}: {error}; text_names (--text-names) makes all text") from error
                graphs, nodes = graphs + named.graph.num_graphs, nodes + named.graph.num_nodes
                ids = sorted(named.graphs.tolist())
                lowest = ids[0] if lowest is None else min(lowest, ids[0])
                highest = ids[-1] if highest is None else max(highest, ids[-1])
        size, digest = temporary.stat().st_size, sha256(temporary)
    return {
        **shard.identity,
        "graphs": graphs,
        "nodes": nodes,
        "bytes": size,
        "sha256": digest,
        "columns": {name: str(kind) for name, kind in zip(file.schema.names, file.schema.types, strict=True)},
        "ids": [lowest, highest] if _has_names(shard) else None,
        "status": {status.name: count for status, count in sorted(counts.items(), key=lambda item: item[0].name)},
    }


def _chain(first: NamedGraphs, rest: Iterable[NamedGraphs]) -> Iterator[NamedGraphs]:
    yield first
    yield from rest


def _has_names(shard: Shard) -> bool:
    """Return whether the graphs have names of their own, which must differ from those in other shards."""
    table = GraphTable.open(shard.source, shard.reading.columns)
    return table is not None and table.named


def _blocks(shard: Shard) -> Iterator[NamedGraphs]:
    reading, columns = shard.reading, shard.reading.columns
    table = GraphTable.open(shard.source, columns)
    found = iter([_whole_file(shard)]) if table is None else table.blocks(shard.start, shard.stop)
    for named in found:
        if not reading.weighted:
            named = unweighted(named)
        if reading.undirected:
            named = undirected(named)
        if reading.text_names:
            assert named.graphs is not None
            named = replace(named, nodes=named.nodes.astype(np.str_), graphs=named.graphs.astype(np.str_))
        yield named


def _whole_file(shard: Shard) -> NamedGraphs:
    named = read_graphs(shard.source, **asdict(shard.reading.columns))
    if named.graphs is None:
        name = shard.name.removesuffix("-00000.parquet")
        named = replace(named, graphs=np.array([name], dtype=np.str_))
    return named
