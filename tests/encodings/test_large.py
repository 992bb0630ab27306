"""Real directed graphs of up to 1.5 million edges, from the folder that GAPE_DATA names."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from gape import Graph, Status
from gape.encodings import GAPE, RandomWalk, estimate_random_walk, spectral_radius
from gape.solvers import AlgebraicOnlyWarning

NAMES = ["cit-HepPh", "soc-Epinions1", "web-NotreDame"]
QUICK = [*NAMES[:2], pytest.param(NAMES[2], marks=pytest.mark.slow)]


def large_graph(name: str) -> Graph:
    folder = os.environ.get("GAPE_DATA")
    if not folder or not (Path(folder) / "large" / f"{name}.npz").exists():
        pytest.skip(f"needs large/{name}.npz in the folder that GAPE_DATA names")
    with np.load(Path(folder) / "large" / f"{name}.npz") as arrays:
        source = np.repeat(np.arange(int(arrays["num_nodes"])), np.diff(arrays["indptr"].astype(np.int64)))
        index = np.stack([source, arrays["indices"].astype(np.int64)])
        return Graph(index, int(arrays["num_nodes"]))


@pytest.mark.parametrize("name", QUICK)
def test_gape_on_large_directed_graphs(name):
    graph = large_graph(name)
    relative = GAPE(damping=0.9, relative=True).solve(graph)
    assert relative.status == [Status.RUN_SUM]
    assert float(relative.residual) < 1e-10
    walk = GAPE(damping=0.9, matrix="random_walk").solve(graph)
    assert walk.status == [Status.RUN_SUM]
    assert bool(torch.isfinite(walk.weights).all())


@pytest.mark.parametrize("name", QUICK[1:])
def test_gape_at_the_papers_damping_says_that_runs_do_not_sum_up(name):
    # ρ(A) is 107 and more; on the citations, where it is 5.7, the runs do sum up.
    with pytest.warns(AlgebraicOnlyWarning, match="lower the damping"):
        solution = GAPE(damping=0.02, relative=False).solve(large_graph(name))
    assert solution.status == [Status.ALGEBRAIC]
    assert float(solution.spectral_radius) > 2


def test_gape_at_the_papers_damping_on_citations():
    graph = large_graph("cit-HepPh")
    assert 5.6 < float(spectral_radius(graph.walk())) < 5.7
    assert GAPE(damping=0.02, relative=False).solve(graph).status == [Status.RUN_SUM]


# In a process of its own, whose largest memory is that of this graph and of nothing before it.
LAPLACIAN = """
import resource
import numpy as np
from gape.encodings import Laplacian
from gape.encodings.laplacian_matrix import LaplacianMatrix
from tests.encodings.test_large import large_graph

graph = large_graph({name!r})
found = Laplacian(16, symmetrize=True).eigenpairs(graph)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
matrix, _ = LaplacianMatrix("normalized", True, "test").sparse(graph)
residual = matrix @ found.vectors.numpy() - found.vectors.numpy() * found.values.numpy()
print(np.linalg.norm(residual, axis=0).max())
print(float(found.values.min()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_laplacian_of_large_graphs(name):
    large_graph(name)  # skips where it is not at hand
    program, root = LAPLACIAN.format(name=name), Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    memory, residual, smallest = map(float, done.stdout.splitlines())
    assert memory < 4  # GiB
    assert residual <= 1e-8
    assert smallest > 1e-9


def test_random_walk_on_a_large_graph_is_refused_or_estimated():
    graph = large_graph("cit-HepPh")
    with pytest.raises(ValueError, match=r"34546 nodes.*GiB"):
        RandomWalk()(graph)
    found = estimate_random_walk(graph, 4, samples=32)
    assert found.values.shape == found.standard_error.shape == (graph.num_nodes, 4)
