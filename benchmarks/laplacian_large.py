"""Eight Laplacian eigenvectors of large undirected graphs, ours and PyG's: processor time, peak memory and accuracy.

    GAPE_DATA=... python benchmarks/laplacian_large.py [--limit 300] [--only random]

Real graphs are made undirected. Each side runs in a process of its own, which ends after ``--limit`` seconds of
processor time ("over"). Accuracy is the largest residual ‖Lx - λx‖ of the returned unit vectors x, with λ = xᵀLx; the
smallest three λ are printed too. PyG returns eigenvectors 2 to 9 of the whole graph, so on graphs of several components
trivial vectors, with λ = 0, are among them; ours leaves them out.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE
from torch_geometric.utils import get_laplacian, to_undirected

from gape import encodings

VECTORS = 8


def real(name: str) -> torch.Tensor:
    with np.load(Path(os.environ["GAPE_DATA"], "large", f"{name}.npz")) as arrays:
        source = np.repeat(np.arange(int(arrays["num_nodes"])), np.diff(arrays["indptr"].astype(np.int64)))
        return torch.from_numpy(np.stack([source, arrays["indices"].astype(np.int64)]))


def grid(side: int) -> torch.Tensor:
    nodes = torch.arange(side * side).reshape(side, side)
    down = torch.stack([nodes[:-1].flatten(), nodes[1:].flatten()])
    return torch.cat([down, torch.stack([nodes[:, :-1].flatten(), nodes[:, 1:].flatten()])], 1)


def random_edges(nodes: int, edges: int) -> torch.Tensor:
    return torch.randint(0, nodes, (2, edges), generator=torch.Generator().manual_seed(0))


GRAPHS = {
    "cit-HepPh": lambda: real("cit-HepPh"),
    "soc-Epinions1": lambda: real("soc-Epinions1"),
    "web-NotreDame": lambda: real("web-NotreDame"),
    "grid 200 × 200": lambda: grid(200),
    "random, 20,000 nodes": lambda: random_edges(20_000, 200_000),
    "random, 100,000 nodes": lambda: random_edges(100_000, 1_000_000),
}


def load(name: str) -> Data:
    edges = GRAPHS[name]()
    edges = edges[:, edges[0] != edges[1]]
    nodes, index = torch.unique(to_undirected(edges), return_inverse=True)
    return Data(edge_index=index, num_nodes=len(nodes))


def processor_seconds() -> float:
    """Processor time of this process and of those that it started and that have ended."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def measure(name: str, side: str, limit: int) -> None:
    """Print one side's seconds and accuracy as JSON; run in a process of its own."""
    torch.set_num_threads(1)
    data = load(name)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + limit, int(time.process_time()) + limit + 5))
    ours = encodings.Laplacian(VECTORS, dtype="float64")
    theirs = AddLaplacianEigenvectorPE(VECTORS, attr_name="pe", is_undirected=True)
    start = processor_seconds()
    found = ours(data) if side == "gape" else theirs(data).pe.double()
    seconds = processor_seconds() - start
    ones = torch.ones(data.num_edges, dtype=torch.float64)
    index, weight = get_laplacian(data.edge_index, ones, normalization="sym", num_nodes=data.num_nodes)
    shape = (data.num_nodes, data.num_nodes)
    matrix = scipy.sparse.csr_array((weight.numpy(), tuple(index.numpy())), shape=shape)
    vectors = found.numpy() / np.linalg.norm(found.numpy(), axis=0)
    values = (vectors * (matrix @ vectors)).sum(0)
    residual = float(np.linalg.norm(matrix @ vectors - values * vectors, axis=0).max())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "residual": residual, "values": sorted(values.tolist()), "peak": peak}))


def run(name: str, side: str, limit: int) -> dict | str:
    """Return what :func:`measure` prints, or why it did not end."""
    command = [sys.executable, __file__, "--measure", name, side, "--limit", str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGXCPU:
        return f"over {limit}"
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.stderr.splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=300, help="seconds of processor time per side and graph")
    parser.add_argument("--only", default="", help="graphs whose name contains this")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        measure(*chosen.measure, chosen.limit)
        return
    print("| graph | | seconds | residual | λ | GiB |\n| --- | --- | ---: | ---: | --- | ---: |")
    for name in GRAPHS:
        for side in ("gape", "PyG") if chosen.only in name else ():
            found = run(name, side, chosen.limit)
            shown = f"{found} | | | |"
            if isinstance(found, dict):
                values = ", ".join(f"{value:.2g}" for value in found["values"][:3])
                shown = f"{found['seconds']:.2f} | {found['residual']:.0e} | {values}, … | {found['peak']:.1f} |"
            print(f"| {name} | {side} | {shown}", flush=True)


if __name__ == "__main__":
    main()
