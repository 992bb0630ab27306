"""Pages hold what they show: arrays, bases that reproduce the walk matrices, encodings, names, and no link outside."""

import base64
import html
import json
import re

import networkx as nx
import numpy as np
import pytest
import torch

import gape
from gape._internal.files import asset
from gape.data.csl import circular_skip_link
from gape.data.planar import are_planar
from gape.encodings import make
from gape.explorer import GALLERY, example, explore
from gape.explorer.content import MAX_FLOAT_ELEMENTS, Arrays
from gape.solvers.solution import Status

DTYPES = {"f8": np.float64, "f4": np.float32, "u1": np.uint8, "u2": np.uint16, "u4": np.uint32}


def parts_of(page):
    """The description and the arrays of a page, read as a browser would."""
    content = json.loads(re.search(r'id="content">(.*?)</script>', page.html, re.DOTALL)[1])
    data = base64.b64decode(re.search(r'id="arrays">(.*?)</script>', page.html, re.DOTALL)[1])
    arrays = {}
    for name, place in content["arrays"].items():
        size = int(np.prod(place["shape"]))
        arrays[name] = np.frombuffer(data, DTYPES[place["type"]], size, place["start"]).reshape(place["shape"])
        if "low" in place:
            arrays[name] = np.array(place["low"]) + np.array(place["step"]) * arrays[name]
    return content, arrays


@pytest.mark.parametrize("name", GALLERY)
def test_every_example_has_a_page_of_its_own_without_links(name):
    page = explore(name)
    content, arrays = parts_of(page)
    assert content["title"] == page.title
    assert len(arrays["positions"]) == content["nodes"] == example(name).graph.num_nodes
    assert content["live"]
    assert not re.search(r"(src|href)=[\"']?(?!data:)\w|@import|url\(|https?://|fetch\(|XMLHttpRequest", page.html)


@pytest.mark.parametrize("matrix", gape.graph.walk_matrix.NAMES)
def test_eigenvectors_reproduce_undirected_walk_matrices(matrix):
    # An isolated node, two components, weights.
    graph = nx.disjoint_union(nx.lollipop_graph(4, 3), nx.star_graph(4))
    graph.add_node("alone")
    nx.set_edge_attributes(graph, {edge: 1.0 + i / 3 for i, edge in enumerate(graph.edges)}, "weight")
    graph = gape.as_graph(graph)
    content, arrays = parts_of(explore(graph, encodings=[]))
    entry = next(entry for entry in content["matrices"] if entry["name"] == matrix)
    u, values = arrays[entry["basis"]], arrays[entry["values"]]
    scale = arrays[entry["scale"]] if "scale" in entry else np.ones(len(u))
    dense = graph.walk(matrix).dense()[0].numpy()
    assert np.abs(u.T @ u - np.eye(len(u))).max() < 1e-12
    assert np.abs((scale[:, None] * u * values) @ (u.T / scale) - dense.T).max() < 1e-12
    assert entry["radius"] == pytest.approx(np.abs(np.linalg.eigvals(dense)).max())


@pytest.mark.parametrize("acyclic", [True, False])
def test_schur_forms_reproduce_directed_walk_matrices(acyclic):
    graph = nx.gn_graph(30, seed=0) if acyclic else nx.gnp_random_graph(30, 0.08, seed=2, directed=True)
    graph = gape.as_graph(graph)
    content, arrays = parts_of(explore(graph, encodings=[]))
    for entry in content["matrices"]:
        z, t = np.zeros((2, 30, 30), dtype=complex)
        for target, key in ((z, "z"), (t, "t")):
            rows, columns, real, imaginary = (
                arrays[entry[f"{key}_{part}"]] for part in ("rows", "columns", "real", "imaginary")
            )
            target[rows, columns] = real + 1j * imaginary
        dense = graph.walk(entry["name"]).dense()[0].numpy()
        assert np.abs(z @ t @ z.conj().T - dense.T).max() < 1e-12
        assert np.abs(np.tril(t, -1)).max() == 0
        assert np.array_equal(np.diag(t).real, arrays[entry["values"]])
        # Long chains make computed eigenvalues of a triangular matrix drift from 0, unless it is left triangular.
        assert (np.abs(np.diag(t)).max() == 0) == acyclic


def test_weights_of_runs_by_length_are_those_of_matrix_powers_of_each_graph():
    graphs = [nx.karate_club_graph(), nx.star_graph(5)]
    _, arrays = parts_of(explore(graphs, encodings=[]))
    for place, graph in enumerate(graphs):
        dense, x = nx.to_numpy_array(graph), np.ones(len(graph))
        for norms in arrays["adjacency.run_norms"][:10]:
            assert norms[place] == pytest.approx(np.linalg.norm(x))
            x = dense.T @ x


def test_every_status_has_a_title_in_words_and_a_colour():
    content, _ = parts_of(explore("cycle"))
    assert list(content["status"]) == [status.name for status in Status]
    tones = {status: content["status"][status.name]["tone"] for status in Status}
    assert {status for status, tone in tones.items() if tone == "good"} == {Status.RUN_SUM}
    assert {status for status, tone in tones.items() if tone == "bad"} == {s for s in Status if s.failed}
    assert all(tone == "warn" for s, tone in tones.items() if s is not Status.RUN_SUM and not s.failed)
    titles = [entry["title"] for entry in content["status"].values()]
    assert len(set(titles)) == len(titles)
    assert not any(
        status.name in entry["title"] for status, entry in zip(Status, content["status"].values(), strict=True)
    )


def test_edges_are_counted_as_one_draws_them():
    ring = nx.cycle_graph(5)
    ring.add_edges_from([(0, 0), (3, 3), (4, 4)])
    assert parts_of(explore(ring))[0]["edges"] == 8
    assert parts_of(explore(ring.to_directed()))[0]["edges"] in (8, 13)
    assert parts_of(explore(nx.DiGraph([(0, 1), (1, 0), (1, 1), (1, 2)])))[0]["edges"] == 4


@pytest.mark.parametrize("title", ["gape", "GAPE"])
@pytest.mark.parametrize("nodes", [20, 500])
def test_features_may_be_called_like_the_automaton(title, nodes):
    own = np.arange(2.0 * nodes).reshape(nodes, 2)
    content, arrays = parts_of(explore(nx.path_graph(nodes), encodings={title: own}))
    titles = [entry["title"] for entry in content["encodings"]]
    assert len(set(titles)) == len(titles)
    assert np.array_equal(arrays[content["encodings"][titles.index(title)]["values"]], own)
    assert content["views"][0]["encoding"] == (None if content["live"] else 0)
    assert content["live"] or content["encodings"][0]["status"] == "RUN_SUM"


# Machado, Oliveira & Fernandes (2009): what people without one kind of cones see, in linear RGB.
VISION = {
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "achromatopsia": [[0.2126, 0.7152, 0.0722]] * 3,
}


def seen_lab(colours, vision):
    """CIELAB of sRGB colours ``[c, 3]`` in 0…255 as seen with a colour vision deficiency."""
    share = np.asarray(colours) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.array(VISION[vision]).T, 0, 1)
    xyz = linear @ np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).T
    t = xyz / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], 1)


@pytest.mark.parametrize("vision", VISION)
def test_palettes_are_safe_for_colour_blind_readers(vision):
    """Lightness grows from step to step; in the diverging palette it grows to the middle and then falls."""
    found = re.findall(r'"?([\w–]+)"?: anchors\("([0-9a-f]+)"\)', asset("gape.explorer", "pictures.js"))
    assert [name for name, _ in found] == ["viridis", "cividis", "blue–orange"]
    for name, text in found:
        colours = [[int(text[i + c : i + c + 2], 16) for c in (0, 2, 4)] for i in range(0, len(text), 6)]
        lab = seen_lab(colours, vision)
        lightness = lab[:, 0]
        if name != "blue–orange":
            assert (np.diff(lightness) > 1).all(), name
            continue
        middle = len(colours) // 2
        assert (np.diff(lightness[: middle + 1]) > 1).all()
        assert (np.diff(lightness[middle:]) < -1).all()
        if vision != "achromatopsia":
            # Values as far above the middle as others are below it look different: blue is seen, red or not.
            assert (np.linalg.norm(lab[1:middle] - lab[-2:middle:-1], axis=1) > 15).all()


def test_a_page_holds_the_encodings_that_were_asked_for():
    graph = nx.karate_club_graph()
    own = np.random.default_rng(0).normal(size=(34, 3))
    content, arrays = parts_of(explore(graph, encodings={"walks": make("rw", length=4), "mine": own, "lape": "lape"}))
    assert [entry["title"] for entry in content["encodings"]] == ["walks", "mine", "lape"]
    found = [arrays[entry["values"]] for entry in content["encodings"]]
    assert np.array_equal(found[0], make("rw", length=4)(graph).double().numpy())
    assert np.array_equal(found[1], own)


@pytest.mark.parametrize("name", ["cycle", "path", "rook", "sbm", "karate"])
def test_an_example_takes_other_encodings_and_settings(name):
    content, _ = parts_of(explore(name, encodings=["rw"], states=4, seed=7))
    assert {view["encoding"] for view in content["views"]} <= {None, *range(len(content["encodings"]))}
    assert all((view["states"], view["seed"]) == (4, 7) and view["column"] < 4 for view in content["views"])
    assert parts_of(explore(name, damping=0.2))[0]["views"][0]["damping"] == 0.2


def test_a_large_graph_shows_what_was_computed():
    graph = gape.as_graph(nx.connected_watts_strogatz_graph(900, 4, 0.1, seed=0))
    content, arrays = parts_of(explore(graph, states=4, damping=0.9, seed=3, encodings=["rw"]))
    assert not content["live"]
    assert [entry["title"] for entry in content["encodings"]] == ["GAPE", "rw"]
    assert content["encodings"][0]["status"] == "RUN_SUM"
    assert content["encodings"][0]["radius"] == pytest.approx(0.9)
    wanted = gape.encodings.GAPE(states=4, damping=0.9, seed=3, relative=True)(graph)
    assert np.abs(arrays["encoding.0"] - wanted.numpy()).max() < 1e-6
    values = arrays["adjacency.values"]
    dense = np.linalg.eigvalsh(graph.walk("adjacency").dense()[0].numpy())
    assert np.abs(np.sort(np.abs(values)) - np.sort(np.abs(dense))[-len(values) :]).max() < 1e-5
    vectors = arrays["adjacency.eigenvectors"]
    gap = graph.walk("adjacency").dense()[0].numpy() @ vectors - vectors * values[: vectors.shape[1]]
    assert np.abs(gap).max() < 1e-4


def test_many_features_are_stored_in_two_bytes_each():
    values = np.random.default_rng(0).normal(size=(MAX_FLOAT_ELEMENTS // 4 + 1, 4))
    values[:, 1] = 7.0
    arrays = Arrays()
    arrays.add_features("x", values)
    place = arrays.index["x"]
    stored = np.frombuffer(base64.b64decode(arrays.text), np.uint16).reshape(values.shape)
    assert place["type"] == "u2"
    assert np.abs(np.array(place["low"]) + np.array(place["step"]) * stored - values).max() < 1e-4


def test_notebooks_show_the_page_in_a_frame():
    page = explore("cycle")
    shown = page._repr_html_()
    assert shown.startswith("<iframe")
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1]) == page.html


def test_names_of_nodes_cannot_end_the_script(tmp_path):
    path = tmp_path / "graph.csv"
    path.write_text("source,target\n</script><b>,b\nb,c\n")
    content, _ = parts_of(explore(path))
    assert sorted(content["names"]) == ["</script><b>", "b", "c"]


def test_batches_show_their_first_graphs_or_the_chosen_one():
    rings = [nx.cycle_graph(3 + i % 4) for i in range(50)]
    content, _ = parts_of(explore(rings, encodings=[]))
    assert len(content["graphs"]) == 36
    assert "36 of 50 graphs are shown" in content["notes"][0]
    content, _ = parts_of(explore(rings, encodings=[], graph=49))
    assert content["nodes"] == len(rings[49])
    with pytest.raises(ValueError, match="there is no graph '50'; the names of graphs are 0, 1, 2"):
        explore(rings, graph=50)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encodings": ["spd"]}, "spd has values per pair of nodes"),
        (
            {"encodings": {"mine": np.zeros((5, 2))}},
            r"encoding 'mine' must have a row per node, \[34, k\], got shape \[5",
        ),
        ({"encodings": {"mine": np.full((34, 2), np.nan)}}, "encoding 'mine' must be finite, got nan"),
        ({"encodings": 3}, "encodings must be names of encodings, or a mapping .* got 3"),
        ({"encodings": ["gappe"]}, "gappe"),
        ({"positions": np.zeros((34, 3))}, r"positions must be \[34, 2\], got shape \[34, 3\]"),
        ({"damping": -1.0}, "damping"),
        ({"damping": 0.0}, "damping"),
        ({"seed": 100}, "seed"),
        ({"states": 65}, "states"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        explore(nx.karate_club_graph(), **options)


def test_wrong_inputs_are_refused():
    with pytest.raises(ValueError, match="there is no file and no example 'karat'; examples are karate, path"):
        explore("karat")
    with pytest.raises(FileNotFoundError, match=r"there is no file nowhere\.csv"):
        explore("nowhere.csv")
    with pytest.raises(ValueError, match="a graph without nodes cannot be shown"):
        explore(nx.Graph())
    with pytest.raises(ValueError, match="undirected and graph are for graphs of your own, got the example 'karate'"):
        explore("karate", undirected=True)
    with pytest.raises(ValueError, match="up to 100,000 nodes and 1,000,000 edges, got 100,001 and 0"):
        explore(gape.Graph(torch.zeros(2, 0, dtype=torch.int64), 100_001))


def test_the_pair_of_the_gallery_is_planar_and_not():
    pair = example("planar").graph
    dense = pair.walk("adjacency").dense().bool().numpy()
    assert are_planar(dense).tolist() == [True, False]
    assert dense.sum(2)[0].tolist() == dense.sum(2)[1].tolist()


def test_the_skip_links_of_the_gallery_are_those_of_csl():
    pair = example("csl").graph
    for place, skip in enumerate((2, 5)):
        ours = {tuple(sorted(edge)) for edge in pair.slice(place, place + 1).edge_index.t().tolist()}
        assert ours == {tuple(sorted(edge)) for edge in circular_skip_link(41, skip).tolist()}


def test_only_the_rooted_automaton_tells_rook_and_shrikhande_apart():
    shown = example("rook")
    closed = gape.encodings.GAPE(states=8, damping=0.6, readout="closed", dtype="float64")(shown.graph)
    assert (closed - closed[0]).abs().max() < 1e-12
    rooted = shown.encodings["gape-rooted"](shown.graph)
    difference = (rooted[0] - rooted[16]).abs() / rooted[0].abs()
    assert difference[shown.views[1].column] > 1e-5


def test_the_molecule_is_in_zinc(real_data):
    dataset = gape.data.load("zinc", real_data)
    shown = example("molecule").graph
    assert any(
        data.num_nodes == shown.num_nodes
        and {tuple(edge) for edge in data.edge_index.t().tolist()} == {tuple(e) for e in shown.edge_index.t().tolist()}
        for data in (dataset[i] for i in range(10))
    )
