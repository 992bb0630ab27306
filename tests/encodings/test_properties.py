"""Properties of every encoding: batching, node order, dtypes, settings, determinism."""

import functools
import subprocess
import sys
import warnings
from dataclasses import fields

import numpy as np
import pytest
import torch

import gape
from gape import Graph
from gape.encodings import GAPE, make, names
from gape.solvers import AlgebraicOnlyWarning
from tests.encodings.samples import SEQUENCES, UNDIRECTED, batch_of, encoding, permuted, random_graph, rows

closed, pair = (functools.partial(gape.solve, readout=name) for name in ("closed", "pair"))

pytestmark = pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")

READOUTS = [("gape", settings) for settings in ({"readout": "closed"}, {"readout": "pair"}, {"relative": True})]
READOUTS += [("rrwp", {"readout": "closed"}), ("resistance", {"readout": "node"})]
READOUTS += [(name, {"readout": "pair"}) for name in ("heat", "electrostatic", "communicability", "walk-profile")]
READOUTS += [("communicability", {"series": "resolvent"}), ("walk-profile", {"readout": "closed"})]
READOUTS += [("magnetic", {"potentials": (0.0, 0.1), "laplacian": "combinatorial"})]
ALL = [(name, {}) for name in names()] + READOUTS
ORDERED = (*SEQUENCES, "gape-star-20", "gape-2star-20", "gape-2star-max")


def close(ours: torch.Tensor, other: torch.Tensor) -> None:
    torch.testing.assert_close(ours, other, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize(("name", "settings"), ALL)
@pytest.mark.parametrize("undirected", [True, False])
def test_batch_is_concatenation_of_graphs_one_by_one(name, settings, undirected):
    if name in UNDIRECTED and not undirected:
        settings = {**settings, "symmetrize": True}
    graphs = batch_of(undirected=undirected, weighted=True)
    encode = encoding(name, **settings)
    together = rows(encode(Graph.union(graphs)))
    close(together, torch.cat([rows(encode(graph)) for graph in graphs]))
    assert [len(part) for part in gape.encode(graphs, encode)] == [graph.num_nodes for graph in graphs]


@pytest.mark.parametrize(("name", "settings"), ALL)
@pytest.mark.parametrize("nodes", [0, 1, 2])
@pytest.mark.parametrize("joined", [True, False])
def test_smallest_graphs(name, settings, nodes, joined):
    graph = random_graph(nodes, 1.0 if joined else 0.0, 0)
    encode = encoding(name, **settings)
    result = rows(encode(graph))
    assert len(result) == (nodes**2 if encode.pairwise else nodes)
    if name not in ("sa", "sa-c"):  # NaN stands for eigenpairs that do not exist
        assert bool(torch.isfinite(result.double()).all())


@pytest.mark.parametrize(("name", "settings"), [case for case in ALL if case[0] not in ORDERED])
@pytest.mark.parametrize("undirected", [True, False])
def test_order_of_nodes_does_not_matter(name, settings, undirected):
    if name in UNDIRECTED and not undirected:
        settings = {**settings, "symmetrize": True}
    # Weighted, so that eigenvalues are simple.
    graph = random_graph(15, 0.4, 3, undirected=undirected, weighted=True)
    order = torch.randperm(15, generator=torch.Generator().manual_seed(0))
    encode = encoding(name, **settings)
    before, after = encode(graph), encode(permuted(graph, order))
    if encode.pairwise:
        close(after.matrices()[0], before.matrices()[0][order][:, order])
    else:
        close(after, before[order])


@pytest.mark.parametrize("name", names())
def test_result_has_the_type_asked_for(name):
    graph = random_graph(6, 0.5, 1)
    for dtype in make(name).dtypes:
        assert rows(encoding(name, dtype=dtype)(graph)).dtype == dtype
        assert encoding(name, dtype=str(dtype).removeprefix("torch.")) == encoding(name, dtype=dtype)


@pytest.mark.parametrize("name", [name for name in names() if name not in ("spd", "degree")])
def test_float32_is_float64_rounded(name):
    # A damped star, so that no near-singular equation magnifies what rounding there is.
    settings = {"damping": 0.1} if "star" in name else {}
    graph = random_graph(16, 0.3, 2)
    exact = rows(encoding(name, **settings)(graph))
    rounded = rows(encoding(name, dtype="float32", **settings)(graph))
    torch.testing.assert_close(rounded.double(), exact, rtol=2e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("name", names())
def test_settings_are_told_apart_by_repr_and_equal_by_value(name):
    encode = make(name)
    assert encode == make(name)
    assert hash(encode) == hash(make(name))
    for item in fields(encode):
        assert f"{item.name}={getattr(encode, item.name)!r}" in repr(encode)


def test_settings_are_the_same_whatever_number_they_came_as():
    plain = GAPE(states=4, damping=1.0, relative=True)
    for other in (
        GAPE(states=np.int64(4), damping=1, relative=np.bool_(True)),
        GAPE(states=4, damping=torch.tensor(1.0), relative=True),
        GAPE(states=4, damping=np.float32(1.0), relative=True),
    ):
        assert repr(other) == repr(plain)
    # Tensors print four digits only.
    assert repr(GAPE(damping=torch.tensor(0.02))) != repr(GAPE(damping=torch.tensor(0.020001)))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("rw", {"length": 2.5}, "length must be a whole number, got 2.5"),
        ("rw", {"length": True}, "length must be a whole number, got True"),
        ("gape", {"seed": 1.5}, "seed must be a whole number, got 1.5"),
        ("gape", {"damping": [0.1]}, r"damping must be a number, got \[0.1\]"),
        ("gape", {"relative": 1}, "relative must be True or False, got 1"),
        ("gape", {"matrix": np.ones(2)}, "matrix must not be an array"),
        ("lape", {"vectors": 3.0}, "vectors must be a whole number, got 3.0"),
        ("spd", {"cap": 7.5}, "cap must be a whole number, got 7.5"),
        ("degree", {"cap": 2.5}, "cap must be a whole number, got 2.5"),
        ("lape-p", {"length": 4.5}, "length must be a whole number, got 4.5"),
        ("sinusoidal", {"width": 4.0}, "width must be a whole number, got 4.0"),
        ("ppr", {"beta": None}, "beta must be a number, got None"),
        ("ppr", {"beta": 0}, r"beta is a restart probability in \(0, 1\], got 0.0"),
        ("ppr", {"beta": 1e-17}, "beta=1e-17 is too small.*take at least 1e-10"),
        ("pprp", {"beta": 1e-17}, "beta=1e-17 is too small.*take at least 1e-10"),
        ("heat", {"times": ()}, r"times must be at least one number, got \(\)"),
        ("heat", {"times": (1.0, -2.0)}, r"times\[1\] must be at least 0, got -2.0"),
        ("heat", {"times": "soon"}, "times must be a number, got 'soon'"),
        ("heat", {"laplacian": "random"}, "laplacian must be one of"),
        ("communicability", {"betas": (0.5, -1)}, r"betas\[1\] must be at least 0, got -1.0"),
        ("communicability", {"betas": 1, "series": "resolvent"}, "for betas below 1, relative to .* got 1; lower it"),
        ("svd", {"rank": 0}, "rank must be at least 1, got 0"),
        ("magnetic", {"potentials": 0.75}, "potentials must be between 0 and 0.5.* got 0.75"),
        ("magnetic", {"vectors": 0}, "vectors must be at least 1, got 0"),
        ("walk-profile", {"length": 0}, "length must be at least 1, got 0"),
        ("walk-profile", {"matrix": "laplacian"}, "matrix must be one of"),
        ("resistance", {"readout": "closed"}, "readout must be one of pair, node, got 'closed'"),
        ("rrwp", {"length": 0}, "length must be at least 1, got 0"),
        ("rrwp", {"readout": "node"}, "readout must be one of closed, pair, got 'node'"),
        *[
            (name, {"memory": memory}, f"memory must be at least 0, got {memory}")
            for name in ("rw", "spd", "ppr", "pprp", "gape", "rrwp", "heat", "resistance", "svd", "magnetic")
            for memory in (float("nan"), -1.0)
        ],
    ],
)
def test_settings_of_the_wrong_kind_are_refused_when_set(name, settings, message):
    with pytest.raises(ValueError, match=message):
        make(name, **settings)


@pytest.mark.parametrize("read", [closed, pair])
@pytest.mark.parametrize("memory", [float("nan"), -1.0])
def test_readouts_refuse_a_limit_of_memory_that_is_none(read, memory):
    with pytest.raises(ValueError, match=f"memory must be at least 0, got {memory}"):
        read(gape.Automaton.shift(2), random_graph(3, 1.0, 0), memory=memory)


@pytest.mark.parametrize("name", UNDIRECTED)
def test_directed_graphs_are_refused_with_the_way_out_where_they_have_no_meaning(name):
    graph = Graph.from_edges([(0, 1), (1, 2)])
    with pytest.raises(ValueError, match="set symmetrize=True to walk edges both ways") as error:
        make(name)(graph)
    assert type(make(name)).__name__ in str(error.value)
    both = Graph.from_edges([(0, 1), (1, 2)], undirected=True, edge_weight=[0.5, 0.5])
    close(rows(encoding(name, symmetrize=True)(graph)), rows(encoding(name)(both)))


@pytest.mark.parametrize("name", [*UNDIRECTED, "ppr", "pprp", "magnetic"])
def test_negative_weights_are_quoted_where_they_have_no_meaning(name):
    graph = Graph.from_edges([(0, 1), (1, 2)], undirected=True, edge_weight=[1.0, -0.5])
    encode = make(name)
    message = rf"{type(encode).__name__} needs weights of at least 0, got -0.5 on edge 1 \[1, 2\]"
    with pytest.raises(ValueError, match=message):
        encode(graph)


def test_edges_mixed_between_graphs_change_nothing():
    batch = Graph.union(batch_of(weighted=True))
    order = torch.randperm(batch.num_edges, generator=torch.Generator().manual_seed(1))
    mixed = Graph(batch.edge_index[:, order], batch.num_nodes, edge_weight=batch.edge_weight[order], ptr=batch.ptr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlgebraicOnlyWarning)
        for name in names():
            if name in ORDERED:
                continue
            close(rows(encoding(name)(mixed)), rows(encoding(name)(batch)))


def test_parallel_edges_are_one_edge_of_their_total_weight():
    twice = Graph(torch.tensor([[0, 0, 1, 1, 1, 2], [1, 1, 0, 0, 2, 1]]), 3)
    once = Graph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3, edge_weight=torch.tensor([2.0, 2.0, 1.0, 1.0]))
    for name in names():
        if name in (*ORDERED, "degree"):  # degrees count edges
            continue
        close(rows(encoding(name)(twice)), rows(encoding(name)(once)))


def test_same_bytes_in_another_process():
    script = (
        "import hashlib, warnings, gape; from tests.encodings.samples import *; warnings.simplefilter('ignore');"
        "graph = Graph.union(batch_of(weighted=True));"
        "digest = [hashlib.sha256(rows(e(graph)).numpy().tobytes()).hexdigest()[:8] for e in every_encoding()];"
        "print(' '.join(digest))"
    )
    outputs = {
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(outputs) == 1
    assert len(outputs.pop().split()) == len(names())


@pytest.mark.parametrize("name", names())
def test_device_of_the_graph_is_kept(name):
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    graph = random_graph(9, 0.4, 0)
    close(rows(encoding(name)(graph.to("cuda"))).cpu(), rows(encoding(name)(graph)))
