"""The work of ``gape encode``: read graphs, encode them in parts, write the file, print a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
import typer

from gape._internal.progress import progress_bars
from gape.encodings.base import Encoding
from gape.encodings.pairs import Pairs
from gape.encodings.store import Store
from gape.graph.graph import Graph
from gape.io.named_graphs import NamedGraphs, encode_counted, undirected
from gape.io.read import read_graphs
from gape.io.text_table import STANDARD_STREAM
from gape.io.write import check_output, output_files, write_encoding
from gape.solvers.solution import Status

# Nodes and edges per part: small enough for the bar to move, large enough to keep all processors busy.
PART_SIZE = 1 << 18


def encode_file(
    source: Path,
    output: Path,
    name: str,
    encoding: Encoding,
    *,
    reading: dict[str, Any],
    both_directions: bool,
    cache: bool,
    quiet: bool,
    notes: list[str],
) -> None:
    """Read ``source``, encode its graphs and write ``output``.

    Args:
        source: the graph file.
        output: the file of encodings.
        name: of the encoding, for columns and messages.
        encoding: its settings.
        reading: further arguments of :func:`read_graphs`.
        both_directions: take every edge in both directions.
        cache: reuse and store slow encodings.
        quiet: no progress bar and no summary.
        notes: lines for the summary.
    """
    check_output(output, encoding.pairwise)
    for file in output_files(output):
        if file.exists() and source.exists() and file.samefile(source):
            raise ValueError(f"{file} is the input too; give another file to --output")
    with progress_bars(show=not quiet) as progress:
        task = progress.add_task(f"reading {source.name}, rows", total=None)
        named = read_graphs(source, **reading, progress=lambda rows: progress.update(task, completed=rows))
        if both_directions:
            named = undirected(named)
        progress.reset(task, description=f"encoding ({name}), graphs", total=named.graph.num_graphs)
        counts: Counter[Status] = Counter()
        found = []
        # The memory limit of pairs is for all graphs together, so they are encoded together.
        for part, first in [(named.graph, 0)] if encoding.pairwise else _parts(named.graph):
            found.append(_encode(part, encoding, Store() if cache else None, counts, named, first))
            progress.advance(task, part.num_graphs)
        values = _join(found)
        progress.reset(task, description=f"writing {output.name}", total=None)
        write_encoding(output, values, named, name=name.replace("-", "_"), settings=f"{name}: {encoding!r}")
    if not quiet:
        _print_summary(output, name, values, named, counts, [*named.notes, *notes])


def _parts(graph: Graph) -> Iterator[tuple[Graph, int]]:
    """Yield parts of whole graphs, each with the index of its first graph."""
    if graph.num_graphs == 1:
        yield graph, 0
        return
    edges = torch.bincount(graph.batch[graph.edge_index[0]], minlength=graph.num_graphs)
    filled = ((graph.sizes + edges).cumsum(0) // PART_SIZE).tolist()
    first = 0
    for i in range(1, graph.num_graphs + 1):
        if i == graph.num_graphs or filled[i] != filled[first]:
            yield graph.slice(first, i), first
            first = i


def _encode(
    part: Graph, encoding: Any, store: Store | None, counts: Counter[Status], named: NamedGraphs, first: int
) -> torch.Tensor | Pairs:
    if store is not None and not hasattr(encoding, "solve"):
        return store.encode(part, encoding)  # type: ignore[no-any-return]
    # Encodings that solve an equation have certificates, which the cache does not store.
    names = None if named.graphs is None else named.graphs[first:]
    return encode_counted(part, encoding, names, counts)


def _join(found: list[Any]) -> torch.Tensor | Pairs:
    if isinstance(found[0], Pairs):
        return Pairs(torch.cat([part.values for part in found]), torch.cat([part.sizes for part in found]))
    return torch.cat(found)


def _print_summary(
    output: Path,
    name: str,
    values: torch.Tensor | Pairs,
    named: NamedGraphs,
    counts: Counter[Status],
    notes: list[str],
) -> None:
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    graph = named.graph
    each = list((values.values if isinstance(values, Pairs) else values).shape[1:])
    shape = " × ".join(map(str, ["n", "n", *each] if isinstance(values, Pairs) else [graph.num_nodes, *each]))
    graphs = "1 graph" if graph.num_graphs == 1 else f"{graph.num_graphs:,} graphs"
    nodes = "1 node" if graph.num_nodes == 1 else f"{graph.num_nodes:,} nodes"
    say = partial(typer.echo, err=output == STANDARD_STREAM)
    say(f"{output}: {name}, {graphs}, {nodes}, {shape}")
    for names in output_files(output)[1:]:
        say(f"{names}: the names of the nodes, line by line")
    say_certificates(counts, say)


def say_certificates(counts: Mapping[Status, int], say: Callable[[str], None]) -> None:
    """Print how many graphs have which certificate, with advice."""
    if counts:
        # There are no other statuses here: a graph that could not be solved has ended the command.
        exact, algebraic, nearest = (
            counts.get(status, 0) for status in (Status.RUN_SUM, Status.ALGEBRAIC, Status.LEAST_SQUARES)
        )
        say(
            f"certificates: {exact:,} converged (sum over all runs), {algebraic:,} algebraic only, "
            f"{nearest:,} singular (least squares)"
            + (f", {counts[Status.SOLVED]:,} solved (convergence not known)" if counts.get(Status.SOLVED) else "")
        )
        if algebraic:
            say(
                "algebraic only: the weights solve the equation, but the sum over runs diverges (ρ(μ)ρ(A) ≥ 1); if "
                "the sum is what you want, lower --damping below 1/ρ(A), make it a fraction of that by --relative, or "
                "walk on --matrix random_walk"
            )
