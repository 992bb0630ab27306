"""Closed forms for sequences against decompositions of the graphs behind them."""

import numpy as np
import pytest
import torch

from gape import Graph
from gape.encodings import (
    CycleSpectrum,
    Laplacian,
    PathRandomWalk,
    RandomWalk,
    SequenceLaplacian,
    ShortestPath,
    Sinusoidal,
    Spectrum,
    fix_signs,
    make,
    sequence_graph,
)

F64 = torch.float64
KINDS = ["normalized", "combinatorial"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 9, 40])
def test_path_eigenvectors_are_cosines(kind, nodes):
    path = sequence_graph("path", nodes)
    closed = SequenceLaplacian(6, "path", laplacian=kind, dtype=F64)(path)
    expected = Laplacian(6, kind, dtype=F64)(path)
    torch.testing.assert_close(fix_signs(closed[None])[0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_that_grows_keeps_its_signs(kind):
    """No column changes sign between two lengths: models read the same position in sentences of all lengths."""
    encoding = SequenceLaplacian(20, "path", laplacian=kind)
    for nodes in range(3, 201):
        first = encoding.table(nodes)[0, : min(20, nodes - 1)]
        assert (first > 0).all(), nodes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [3, 4, 9, 40])
def test_cycle_eigenvectors_are_the_fourier_transform(kind, nodes):
    cycle = sequence_graph("cycle", nodes)
    closed = SequenceLaplacian(7, "cycle", laplacian=kind, dtype=F64)(cycle)
    found = min(7, nodes - 1)
    walk = cycle.walk("laplacian" if kind == "combinatorial" else "normalized_laplacian")
    values = torch.linalg.eigvalsh(walk.dense()[0])[1 : found + 1]
    torch.testing.assert_close(walk.pull(closed)[:, :found], closed[:, :found] * values, rtol=1e-9, atol=1e-9)
    gram = closed.T @ closed
    expected = torch.diag((torch.arange(7) < found).to(F64))
    torch.testing.assert_close(gram, expected, rtol=1e-9, atol=1e-9)


def test_ten_thousand_nodes_make_positions_independent_of_length():
    encoding = make("lape-c10k", vectors=4, dtype="float64")
    long, short = encoding(sequence_graph("path", 50)), encoding(sequence_graph("path", 7))
    assert torch.equal(long[:7], short)
    assert encoding.length == 10_000
    position = torch.arange(50, dtype=F64)
    angle = 2 * np.pi * position / 10_000
    scale = np.sqrt(2 / 10_000)
    torch.testing.assert_close(long[:, :2], scale * torch.stack([angle.cos(), angle.sin()], 1), rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="does not fit on a cycle of 10 nodes"):
        SequenceLaplacian(2, "cycle", length=10)(sequence_graph("path", 11))


@pytest.mark.parametrize("nodes", [3, 8, 30])
def test_spectrum_of_a_cycle(nodes):
    cycle = sequence_graph("cycle", nodes)
    closed = CycleSpectrum(6, unit_rows=False, dtype=F64)(cycle)
    dense = Spectrum(6, unit_rows=False, dtype=F64)(cycle)
    torch.testing.assert_close(closed[..., 1], dense[..., 1], rtol=1e-9, atol=1e-9, equal_nan=True)
    # Eigenvalues come in pairs: compare the projections onto the eigenspaces.
    for first, last in [(0, 1), (1, 3)]:
        ours, other = closed[:, first:last, 0], dense[:, first:last, 0]
        torch.testing.assert_close(ours @ ours.T, other @ other.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("nodes", [1, 2, 3, 50])
def test_random_walk_on_a_path(nodes):
    path = sequence_graph("path", nodes)
    closed = PathRandomWalk(20, length=None, dtype=F64)(path)
    torch.testing.assert_close(closed, RandomWalk(20, dtype=F64)(path), rtol=1e-10, atol=1e-12)
    fixed = PathRandomWalk(20, length=200, dtype=F64)(path)
    longer = RandomWalk(20, dtype=F64)(sequence_graph("path", 200))[:nodes]
    torch.testing.assert_close(fixed, longer, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["lape-p", "lape-c", "sa-c", "rw-p", "sinusoidal"])
def test_long_sequences_need_no_table_of_all_pairs(name):
    # 300,000² numbers would take 720 GB.
    settings = {"width": 4} if name == "sinusoidal" else {"length": None}
    rows = make(name, **settings, dtype="float64")(sequence_graph("path", 300_000))
    assert len(rows) == 300_000
    assert bool(torch.isfinite(rows).all())


@pytest.mark.parametrize("steps", [1, 2, 3, 20])
def test_random_walk_sees_both_ends_of_a_path_whatever_its_length(steps):
    for nodes in range(1, 2 * steps + 6):
        path = sequence_graph("path", nodes)
        exact = RandomWalk(steps, dtype=F64)(path)
        torch.testing.assert_close(PathRandomWalk(steps, None, dtype=F64)(path), exact, rtol=1e-10, atol=1e-12)


def test_shortest_paths_on_a_path_are_differences():
    distances = ShortestPath()(sequence_graph("path", 30)).matrices()[0]
    places = torch.arange(30)
    assert torch.equal(distances.long(), (places[:, None] - places).abs())


def test_sinusoids_are_vaswanis():
    table = Sinusoidal(8, dtype=F64).table(5)
    for position in range(5):
        for j in range(4):
            angle = position / 10000 ** (2 * j / 8)
            np.testing.assert_allclose(table[position, 2 * j], np.sin(angle), atol=1e-15)
            np.testing.assert_allclose(table[position, 2 * j + 1], np.cos(angle), atol=1e-15)


def test_sequences_in_a_batch_begin_at_their_own_first_node():
    batch = Graph.union([sequence_graph("path", n) for n in (3, 5, 1)])
    for name in ("sinusoidal", "lape-p", "lape-c", "lape-c10k", "sa-c", "rw-p"):
        encoding = make(name)
        parts = torch.cat([encoding.table(n).to(torch.float32) for n in (3, 5, 1)])
        torch.testing.assert_close(encoding(batch), parts, equal_nan=True)
