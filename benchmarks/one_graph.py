"""Time one graph on disk: generated R-MAT graphs of 10⁶ to 10⁹ edges, sorted externally and encoded block by block.

For every size, in a process of its own:
- sort: processor time per edge to draw the edges and sort them into a graph on disk;
- product: edge-steps per second and core of one product of the adjacency matrix with a vector, beside SciPy's on the
  same matrix (with float64 values, as SciPy needs them) and the memory bandwidth of a plain sum; best of several;
- encode: processor time per edge of GAPE with k states on the random-walk matrix, from the graph on disk to the file of
  encodings, with its residual;
- peak memory: anonymous pages, sampled, and the whole resident set, which includes mapped pages of the graph.

Processor times (user + system) are of all threads, so they hardly depend on what else the machine does, but shared
caches and memory do. Needs 30 bytes of disk per edge in FOLDER; what is written there is deleted.

    python benchmarks/one_graph.py FOLDER [--edges 1e6 1e7 1e8] [--states 32] [--shuffle] [--vectors float64]
"""

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import scipy.sparse

from gape.encodings import GAPE
from gape.scale import RMAT, DiskGraph, build, encode_large
from gape.scale.walk import RowProduct

# Larger matrices are not repeated in SciPy's form: 12 bytes per edge beside the graph.
MAX_SCIPY_EDGES = 300_000_000


class Memory:
    """The largest anonymous memory of this process, in GiB, sampled."""

    def __init__(self) -> None:
        self.peak, self._ended = 0.0, threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            with open("/proc/self/status") as file:
                found = next((line for line in file if line.startswith("RssAnon")), "RssAnon: 0 kB")
            self.peak = max(self.peak, int(found.split()[1]) / 2**20)


def best(repeats: int, work: object) -> float:
    """The least processor time of a call."""
    found = math.inf
    for _ in range(repeats):
        start = time.process_time()
        work()  # type: ignore[operator]
        found = min(found, time.process_time() - start)
    return found


def sort(folder: Path, graph: RMAT) -> dict[str, float]:
    memory, start = Memory(), time.process_time()
    build(graph, folder)
    return {"seconds": time.process_time() - start, "anonymous": memory.peak}


def product(folder: Path, _: RMAT) -> dict[str, float]:
    graph = DiskGraph.open(folder)
    repeats = max(3, min(50, int(3e8 // graph.edges)))
    x, out = np.ones((graph.nodes, 1)), np.empty((graph.nodes, 1))
    multiply = RowProduct(graph, 0, graph.nodes, threads=1)
    multiply(x, out)  # reads the file
    found = {"ours": graph.edges / best(repeats, lambda: multiply(x, out))}
    narrow, narrow_out = x.astype(np.float32), out.astype(np.float32)
    found["float32"] = graph.edges / best(repeats, lambda: multiply(narrow, narrow_out))
    if graph.edges <= MAX_SCIPY_EDGES:
        shape = (graph.nodes, graph.nodes)
        offsets = np.array(graph.offsets, dtype=np.int32)
        matrix = scipy.sparse.csr_array((np.ones(graph.edges), np.array(graph.columns), offsets), shape=shape)
        y = x[:, 0]
        found["scipy"] = graph.edges / best(repeats, lambda: matrix @ y)
        assert np.allclose(matrix @ y, out[:, 0])
    plain = np.ones(1 << 26)
    found["bandwidth"] = plain.nbytes / best(10, plain.sum)
    return found


def encode(folder: Path, _: RMAT, states: int, vectors: str) -> dict[str, float]:
    memory, start = Memory(), time.process_time()
    encoding = GAPE(states, 0.02, matrix="random_walk", relative=False)
    result = encode_large(folder, encoding, folder / "pe.npy", vectors=vectors, threads=1)
    seconds = time.process_time() - start
    (folder / "pe.npy").unlink()
    return {
        "seconds": seconds,
        "steps": result.steps,
        "residual": result.residual,
        "anonymous": memory.peak,
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def alone(stage: str, folder: Path, options: argparse.Namespace, edges: int) -> dict[str, float]:
    """Run one stage in a process of its own, with one thread."""
    words = [str(folder), "--stage", stage, "--edges", str(edges), "--states", str(options.states)]
    words += ["--vectors", options.vectors, *(["--shuffle"] if options.shuffle else [])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, __file__, *words], env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--edges", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    parser.add_argument("--states", type=int, default=32)
    parser.add_argument("--shuffle", action="store_true", help="renumber the nodes at random")
    parser.add_argument("--vectors", choices=["float64", "float32"], default="float64")
    parser.add_argument("--stage", choices=["sort", "product", "encode"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        edges = int(options.edges[0])
        graph = RMAT(round(math.log2(edges / 16)), edges, shuffle=options.shuffle)
        if options.stage == "encode":
            print(json.dumps(encode(options.folder, graph, options.states, options.vectors)))
        else:
            print(json.dumps({"sort": sort, "product": product}[options.stage](options.folder, graph)))
        return
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; k = {options.states}, {options.vectors}")
    headings = (
        "edges nodes sort-ns/edge M-edges/s/core float32 SciPy sum-GB/s encode-ns/edge steps residual anon-GiB RSS-GiB"
    )
    print("  ".join(f"{name:>10}" for name in headings.split()), flush=True)
    for edges in map(int, options.edges):
        folder = options.folder / f"one-graph-{edges}"
        try:
            sorted_ = alone("sort", folder, options, edges)
            speed = alone("product", folder, options, edges)
            encoded = alone("encode", folder, options, edges)
            nodes = DiskGraph.open(folder).nodes
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        cells = [
            f"{edges:.0e}",
            str(nodes),
            f"{sorted_['seconds'] / edges * 1e9:.0f}",
            f"{speed['ours'] / 1e6:.0f}",
            f"{speed['float32'] / 1e6:.0f}",
            f"{speed['scipy'] / 1e6:.0f}" if "scipy" in speed else "-",
            f"{speed['bandwidth'] / 1e9:.1f}",
            f"{encoded['seconds'] / edges * 1e9:.0f}",
            f"{encoded['steps']:.0f}",
            f"{encoded['residual']:.0e}",
            f"{max(encoded['anonymous'], sorted_['anonymous']):.2f}",
            f"{encoded['resident']:.2f}",
        ]
        print("  ".join(f"{cell:>10}" for cell in cells), flush=True)
    print(f"load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
