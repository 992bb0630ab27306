"""Batched LU with several threads, against one matrix at a time by NumPy."""

import numpy as np
import pytest
import torch

import gape
from gape.linalg.lu import inverses, solve_systems


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_batches_of_large_systems_are_solved_with_several_threads(dtype):
    torch.manual_seed(0)
    matrices = torch.eye(160) + torch.randn(3, 160, 160, dtype=dtype) / 40
    rhs = torch.randn(3, 160, 2, dtype=dtype)
    for matrix, right, inverse, x in zip(matrices, rhs, inverses(matrices), solve_systems(matrices, rhs), strict=True):
        np.testing.assert_allclose(x, np.linalg.solve(matrix, right), atol=1e-12)
        np.testing.assert_allclose(inverse, np.linalg.inv(matrix), atol=1e-12)
    assert torch.get_num_threads() == 2


def test_directed_graphs_of_200_nodes_are_encoded_together_as_alone():
    rng = np.random.default_rng(0)
    graphs = [gape.Graph.from_edges(rng.integers(0, 200, (800, 2)), num_nodes=200) for _ in range(2)]
    torch.testing.assert_close(gape.encode(graphs, "pprp"), [gape.encode(graph, "pprp") for graph in graphs])
