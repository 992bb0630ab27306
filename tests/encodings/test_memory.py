"""The memory that an error message states is an upper bound of the memory used."""

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

import gape.encodings.random_walk
from tests.encodings.samples import random_graph

CASES = [
    ("RandomWalk()", "[2300]"),
    ("RandomWalk(dtype='float64')", "[2300]"),
    ("PageRank()", "[2300]"),
    ("PageRankPowers(3)", "[2300]"),
    ("ShortestPath()", "[4000]"),
    ("ShortestPath(dtype='int16')", "[4000]"),
    ("ShortestPath(2**40, dtype='int64')", "[4000]"),
    # One table for all of them would have ten times the entries that are asked for.
    ("ShortestPath()", "[10] * 2000 + [2000]"),
    ("ShortestPath()", "[500, 10, 10] * 40"),
    ("HeatKernel(symmetrize=True)", "[800]"),
    ("HeatKernel((1, 2, 3), symmetrize=True, readout='pair')", "[800]"),
    ("EffectiveResistance(symmetrize=True)", "[800]"),
    ("EffectiveResistance(symmetrize=True, readout='node')", "[800]"),
    ("Electrostatic(symmetrize=True)", "[800]"),
    ("Communicability()", "[800]"),
    ("Communicability(readout='pair')", "[800]"),
    ("RelativeRandomWalk(8)", "[800]"),
    ("RelativeRandomWalk(20, readout='closed')", "[800]"),
    ("SingularVectors(300)", "[800]"),
    ("MagneticLaplacian()", "[800]"),
    ("MagneticLaplacian(400)", "[800]"),
    ("WalkProfile(3, readout='closed')", "[800]"),
    ("WalkProfile(3, readout='pair')", "[800]"),
    *[
        (f"GAPE({states}, damping={damping}, relative=False, readout={readout!r})", "[800]")
        for readout in ("closed", "pair")
        for states, damping in ((8, 0.3), (8, 0.001), (32, 0.3))
    ],
]
PROGRAM = """
import resource, warnings
from dataclasses import replace
import torch
from gape import Graph
from gape.encodings import *

warnings.simplefilter("ignore")
generator = torch.Generator().manual_seed(0)
edges = {{n: torch.randint(n, (8 * n, 2), generator=generator) for n in {sizes}}}
graph = Graph.union(Graph.from_edges(edges[n], num_nodes=n, undirected={undirected}) for n in {sizes})
encoding = {encoding}
replace(encoding, memory=99.0)(sequence_graph("path", 70))  # what libraries load once
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    replace(encoding, memory=1e-6)(graph)
except ValueError as error:
    print(error)
replace(encoding, memory=99.0)(graph)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20)
"""


@pytest.mark.parametrize("encoding", dict.fromkeys(encoding for encoding, _ in CASES))
@pytest.mark.parametrize("undirected", [True, False])
def test_graphs_that_need_more_memory_than_allowed_are_refused(encoding, undirected, monkeypatch):
    # The compiled kernel of random walks takes little memory and has no limit; PyTorch has.
    monkeypatch.setattr(gape.encodings.random_walk, "find_kernel", lambda *_: None)
    graph = random_graph(90, 0.05, 0, undirected=undirected)
    made, matrix = eval(encoding, vars(gape.encodings)), 8 * 90**2 / 2**30
    with pytest.raises(ValueError, match=r"needs .* GiB and memory is limited to"):
        replace(made, memory=(0.4 if "int" in encoding else 1.2) * matrix)(graph)
    replace(made, memory=400 * matrix)(graph)


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "sizes"), CASES)
@pytest.mark.parametrize("undirected", [True, False])
def test_no_more_memory_is_taken_than_is_said(encoding, sizes, undirected):
    program = PROGRAM.format(encoding=encoding, sizes=sizes, undirected=undirected)
    said, taken = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"GAPE_NATIVE": "0"},  # compiled kernels take less, and no limit is needed
    ).stdout.splitlines()
    stated = float(re.search(r"needs (\S+) GiB", said).group(1))
    # 20 MB for buffers of BLAS and the like.
    assert float(taken) < stated + 0.02
    assert stated < 4 * (float(taken) + 0.02)
