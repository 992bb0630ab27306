"""The work of ``gape encode`` beyond one file in memory: one graph on disk, or many files shard by shard."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import typer

from gape._internal.executors import dask_executor
from gape._internal.progress import ProgressDisplay
from gape.cli.encode_file import say_certificates
from gape.encodings.base import Encoding
from gape.io.edge_chunks import EdgeFile
from gape.io.edge_list import Columns
from gape.scale.build import Progress, build
from gape.scale.disk_graph import DiskGraph
from gape.scale.encode import LargeResult, check_large_output, encode_large
from gape.scale.encodings import large_encoding
from gape.scale.manifest import LOG, Reading
from gape.scale.ranks import Ranks, ranks
from gape.scale.shards import ShardsFailed, encode_shards

# What `reading` holds besides columns if no option of reading is given.
_DEFAULT_READING = {"header": True, "weighted": True}


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
        if undirected or folder not in (None, source) or reading != {**dict.fromkeys(reading), **_DEFAULT_READING}:
            raise ValueError(
                f"{source} is a graph on disk already: --on-disk, --undirected, --unweighted and columns are for files"
            )
        folder = source
    assert folder is not None
    with ranks() as processes, ProgressDisplay(show=processes.first and not quiet) as display:
        progress = _StageProgress(display)
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
    source: Path, folder: Path, processes: Ranks, reading: dict[str, Any], undirected: bool, progress: Progress
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


class _StageProgress:
    """Shows one stage at a time, with its rate."""

    def __init__(self, display: ProgressDisplay) -> None:
        self.display, self.edges = display, 0
        self.stage, self.first = "", 0.0

    def __call__(self, stage: str, done: float, total: float | None) -> None:
        if stage != self.stage:
            self.display.remove(self.stage)
            self.display.start(stage, total)
            self.stage, self.first = stage, done
        passed = self.display.elapsed_seconds(stage)
        rate = self._rate((done - self.first) / passed) if passed > 0 and done > self.first else ""
        self.display.update(stage, done, total, rate)

    def _rate(self, speed: float) -> str:
        if self.stage == "walking" and self.edges:
            return f"{speed * self.edges / 1e6:,.0f} M edges/s"
        return f"{speed:,.0f}/s"


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


def encode_many(
    files: Sequence[str],
    output: Path,
    name: str,
    encoding: Encoding,
    *,
    reading: dict[str, Any],
    undirected: bool,
    text_names: bool,
    workers: int | None,
    scheduler: str | None,
    quiet: bool,
    notes: Sequence[str],
) -> None:
    """Encode files and folders into a folder, shard by shard.

    Args:
        files: files, or folders of files.
        output: the folder.
        name: of the encoding, for columns and messages.
        encoding: its settings.
        reading: names of columns, and whether there are a header and weights.
        undirected: take every edge in both directions.
        text_names: write all names as text.
        workers: number of processes.
        scheduler: address of a Dask scheduler.
        quiet: no progress and no summary.
        notes: lines for the summary.
    """
    if workers is not None and scheduler is not None:
        raise ValueError(
            f"--workers {workers} and --scheduler {scheduler}: the scheduler has workers; give one of both"
        )
    if output.suffix and not output.is_dir():
        raise ValueError(f"--output {output} looks like a file; many inputs, and --workers, need a folder")
    columns = Columns(*(reading[role] for role in ("source", "target", "weight", "graph", "header")))
    how = Reading(columns, reading["weighted"], undirected, text_names)
    with (
        ProgressDisplay(show=not quiet) as display,
        dask_executor(scheduler) if scheduler is not None else nullcontext((None, "")) as (executor, dashboard),
    ):
        shown = _ShardProgress(display)
        if dashboard and not quiet:
            typer.echo(f"dashboard: {dashboard}", err=True)
        try:
            result = encode_shards(
                list(files),
                encoding,
                output,
                executor,
                workers=workers,
                label=name,
                reading=how,
                progress=shown,
            )
        except (KeyboardInterrupt, SystemExit):
            typer.echo(
                f"gape: stopped; {shown.done} finished shards are in {output}, and the same command resumes from there",
                err=True,
            )
            raise
        except ShardsFailed as error:
            raise ValueError(f"{error}\nThe same command tries them again; log: {output / LOG}") from error
    if quiet:
        return
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    before = f" ({result.skipped} finished before)" if result.skipped else ""
    typer.echo(
        f"{output}: {name}, {result.shards} shards{before}, {result.graphs:,} graphs, {result.nodes:,} nodes; "
        f"{shown.graphs / max(time.monotonic() - shown.began, 1e-9):,.0f} graphs/s"
    )
    say_certificates(result.status, typer.echo)


class _ShardProgress:
    """Shows shards as one task, with graphs per second."""

    def __init__(self, display: ProgressDisplay) -> None:
        self.display = display
        self.done = self.graphs = 0
        self.began = time.monotonic()
        display.start("shards")

    def __call__(self, line: dict[str, Any], cost: float, total: float) -> None:
        self.done += line["status"] in ("done", "skipped")
        self.graphs += line.get("graphs", 0)
        rate = f"{self.graphs / max(time.monotonic() - self.began, 1e-9):,.0f} graphs/s"
        note = f"{self.done} shards, {rate}"
        if line["status"] == "skipped":
            # Exclude shards of earlier calls from the time left.
            self.display.restart("shards", cost, total, note)
        self.display.update("shards", cost, total, note)
        if line["status"] == "failed":
            self.display.log(f"{line['shard']}: {line['failed']}")
