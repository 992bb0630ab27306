"""What a refusal says would be needed is what is needed, at most."""

import re
import subprocess
import sys

import pytest

CASES = [
    ("RandomWalk()", 2300),
    ("RandomWalk(dtype='float64')", 2300),
    ("PageRank()", 2300),
    ("PageRankPowers(3)", 2300),
    ("ShortestPath()", 4000),
    *[
        (f"GAPE({states}, damping={damping}, readout={readout!r})", 800)
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
edges = torch.randint({nodes}, (8 * {nodes}, 2), generator=torch.Generator().manual_seed(0))
encoding, graph = {encoding}, Graph.from_edges(edges, num_nodes={nodes}, undirected={undirected})
replace(encoding, memory=99.0)(sequence_graph("path", 70))  # what libraries load once
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    replace(encoding, memory=1e-6)(graph)
except ValueError as error:
    print(error)
replace(encoding, memory=99.0)(graph)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "nodes"), CASES)
@pytest.mark.parametrize("undirected", [True, False])
def test_no_more_memory_is_taken_than_is_said(encoding, nodes, undirected):
    program = PROGRAM.format(encoding=encoding, nodes=nodes, undirected=undirected)
    said, taken = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    stated = float(re.search(r"needs (\S+) GiB", said).group(1))
    # 20 MB for buffers of BLAS and the like.
    assert float(taken) < stated + 0.02
    assert stated < 4 * (float(taken) + 0.02)
