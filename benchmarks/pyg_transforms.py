"""Processor time of transforms on ZINC, one graph at a time and in batches, ours and PyG's in one run.

    GAPE_DATA=... python benchmarks/pyg_transforms.py [--graphs 1000] [--repeats 5]

One at a time is what ``transform=`` and ``pre_transform=`` see. In batches: ours ``.over`` a list of ``Data``, PyG's
again one by one, because its transforms take no batches. One thread. Times are per graph, in milliseconds of processor
time, mean and best of the repeats; a ratio above 1 means that ours is faster, by best times.
"""

import argparse
import time
from collections.abc import Callable
from statistics import mean
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE

from gape.data import load
from gape.pyg import AddGAPE, AddLaplacian, AddRandomWalk

PAIRS: dict[str, tuple[Any, Any]] = {
    "RW, 20 steps": (AddRandomWalk(20), AddRandomWalkPE(20)),
    "LAPE, 8 vectors": (AddLaplacian(8), AddLaplacianEigenvectorPE(8, is_undirected=True)),
    "GAPE, 32 states": (AddGAPE(32), None),
}


def one_by_one(transform: Any, graphs: list[Data]) -> None:
    for data in graphs:
        transform(data)


def milliseconds(work: Callable[[Any, list[Data]], Any], transform: Any, graphs: list[Data]) -> float:
    start = time.process_time()
    work(transform, graphs)
    return (time.process_time() - start) / len(graphs) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    threadpool_limits(1)  # BLAS: waiting threads would count as processor time, PyG's and ours
    dataset = load("zinc")
    graphs = [dataset[i] for i in range(chosen.graphs)]
    print("| transform | | gape, mean (best) | PyG, mean (best) | ratio |\n| --- | --- | ---: | ---: | ---: |")
    for name, (ours, theirs) in PAIRS.items():
        for how, work in (("one by one", one_by_one), ("a list", lambda transform, graphs: transform.over(graphs))):
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(chosen.repeats):
                times[0].append(milliseconds(work, ours, graphs))
                if theirs is not None:
                    times[1].append(milliseconds(one_by_one, theirs, graphs))
            cells = [f"{mean(side):.3f} ms ({min(side):.3f})" if side else "" for side in times]
            ratio = f"{min(times[1]) / min(times[0]):.1f}×" if times[1] else ""
            print(f"| {name} | {how} | {cells[0]} | {cells[1]} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
