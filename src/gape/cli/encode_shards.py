"""The work of ``gape encode`` on many files: shards, by worker processes or a Dask scheduler, with progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import typer

from gape._internal.executors import dask_executor
from gape._internal.progress import progress_bars
from gape.cli.encode_file import say_certificates
from gape.cli.encode_large import LINE_SECONDS
from gape.encodings.base import Encoding
from gape.io.edge_list import Columns
from gape.scale.manifest import LOG, Reading
from gape.scale.shards import ShardsFailed, encode_shards


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
    shown = _Shown(quiet)
    with dask_executor(scheduler) if scheduler is not None else nullcontext((None, "")) as (executor, dashboard):
        if dashboard and not quiet:
            typer.echo(f"dashboard: {dashboard}", err=True)
        try:
            with shown.started():
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


class _Shown:
    """Shows the shards as a bar with rate and time left, or as lines where there is no terminal."""

    def __init__(self, quiet: bool) -> None:
        self.bar = progress_bars(percent=True, show=not quiet)
        self.lines = not quiet and self.bar.disable
        self.task = self.bar.add_task("shards", total=None, note="")
        self.done = self.graphs = 0
        self.began = self.printed = time.monotonic()

    @contextmanager
    def started(self) -> Iterator[None]:
        with self.bar:
            yield

    def __call__(self, line: dict[str, Any], cost: float, total: float) -> None:
        now = time.monotonic()
        self.done += line["status"] in ("done", "skipped")
        self.graphs += line.get("graphs", 0)
        rate = f"{self.graphs / max(now - self.began, 1e-9):,.0f} graphs/s"
        note = f"{self.done} shards, {rate}"
        if line["status"] == "skipped":
            # What was done before says nothing about the time left.
            self.bar.reset(self.task, total=total, completed=int(cost), note=note)
        self.bar.update(self.task, completed=cost, total=total, note=note)
        if line["status"] == "failed":
            self.bar.console.print(f"gape: {line['shard']}: {line['failed']}", markup=False, highlight=False)
        if self.lines and now - self.printed > LINE_SECONDS:
            self.printed = now
            left = (now - self.began) * (total - cost) / max(cost, 1.0)
            print(f"gape: {note}, {cost / total:.0%}, about {left / 60:.0f} min left", file=sys.stderr, flush=True)
