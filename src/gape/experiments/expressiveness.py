"""Count the pairs of graphs of BREC that encodings and Weisfeiler-Leman tests tell apart."""

from __future__ import annotations

import csv
import io
import json
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from gape.data import load
from gape.data.brec import CATEGORIES
from gape.encodings import Encoding, Pairs
from gape.experiments import invariants
from gape.experiments.invariants import Array, Multisets, pairs_differ
from gape.experiments.report.table import Entry, Table
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.solvers import AlgebraicOnlyWarning

#: Relative difference of float64 features above which graphs count as told apart, and how many times more it must be
#: than what renumbering the nodes of a graph makes.
TOLERANCE = 1e-10
NOISE_FACTOR = 100.0
# More than this is not rounding: the encoding depends on the order of the nodes.
MAX_NOISE = 1e-6
# Random projections of features to numbers that can be sorted.
PROJECTIONS = 8


@dataclass(frozen=True, eq=False)
class PairSet:
    """Pairs of graphs: graphs 2i and 2i + 1 of the batch are pair i.

    Args:
        graph: all graphs.
        categories: the category of each pair.
    """

    graph: Graph
    categories: Sequence[str]

    def __post_init__(self) -> None:
        if self.graph.num_graphs != 2 * len(self.categories):
            raise ValueError(f"{len(self.categories)} pairs need twice as many graphs, got {self.graph.num_graphs}")

    @classmethod
    def brec(cls, data_dir: str | Path | None = None) -> PairSet:
        """Read the 400 pairs of BREC."""
        dataset = load("brec", data_dir)
        return cls(as_graph(dataset.batch()), [CATEGORIES[number] for number in dataset.targets[::2].tolist()])

    @cached_property
    def walks(self) -> dict[str, Multisets]:
        """Walks of all lengths by readout."""
        return invariants.walks(self.graph)


@dataclass(frozen=True, eq=False)
class Separation:
    """The pairs that one method tells apart.

    Args:
        name: of the method.
        told_apart: ``[pairs]`` of bools.
        seconds: time that it took.
        gaps: ``[pairs]``, relative differences of float64 features; ``None`` for exact arithmetic.
        noise: the largest relative difference between a graph and itself with its nodes in another order.
        tolerance: pairs with a larger gap count as told apart.
    """

    name: str
    told_apart: Array
    seconds: float
    gaps: Array | None = None
    noise: float = 0.0
    tolerance: float = TOLERANCE

    def counts(self, categories: Sequence[str]) -> dict[str, int]:
        """Count the pairs told apart by category, and of all."""
        of = np.asarray(categories)
        by_category = {name: int(self.told_apart[of == name].sum()) for name in dict.fromkeys(categories)}
        return {**by_category, "all": int(self.told_apart.sum())}

    @property
    def certainty(self) -> str:
        """Say how sure the counts are.

        >>> Separation("x", np.array([True, False]), 0.1, np.array([1e-3, 1e-15]), 2e-16).certainty
        'float64: tolerance 1.0e-10, smallest counted gap 1.0e-03, largest uncounted gap 1.0e-15, rounding 2.0e-16'
        """
        if self.gaps is None:
            return "exact"
        apart, alike = self.gaps[self.told_apart], self.gaps[~self.told_apart]
        parts = [f"tolerance {self.tolerance:.1e}"]
        parts += [f"smallest counted gap {apart.min():.1e}"] if len(apart) else []
        parts += [f"largest uncounted gap {alike.max():.1e}"] if len(alike) else []
        return f"float64: {', '.join([*parts, f'rounding {self.noise:.1e}'])}"


#: Exact methods by name.
METHODS: dict[str, Callable[[PairSet], Multisets]] = {
    "1-WL": lambda pairs: invariants.colours(pairs.graph),
    "degree": lambda pairs: invariants.degrees(pairs.graph),
    "gape": lambda pairs: pairs.walks["node"],
    "spd": lambda pairs: invariants.distances(pairs.graph),
    "rw": lambda pairs: invariants.random_walks(pairs.graph),
    "gape-closed": lambda pairs: pairs.walks["closed"],
    "gape-pair": lambda pairs: pairs.walks["pair"],
    "gape-rooted-3": lambda pairs: invariants.rooted_walks(pairs.graph, 3),
    "gape-rooted-6": lambda pairs: invariants.rooted_walks(pairs.graph, 6),
    "gape-rooted-10": lambda pairs: invariants.rooted_walks(pairs.graph, 10),
}
#: The order of the table; 3-WL refines each pair of graphs on its own.
NAMES = (*METHODS, "3-WL")


def check_method(name: str) -> None:
    """Validate the name of an exact method."""
    if name not in NAMES:
        raise ValueError(f"there is no method {name!r}; there are {', '.join(NAMES)}, and encodings with --encoding")


def separate(name: str, pairs: PairSet) -> Separation:
    """Run one of the exact methods.

    Example:
        >>> ring = Graph.from_edges([(i, (i + 1) % 6) for i in range(6)], undirected=True)
        >>> triangles = Graph.from_edges([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)], undirected=True)
        >>> pairs = PairSet(Graph.union([ring, triangles]), ["toy"])
        >>> [name for name in NAMES if separate(name, pairs).told_apart.all()][:3]
        ['spd', 'rw', 'gape-closed']
    """
    check_method(name)
    started = time.perf_counter()
    if name == "3-WL":
        apart = np.array([pairs_differ(*matrices) for matrices in _adjacency_pairs(pairs.graph)])
    else:
        found = METHODS[name](pairs)
        apart = np.array([not np.array_equal(a, b) for a, b in zip(found[::2], found[1::2], strict=True)])
    return Separation(name, apart.astype(bool), time.perf_counter() - started)


class NotInvariantError(ValueError):
    """The features of an encoding depend on the order of the nodes, or on the choice of eigenvectors."""


def separate_by_features(name: str, encoding: Encoding, pairs: PairSet) -> Separation:
    """Compare the multisets of float64 features of nodes, or of pairs of nodes, of an encoding.

    Features are divided by their largest absolute value and mapped to numbers by random projections, which are sorted;
    the gap of two graphs is the largest difference, over projections, at the same position.

    Raises:
        NotInvariantError: the features depend on the order of the nodes, or on the choice of eigenvectors.
    """
    started = time.perf_counter()
    features = _sorted_features(encoding, pairs.graph)
    shuffled = _sorted_features(encoding, _shuffled(pairs.graph))
    noise = max(_gap(a, b) for a, b in zip(features, shuffled, strict=True))
    if noise > MAX_NOISE:
        raise NotInvariantError(
            f"{name} gives other features when nodes are numbered otherwise (relative difference {noise:.1e}), so it "
            "is no invariant of graphs; leave it out"
        )
    gaps = np.array([_gap(a, b) for a, b in zip(features[::2], features[1::2], strict=True)])
    tolerance = max(TOLERANCE, NOISE_FACTOR * noise)
    return Separation(name, gaps > tolerance, time.perf_counter() - started, gaps, noise, tolerance)


def _sorted_features(encoding: Encoding, graph: Graph) -> list[torch.Tensor]:
    """``[n, projections]`` for each graph, or ``[n², projections]``, columns sorted."""
    with warnings.catch_warnings(action="ignore", category=AlgebraicOnlyWarning):
        found = encoding(graph)
    values, sizes = (found.values, found.sizes.square()) if isinstance(found, Pairs) else (found, graph.sizes)
    features = torch.nan_to_num(values.to(torch.float64).reshape(len(values), -1))
    largest = features.abs().amax(0)
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(features.shape[1], PROJECTIONS, dtype=torch.float64, generator=generator)
    projected = (features / torch.where(largest > 0, largest, 1.0)) @ directions
    return [block.sort(0).values for block in torch.split(projected, sizes.tolist())]


def _shuffled(graph: Graph) -> Graph:
    """The same graphs with the nodes of each in a random order."""
    random = torch.rand(graph.num_nodes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    order = torch.argsort(random + graph.batch)
    place = torch.empty_like(order)
    place[order] = torch.arange(graph.num_nodes)
    return Graph(place[graph.edge_index], graph.num_nodes, ptr=graph.ptr)


def _gap(first: torch.Tensor, second: torch.Tensor) -> float:
    if first.shape != second.shape:
        return float("inf")
    size = max(float(first.abs().max()), float(second.abs().max()), 1e-300)
    return float((first - second).abs().max()) / size


def _adjacency_pairs(graph: Graph) -> Iterable[tuple[Array, Array]]:
    matrices: dict[int, Array] = {}
    for block in invariants.adjacency_blocks(graph, invariants.BLOCK_ELEMENTS):
        matrices |= dict(zip(block.graphs.tolist(), block.matrices.numpy(), strict=True))
    return ((matrices[i], matrices[i + 1]) for i in range(0, graph.num_graphs, 2))


FORMATS = ("text", "markdown", "csv", "json")
#: The stored counts, in the folder of results.
FILE = "expressiveness.json"
#: Names in tables of what is compared.
TITLES = {
    "1-WL": "1-WL",
    "3-WL": "3-WL (2-FWL)",
    "degree": "degrees",
    "gape": "GAPE (one label), all lengths",
    "spd": "shortest paths",
    "rw": "RW, 20 steps",
    "gape-closed": "GAPE closed, all lengths",
    "gape-pair": "GAPE pair, all lengths",
    "gape-rooted-3": "rooted, 3 layers, all lengths",
    "gape-rooted-6": "rooted, 6 layers, all lengths",
    "gape-rooted-10": "rooted, 10 layers, all lengths",
}


# Names of categories in a terminal of 80 columns.
_SHORT = {
    "strongly-regular": "strong\nreg.",
    "extension": "ext.",
    "4-vertex-condition": "4-vert\ncond.",
    "distance-regular": "dist.\nreg.",
}
_MIN_METHOD_WIDTH = 22
_ALL_LENGTHS = ", all lengths"


def render(separations: Sequence[Separation], categories: Sequence[str], format_: str) -> str:
    """Render the counts by category in one of :data:`FORMATS`.

    Example:
        >>> import numpy as np
        >>> print(render([Separation("1-WL", np.array([True, False]), 0.5)], ["cfi", "cfi"], "csv"), end="")
        method,cfi,all,certainty,seconds
        1-WL,1,1,exact,0.5
    """
    check_format(format_)
    totals = {name: list(categories).count(name) for name in dict.fromkeys(categories)}
    totals["all"] = len(categories)
    rows = [(one, one.counts(categories)) for one in separations]
    if format_ == "json":
        records = [_record(one, counts) | {"pairs": totals} for one, counts in rows]
        return "[\n" + ",\n".join(json.dumps(record, ensure_ascii=False) for record in records) + "\n]\n"
    heading = ["method", *totals, "certainty", "seconds"]
    lines: list[list[Any]] = [
        [_title(one), *counts.values(), one.certainty, f"{one.seconds:.1f}"] for one, counts in rows
    ]
    if format_ == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([heading, *lines])
        return out.getvalue()
    sized = ["method", *(f"{name} {count}" for name, count in totals.items()), "certainty"]
    if format_ == "markdown":
        rule = ["---", *("---:" for _ in totals), "---"]
        shown = [sized, rule, *(line[:-1] for line in lines)]
        return "".join(f"| {' | '.join(map(str, line))} |\n" for line in shown)
    short = ["method", *(f"{_SHORT.get(name, name)}\n{count}" for name, count in totals.items()), "s"]
    counted = [[line[0].removesuffix(_ALL_LENGTHS), *line[1:-2], line[-1]] for line in lines]
    return _framed(short, counted, _notes(separations))


def stored_table(results: Path, methods: Sequence[str] | None = None, categories: Sequence[str] | None = None) -> Table:
    """Build a table of the counts stored in ``expressiveness.json``, of all or some methods and categories."""
    path = results / FILE
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}; write it with `gape expressiveness --format json -o {path}`")
    records = {record["method"]: record for record in json.loads(path.read_text(encoding="utf-8"))}
    pairs = next(iter(records.values()))["pairs"]
    rows, columns = (
        list(known if chosen is None else chosen) for known, chosen in ((records, methods), (pairs, categories))
    )
    for name, known in (*((row, records) for row in rows), *((column, pairs) for column in columns)):
        if name not in known:
            raise ValueError(f"{path} has no {name!r}; it has {', '.join(known)}")
    figures = {row: tuple(str(records[row][column]) for column in columns) for row in rows}
    return Table(
        name="expressiveness",
        title="Pairs of graphs of BREC that are told apart",
        columns=tuple(f"{column} {pairs[column]}" for column in columns),
        lines=tuple(
            (records[row]["title"], records[row]["certainty"], tuple(map(Entry, figures[row]))) for row in rows
        ),
        notes=(),
        brief=tuple((records[row]["title"].removesuffix(_ALL_LENGTHS), figures[row]) for row in rows),
    )


def check_format(format_: str) -> None:
    """Validate ``format_``.

    >>> check_format("html")
    Traceback (most recent call last):
    ValueError: format must be one of text, markdown, csv, json, got 'html'
    """
    if format_ not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format_!r}")


def _title(one: Separation) -> str:
    return TITLES.get(one.name, one.name) if one.gaps is None else one.name


def _record(one: Separation, counts: dict[str, int]) -> dict[str, Any]:
    found = {"method": one.name, "title": _title(one), **counts, "certainty": one.certainty}
    return {**found, "seconds": round(one.seconds, 2)}


def _notes(separations: Sequence[Separation]) -> list[str]:
    """Say how sure the counts are: first of the exact methods, then of each encoding in float64."""
    measured = [one for one in separations if one.gaps is not None]
    rows = "Rows that are not named below" if measured else "All rows"
    notes = [f"{rows} are exact; walks are counted modulo a prime, at all lengths unless steps are given."]
    listed = [f"{one.name}: {one.certainty}." for one in measured]
    return listed if len(measured) == len(separations) else notes + listed


def _framed(heading: Sequence[str], lines: Sequence[Sequence[Any]], notes: Sequence[str]) -> str:
    """A table for a terminal, its numbers never cut off, with notes below."""
    table = RichTable(padding=0, box=box.SIMPLE_HEAD)
    table.add_column(heading[0], min_width=_MIN_METHOD_WIDTH, vertical="bottom")
    for name in heading[1:]:
        table.add_column(name, justify="right", no_wrap=True, vertical="bottom")
    for line in lines:
        table.add_row(*map(str, line))
    console = Console(record=True, file=io.StringIO())
    console.width = max(console.width, console.measure(table, options=console.options.update(width=999)).minimum)
    console.print(table)
    wrapped = [textwrap.fill(note, console.width, subsequent_indent="  ") for note in notes]
    return console.export_text(styles=True) + "".join(f"{note}\n" for note in wrapped)
