"""The work of ``gape encode --on-disk``: sort the edges of one graph on disk, encode it there, print a summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import typer
from rich.progress import Progress

from gape._internal.progress import progress_bars
from gape.io.edge_chunks import EdgeFile
from gape.io.edge_list import Columns
from gape.scale.build import Progress as Report
from gape.scale.build import build
from gape.scale.disk_graph import DiskGraph
from gape.scale.encode import LargeResult, check_large_output, encode_large
from gape.scale.encodings import large_encoding
from gape.scale.ranks import Ranks, ranks

# Seconds between two lines of progress where there is no terminal.
LINE_SECONDS = 30.0
# Settings of reading that change nothing.
_AS_IT_IS = {"header": True, "weighted": True}


def encode_on_disk(
    source: Path,
    folder: Path | None,
    output: Path,
    name: str,
    settings: dict[str, str],
    *,
    reading: dict[str, Any],
    undirected: bool,
    vectors: Literal["float64", "float32"],
    quiet: bool,
) -> None:
    """Encode the graph of an edge file, or a graph that is on disk already.

    Args:
        source: the edge file, or the folder of a graph.
        folder: where the graph and temporary files go; ``None`` if ``source`` is such a folder.
        output: the file of encodings.
        name: of the encoding.
        settings: of the encoding, as text.
        reading: how to read the edge file; without weights, repeated edges count once.
        undirected: take every edge in both directions.
        vectors: type of the walk counts.
        quiet: no progress and no summary.
    """
    encoding = large_encoding(name, **settings)
    check_large_output(output)
    if source.is_dir():
        if undirected or folder not in (None, source) or reading != {**dict.fromkeys(reading), **_AS_IT_IS}:
            raise ValueError(
                f"{source} is a graph on disk already: --on-disk, --undirected, --unweighted and columns are for files"
            )
        folder = source
    assert folder is not None
    with ranks() as processes, _shown(quiet or not processes.first) as progress:
        try:
            graph = _graph(source, folder, processes, reading, undirected, progress)
            progress.edges = graph.edges
            result = encode_large(graph, encoding, output, vectors=vectors, progress=progress)
        except (KeyboardInterrupt, SystemExit):
            if processes.first:
                message = f"gape: stopped; what is done is in {folder}, and the same command resumes from there"
                typer.echo(message, err=True)
            raise
    if processes.first and not quiet:
        _print_summary(graph, result, name)


def _graph(
    source: Path, folder: Path, processes: Ranks, reading: dict[str, Any], undirected: bool, progress: Report
) -> DiskGraph:
    """Build the graph on the first rank while the others wait."""
    if source.is_dir():
        return DiskGraph.open(source)
    error: Exception | None = None
    if processes.first:
        try:
            columns = Columns(*(reading[name] for name in ("source", "target", "weight", "graph", "header")))
            edges = EdgeFile(source, columns, weighted=reading["weighted"])
            build(
                edges,
                folder,
                undirected=undirected,
                duplicates=None if reading["weighted"] else "remove",
                progress=progress,
            )
        except (ValueError, OSError, ImportError) as failed:
            error = failed
    error = processes.agree(error)
    if error is not None:
        raise error
    return DiskGraph.open(folder)


class _Shown:
    """Shows progress as a bar with rate and time left, or as lines where there is no terminal."""

    def __init__(self, bar: Progress | None, lines: bool) -> None:
        self.bar, self.lines, self.edges = bar, lines, 0
        self.stage, self.task = "", None
        self.began = self.first = 0.0
        self.printed = time.monotonic()

    def __call__(self, stage: str, done: float, total: float | None) -> None:
        now = time.monotonic()
        if stage != self.stage:
            self.stage, self.began, self.first = stage, now, done
            if self.bar is not None:
                if self.task is not None:
                    self.bar.remove_task(self.task)
                self.task = self.bar.add_task(stage, total=total, note="")  # type: ignore[assignment]
        passed = now - self.began
        rate = self._rate((done - self.first) / passed) if passed > 0 and done > self.first else ""
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=done, total=total, note=rate)
        elif self.lines and now - self.printed > LINE_SECONDS:
            self.printed = now
            of = f" of {total:,.0f}" if total else ""
            print(f"gape: {stage}: {done:,.0f}{of} {rate}".rstrip(), file=sys.stderr, flush=True)

    def _rate(self, speed: float) -> str:
        if self.stage == "walking" and self.edges:
            return f"{speed * self.edges / 1e6:,.0f} M edges/s"
        return f"{speed:,.0f}/s"


@contextmanager
def _shown(quiet: bool) -> Iterator[_Shown]:
    with progress_bars(percent=True, show=not quiet) as bar:
        yield _Shown(None if bar.disable else bar, lines=not quiet)


def _print_summary(graph: DiskGraph, result: LargeResult, name: str) -> None:
    if graph.repeated:
        typer.echo(f"note: {graph.repeated:,} repeated edges removed", err=True)
    shape = f"{result.nodes:,} nodes, {graph.edges:,} edges, {result.nodes} × {result.features}"
    typer.echo(f"{result.path}: {name}, 1 graph on disk, {shape}")
    if result.errors is not None:
        typer.echo(f"{result.errors}: standard errors")
    if result.largest_error:
        typer.echo(f"estimate: {result.steps} samples, standard errors of at most {result.largest_error:.2g}")
    else:
        typer.echo(
            f"certificate: converged (sum over all runs), relative residual {result.residual:.1e} after {result.steps} "
            f"steps, ρ(μ)ρ(A) ≤ {result.spectral_radius:.4g}"
        )
