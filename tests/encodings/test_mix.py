"""Encodings side by side."""

import pytest
import torch

from gape import Graph
from gape.encodings import (
    Electrostatic,
    HeatKernel,
    Laplacian,
    Mix,
    PageRank,
    RandomWalk,
    RelativeRandomWalk,
    RootedGAPE,
    ShortestPath,
    Spectrum,
    is_name,
    make,
    settings_of,
    summary,
)
from gape.experiments.graph_tasks.cell import Cell
from tests.encodings.samples import batch_of, permuted, random_graph, rows

SPECTRAL = "lape+heat+resistance+electrostatic"
NODE = {"resistance.readout": "node", "dtype": "float64"}


def test_columns_are_those_of_the_parts():
    graph = random_graph(9, 0.4, 0)
    both = make("rw+gape-rooted", **{"rw.length": "6", "gape-rooted.machines": 2, "dtype": "float64"})
    expected = [RandomWalk(6, dtype="float64")(graph), RootedGAPE(2, dtype="float64")(graph)]
    assert torch.equal(both(graph), torch.cat(expected, 1))
    assert both == Mix((RandomWalk(6, dtype="float64"), RootedGAPE(2, dtype="float64")), dtype="float64")
    assert [len(rows) for rows in map(both, batch_of())] == [graph.num_nodes for graph in batch_of()]


def test_pairs_stand_beside_pairs():
    graph = Graph.union([random_graph(5, 0.6, 0), random_graph(4, 0.6, 0)])
    found = make("rrwp+spd+ppr", **{"rrwp.length": 3})(graph)
    parts = [
        RelativeRandomWalk(3)(graph).values,
        *(each(graph).values[:, None] for each in (ShortestPath(), PageRank())),
    ]
    assert torch.equal(found.values, torch.cat(parts, 1))
    assert found.matrices()[1].shape == (4, 4, 5)


@pytest.mark.parametrize("name", [SPECTRAL, "rw+lape+gape-rooted", "rrwp+resistance"])
@pytest.mark.parametrize("scaling", ["none", "column", "row"])
def test_batch_is_alone_and_order_does_not_matter(name, scaling):
    settings = {f"{part}.scaling": scaling for part in name.split("+")} | {"dtype": "float64"}
    encode = make(name, **(settings | NODE if name == SPECTRAL else settings))
    graphs = batch_of(weighted=True)
    together = torch.cat([rows(encode(graph)) for graph in graphs])
    torch.testing.assert_close(rows(encode(Graph.union(graphs))), together, rtol=1e-9, atol=1e-9)
    graph, order = graphs[0], torch.tensor([3, 1, 0, 6, 5, 2, 4])
    if not encode.pairwise:
        torch.testing.assert_close(encode(permuted(graph, order)), encode(graph)[order], rtol=1e-9, atol=1e-9)


def test_every_part_has_its_own_scaling():
    graph = Graph.union(batch_of(weighted=True))
    mixed = make("rw+lape", **{"lape.scaling": "column", "rw.scaling": "row", "dtype": "float64"})
    assert mixed.scaling == ("row", "column")
    walks, vectors = mixed(graph).split([20, 8], 1)
    plain = RandomWalk(dtype="float64")(graph)
    torch.testing.assert_close(walks, torch.nn.functional.normalize(plain, dim=1))
    for first, last in zip(graph.ptr[:-1].tolist(), graph.ptr[1:].tolist(), strict=True):
        ours, alone = vectors[first:last], Laplacian(dtype="float64")(graph)[first:last]
        # Unit vectors of n nodes have a root mean square of 1/√n.
        torch.testing.assert_close(ours, alone * (last - first) ** 0.5)


@pytest.mark.parametrize("nodes", [12, 150])
@pytest.mark.parametrize("weighted", [True, False])  # without weights eigenvalues are multiple
def test_one_decomposition_serves_all_that_need_it(nodes, weighted, monkeypatch):
    graph, calls, decompose = random_graph(nodes, 2 / nodes, 0, weighted=weighted), [], torch.linalg.eigh
    mixed = make(SPECTRAL, **NODE)
    alone = torch.cat([part(graph) for part in mixed.parts], 1)
    monkeypatch.setattr(torch.linalg, "eigh", lambda matrix: calls.append(matrix.shape) or decompose(matrix))
    found = mixed(graph)
    assert calls == [(1, nodes, nodes)]
    torch.testing.assert_close(found, alone, rtol=1e-8, atol=1e-8)


def test_what_needs_another_matrix_is_decomposed_by_itself(monkeypatch):
    graph, calls, decompose = random_graph(12, 0.4, 0), [], torch.linalg.eigh
    mixed = Mix((HeatKernel((1.0,), "combinatorial"), HeatKernel((2.0,)), Electrostatic(symmetrize=True)))
    monkeypatch.setattr(torch.linalg, "eigh", lambda matrix: calls.append(matrix.shape) or decompose(matrix))
    mixed(graph)
    assert len(calls) == 2
    with pytest.raises(ValueError, match="HeatKernel needs undirected graphs"):
        mixed(Graph.from_edges([(0, 1)]))
    assert len(calls) == 2


def test_graphs_that_one_part_refuses_are_refused_before_work(monkeypatch):
    monkeypatch.setattr(RandomWalk, "compute", lambda *_: pytest.fail("work was begun"))
    with pytest.raises(ValueError, match="Laplacian needs undirected graphs"):
        make("rw+lape")(Graph.from_edges([(0, 1)]))


def test_names_and_settings_of_the_parts():
    assert is_name("rw+gape-rooted")
    assert not is_name("rw+none")
    known = [setting.name for setting in settings_of("rw+pprp")]
    assert known[0] == "dtype"
    assert {"rw.length", "pprp.powers", "pprp.scale", "pprp.scaling", "rw.scaling"} <= set(known)
    assert len(set(known)) == len(known)
    assert summary("rw+pprp").startswith("Features of several encodings side by side, in the order given")
    assert make("rwse+lappe", **{"rwse.length": 3}).parts == (RandomWalk(3), Laplacian())


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("rw+walk", {}, "there is no encoding 'walk'"),
        ("rw+rw", {}, "names an encoding twice"),
        ("rw+rwse", {}, "names an encoding twice"),
        ("rw+pprp", {"length": 3}, "has no setting 'length'; it has dtype, rw.length.*did you mean 'rw.length'"),
        ("rw+pprp", {"dtype": "int16"}, "dtype must be one of float32, float64, got 'int16'"),
        ("rw+pprp", {"rw.scaling": "all"}, "scaling must be one of .*, got 'all'"),
        ("rw+spd", {}, "encodes pairs of nodes and others encode nodes; choose the same readout"),
        ("rw+sa", {}, "has two numbers per node and eigenvalue .* use 'lape'"),
        ("rw+sa-c", {}, "has two numbers per node and eigenvalue"),
    ],
)
def test_what_does_not_go_together_is_refused_when_made(name, settings, message):
    with pytest.raises(ValueError, match=message):
        make(name, **settings)


def test_a_mix_says_how_many_scalings_it_needs():
    with pytest.raises(ValueError, match=r"one name for each of 2 encodings, got \('row',\)"):
        Mix((RandomWalk(), Laplacian()), scaling=("row",))
    with pytest.raises(ValueError, match="at least two encodings, got 1"):
        Mix((RandomWalk(),))
    with pytest.raises(ValueError, match="two numbers per node"):
        Mix((RandomWalk(), Spectrum()))


def test_cells_of_the_comparison():
    cell = Cell("cycles-v", "rw+gape-rooted", 95, {"encoding.gape-rooted.layers": "2", "scaling": "whitened"})
    options = {"rw.length": 9, "gape-rooted.layers": 2, "gape-rooted.seed": 95}
    assert cell.settings.encoding_options == options
    assert cell.name == "cycles-v rw+gape-rooted encoding.gape-rooted.layers=2 scaling=whitened seed 95"
    assert Cell("cycles-v", "rw+gape-rooted", 95, {"encoding.gape-rooted.layers": "3"}).overrides == {}
    with pytest.raises(ValueError, match="'lape' does not enter by a linear layer"):
        Cell("cycles", "rw+lape")
