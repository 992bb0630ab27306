"""Exact invariants against walks counted in Python's integers, and the theory of what they can see."""

import itertools
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from rich.text import Text

from gape import Graph
from gape.cli import main
from gape.data import load
from gape.data.brec import CATEGORIES
from gape.encodings import RootedGAPE, make
from gape.experiments import invariants
from gape.experiments.expressiveness import (
    FILE,
    FORMATS,
    NAMES,
    TITLES,
    PairSet,
    Separation,
    render,
    separate,
    separate_by_features,
    stored_table,
)
from gape.graph import as_graph


def rook():
    """The 4 × 4 Rook's graph."""
    return nx.convert_node_labels_to_integers(nx.line_graph(nx.complete_bipartite_graph(4, 4)))


def shrikhande():
    """The Shrikhande graph: Z₄ × Z₄ with steps ±(1, 0), ±(0, 1), ±(1, 1)."""
    steps = [(1, 0), (0, 1), (1, 1), (3, 0), (0, 3), (3, 3)]
    edges = (((a, b), ((a + x) % 4, (b + y) % 4)) for a in range(4) for b in range(4) for x, y in steps)
    return nx.convert_node_labels_to_integers(nx.Graph(edges))


def pair_set(*graphs):
    return PairSet(Graph.union([as_graph(graph) for graph in graphs]), ["toy"] * (len(graphs) // 2))


def names_apart(*graphs):
    pairs = pair_set(*graphs)
    return {name for name in NAMES if separate(name, pairs).told_apart.all()}


def integer_powers(matrix, count):
    power, out = np.eye(len(matrix), dtype=object), []
    for _ in range(count):
        out.append(power)
        power = power @ matrix
    return np.array(out)


def by_counting(graph, method):
    """The multiset that a method compares, with walks of every length that can matter, in exact integers."""
    matrix = nx.to_numpy_array(graph, nodelist=sorted(graph), dtype=int).astype(object)
    n = len(matrix)
    if method == "gape":
        return sorted(map(tuple, integer_powers(matrix, 2 * n).sum(1).T.tolist()))
    if method == "gape-closed":
        return sorted(map(tuple, np.array([power.diagonal() for power in integer_powers(matrix, 2 * n)]).T.tolist()))
    if method == "gape-pair":
        return sorted(map(tuple, integer_powers(matrix, 2 * n).reshape(2 * n, -1).T.tolist()))
    layers = int(method.removeprefix("gape-rooted-"))
    weight = np.array([[7 + 3 * min(a, b) + 5 * max(a, b) ** 2 for b in range(99)] for a in range(99)], dtype=object)
    rows = []
    for root in sorted(graph):
        distance = nx.single_source_shortest_path_length(graph, root)
        label = np.array([min(distance.get(v, 98), layers) if v in distance else 98 for v in sorted(graph)])
        closed = [power.diagonal() for power in integer_powers(matrix * weight[np.ix_(label, label)], 2 * n)]
        rows.append(tuple(int(c[label == layer].sum()) for c in closed for layer in range(layers + 1)))
    return sorted(rows)


PAIRS = [
    (rook(), shrikhande()),
    (nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))),
    (nx.random_regular_graph(3, 10, seed=0), nx.random_regular_graph(3, 10, seed=1)),
    (nx.path_graph(5), nx.star_graph(4)),
    (nx.gnp_random_graph(9, 0.4, seed=2), nx.relabel_nodes(nx.gnp_random_graph(9, 0.4, seed=2), lambda v: 8 - v)),
    (nx.disjoint_union(nx.cycle_graph(4), nx.empty_graph(1)), nx.star_graph(4)),
    (nx.circulant_graph(13, [1, 5]), nx.circulant_graph(13, [1, 3])),
]


@pytest.mark.parametrize("method", ["gape", "gape-closed", "gape-pair", "gape-rooted-1", "gape-rooted-3"])
def test_what_is_told_apart_is_what_counting_in_integers_tells_apart(method):
    pairs = pair_set(*(graph for pair in PAIRS for graph in pair))
    expected = [by_counting(first, method) != by_counting(second, method) for first, second in PAIRS]
    if method == "gape-rooted-1":
        found = invariants.rooted_walks(pairs.graph, 1)
        apart = [not np.array_equal(a, b) for a, b in zip(found[::2], found[1::2], strict=True)]
    else:
        apart = separate(method, pairs).told_apart.tolist()
    assert apart == expected


def test_random_walks_are_those_of_the_encoding():
    pairs = pair_set(*(graph for pair in PAIRS for graph in pair))
    exact = separate("rw", pairs).told_apart
    assert exact.tolist() == separate_by_features("rw", make("rw", dtype="float64"), pairs).told_apart.tolist()


def test_rook_and_shrikhande_are_told_apart_by_rooted_automata_only():
    first, second = rook(), shrikhande()
    for graph in (first, second):  # strongly regular with the same parameters (16, 6, 2, 2)
        adjacency = nx.to_numpy_array(graph)
        assert (adjacency @ adjacency == 6 * np.eye(16) + 2 * adjacency + 2 * (1 - np.eye(16) - adjacency)).all()
    layer = [graph.subgraph(graph[0]) for graph in (first, second)]
    assert sorted(map(len, nx.connected_components(layer[0]))) == [3, 3]
    assert nx.is_isomorphic(layer[1], nx.cycle_graph(6))
    assert names_apart(first, second) == {"gape-rooted-3", "gape-rooted-6", "gape-rooted-10"}
    encode = RootedGAPE(machines=2, layers=2, dtype="float64")
    found = [encode(as_graph(graph)) for graph in (first, second)]
    for rows in found:  # both graphs look alike from every node
        torch.testing.assert_close(rows, rows[:1].expand(16, -1))
    assert float((found[0] - found[1]).abs().max()) > 1e-3


def test_closed_runs_of_three_steps_by_hand():
    """Each node of layer 1 is in six triangles; how they lie in the layers differs, and with it the weight of its runs.

    Two hold the root. Of the other four, in the Rook's graph one lies within layer 1 and three have two nodes in layer
    2; in the Shrikhande graph none lies within layer 1, two have one node in layer 2 and two have two.
    """
    encode = RootedGAPE(machines=1, layers=2, length=3, damping=0.5, damping_min=0.5, dtype="float64")
    w = encode.transition[0] / 6
    for graph, (within, one_outside, two_outside) in ((rook(), (1, 0, 3)), (shrikhande(), (0, 2, 2))):
        per_node = (
            2 * w[0, 1] ** 2 * w[1, 1]
            + within * w[1, 1] ** 3
            + one_outside * w[1, 1] * w[1, 2] ** 2
            + two_outside * w[1, 2] ** 2 * w[2, 2]
        )
        # Six nodes, and each triangle is walked in two directions.
        found = encode(as_graph(graph)).view(16, 3, 3)[:, 1, 2]
        torch.testing.assert_close(found, (12 * per_node).expand(16))


def test_isomorphic_graphs_are_never_told_apart():
    generator = np.random.default_rng(0)
    for graph in (rook(), nx.gnp_random_graph(14, 0.3, seed=1), nx.disjoint_union(nx.path_graph(4), nx.cycle_graph(5))):
        order = generator.permutation(len(graph)).tolist()
        assert names_apart(graph, nx.relabel_nodes(graph, dict(enumerate(order)))) == set()


@pytest.mark.parametrize(
    ("method", "inversion"), [("gape-closed", "modular_inverse"), ("gape-rooted-3", "selected_inverse")]
)
def test_a_vanishing_pivot_in_one_block_does_not_tell_isomorphic_graphs_apart(method, inversion, monkeypatch):
    """New random numbers for one of the two blocks would make any two graphs differ."""
    monkeypatch.setattr(invariants, "BLOCK_ELEMENTS", 1)  # every graph is a block of its own
    invert, calls = getattr(invariants, inversion), itertools.count()

    def vanishing_once(*arguments):
        if next(calls) == 1:
            raise ZeroDivisionError
        return invert(*arguments)

    monkeypatch.setattr(invariants, inversion, vanishing_once)
    graph = nx.gnp_random_graph(12, 0.3, seed=3)
    assert not separate(method, pair_set(graph, nx.relabel_nodes(graph, lambda v: 11 - v))).told_apart.any()
    assert next(calls) == 4, "both blocks are computed again"


def test_encodings_that_depend_on_the_order_of_nodes_are_refused():
    with pytest.raises(ValueError, match="lape gives other features when nodes are numbered otherwise"):
        separate_by_features("lape", make("lape", dtype="float64"), pair_set(rook(), shrikhande()))
    with pytest.raises(ValueError, match="there is no method 'wl'; there are 1-WL"):
        separate("wl", pair_set(rook(), shrikhande()))
    with pytest.raises(ValueError, match="2 pairs need twice as many graphs, got 2"):
        PairSet(Graph.union([as_graph(rook()), as_graph(shrikhande())]), ["a", "b"])


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_shows_the_counts(format_):
    pairs = pair_set(rook(), shrikhande())
    found = [separate("gape-rooted-3", pairs), separate_by_features("rw", make("rw", dtype="float64"), pairs)]
    text = render(found, pairs.categories, format_)
    assert "exact" in text
    assert "float64" in text
    if format_ == "json":
        assert [(row["method"], row["toy"], row["all"]) for row in json.loads(text)] == [
            ("gape-rooted-3", 1, 1),
            ("rw", 0, 0),
        ]


def test_the_table_is_readable_in_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    categories = [name for name in CATEGORIES for _ in range(100)]
    gaps = np.geomspace(1e-16, 1.0, len(categories))
    found = [Separation(name, gaps > 0, 123.4) for name in NAMES]
    found += [Separation("gape-rooted layers=6", gaps > 1e-10, 12.3, gaps, 2e-15)]
    text = Text.from_ansi(render(found, categories, "text")).plain
    table, _, notes = text.partition("Rows that are not named below are exact")
    lines = table.splitlines()
    assert max(map(len, lines)) <= 80
    assert max(map(len, notes.splitlines())) <= 80
    assert "…" not in table
    for one in found:  # name, counts and seconds in one line
        title = TITLES.get(one.name, one.name).removesuffix(", all lengths")
        (line,) = [line for line in lines if line.split("  ")[0].strip() == title]
        counts = one.counts(categories).values()
        assert line.split()[-len(counts) - 1 :] == [*map(str, counts), str(one.seconds)]
    words = " ".join(notes.split())
    assert found[-1].certainty in words
    assert all(part in words for part in ("tolerance 1.0e-10", "smallest counted gap", "largest uncounted gap"))


def test_stored_counts_make_the_tables_of_the_pages(tmp_path):
    pairs = pair_set(rook(), shrikhande())
    with pytest.raises(FileNotFoundError, match="write it with `gape expressiveness --format json -o "):
        stored_table(tmp_path)
    found = [separate(name, pairs) for name in ("rw", "gape-rooted-3")]
    (tmp_path / FILE).write_text(render(found, pairs.categories, "json"), encoding="utf-8")
    whole = stored_table(tmp_path)
    assert whole.columns == ("toy 1", "all 1")
    assert whole.brief == (("RW, 20 steps", ("0", "0")), ("rooted, 3 layers", ("1", "1")))
    assert stored_table(tmp_path, ["gape-rooted-3"], ["all"]).brief == (("rooted, 3 layers", ("1",)),)
    for chosen in ((["sa"], None), (None, ["cfi"])):
        with pytest.raises(ValueError, match=r"has no '(sa|cfi)'; it has (rw, gape-rooted-3|toy, all)"):
            stored_table(tmp_path, *chosen)


def test_brec(tmp_path, capsys):
    """The published pairs, where they are at hand: the cheap rows of the table, and one category of a dear one."""
    try:
        pairs = PairSet.brec()
    except FileNotFoundError:
        pytest.skip("BREC is not in the data folder")
    sizes = {name: pairs.categories.count(name) for name in CATEGORIES}
    assert list(sizes.values()) == [60, 50, 50, 100, 100, 20, 20]
    found = [separate(name, pairs) for name in ("1-WL", "spd", "rw", "3-WL")]
    counts = {one.name: one.counts(pairs.categories) for one in found}
    assert [counts[name]["all"] for name in counts] == [0, 75, 215, 270]
    stored = Path(__file__).parents[2] / "results" / FILE
    if stored.exists():  # not in the source archive
        records = {record["method"]: record for record in json.loads(stored.read_text(encoding="utf-8"))}
        assert all(
            records[name] == {**records[name], **count, "pairs": {**sizes, "all": 400}}
            for name, count in counts.items()
        )
    assert counts["3-WL"]["cfi"] == 60
    regular = as_graph(load("brec", category="strongly-regular").batch())
    apart = separate("gape-rooted-3", PairSet(regular, ["strongly-regular"] * 50)).told_apart
    assert apart.sum() == 49
    with pytest.raises(SystemExit) as exit_:
        main(["expressiveness", "1-WL", "degree", "--format", "csv", "-o", str(tmp_path / "table.csv")])
    assert not exit_.value.code
    assert (tmp_path / "table.csv").read_text().splitlines()[1].startswith("1-WL,0,0,0,0,0,0,0,0,exact")


def test_command_refuses_what_it_does_not_know(capsys):
    for words, message in [
        (["rooted"], "there is no method 'rooted'"),
        (["--format", "html"], "format must be one of text, markdown, csv, json"),
        (["rw", "--set", "length=3"], "name them with --encoding"),
        (["--encoding", "walk"], "there is no encoding 'walk'"),
    ]:
        with pytest.raises(SystemExit) as exit_:
            main(["expressiveness", *words])
        assert exit_.value.code == 2
        assert message in capsys.readouterr().err
