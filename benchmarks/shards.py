"""Time ``gape.scale.encode_shards``: graphs per second from files to Parquet, in this process and by worker processes.

Sources: the first molecules of PCQM4Mv2 as SMILES and QM9 as an edge table (repeated under new names up to --graphs
graphs), if $GAPE_DATA has them; synthetic molecules as SMILES. The workers have started before the clock does. Both
are timed --repeats times in turn, and the best counts. Per core: the rate over workers × the rate in this process,
three times: by the clock; by the clock without the time that Linux kept a process waiting because other programs had
the cores; and by the processor seconds that the log states, which do not include waiting.

    python benchmarks/shards.py [--graphs 20000] [--workers 1 2] [--states 32] [--repeats 3] [--million]
"""

import argparse
import csv
import json
import lzma
import os
import random
import resource
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from gape._internal.executors import ProcessPool
from gape.encodings import GAPE
from gape.scale import Reading, encode_shards
from gape.scale.manifest import LOG

PCQM4MV2_GRAPHS = 3_746_620
# Each begins and ends with an atom that has a free valence, so that any sequence of them is a molecule.
FRAGMENTS = ("C", "CC", "O", "N", "C(=O)", "C(=O)N", "C(C)", "C1CCCC1", "c1ccc(cc1)", "C1CCNCC1", "S", "C=C", "C(F)(F)")


def synthetic(path: Path, graphs: int) -> None:
    chance = random.Random(0)
    with open(path, "w") as file:
        file.write("graph,smiles\n")
        for i in range(graphs):
            file.write(f"{i},{''.join(chance.choices(FRAGMENTS, k=chance.randint(4, 9)))}C\n")


def pcqm(folder: Path, path: Path, graphs: int) -> None:
    with lzma.open(folder / "pcqm4mv2" / "pcqm4mv2_first1999.csv.xz", "rt") as file:
        smiles = [row["smiles"] for row in csv.DictReader(file)]
    with open(path, "w") as out:
        out.write("graph,smiles\n")
        out.writelines(f"{i},{smiles[i % len(smiles)]}\n" for i in range(graphs))


def qm9(folder: Path, path: Path, graphs: int) -> None:
    with np.load(folder / "qm9-20k" / "qm9_20k.npz", allow_pickle=False) as file:
        ends, ptr = file["edges"].astype(np.int64), file["edge_ptr"].astype(np.int64)
    sizes = np.diff(ptr)[np.arange(graphs) % (len(ptr) - 1)]
    ends = np.concatenate([ends] * (graphs // (len(ptr) - 1) + 1))[: sizes.sum()]
    columns = {"source": ends[:, 0], "target": ends[:, 1], "graph": np.repeat(np.arange(graphs), sizes)}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def queued(processes: list[int]) -> float:
    """Seconds that processes were ready to run and waited for a core, on average; 0 if the system does not say."""
    files = [Path(f"/proc/{process}/schedstat") for process in processes]
    return sum(int(file.read_text().split()[1]) for file in files if file.exists()) / 1e9 / len(processes)


def measure(source: Path, out: Path, encoding: GAPE, rows: int, pool: ProcessPool | None) -> np.ndarray:
    """Graphs per second: by the clock, by the clock without waiting for a core, by processor time of all shards."""
    # The parent only waits for its workers.
    processes = [os.getpid()] if pool is None else [process.pid for process in pool._processes.values()]
    began, before = time.perf_counter(), queued(processes)
    workers = 0 if pool is None else None
    reading = Reading(undirected=source.suffix == ".parquet")
    result = encode_shards(source, encoding, out, pool, workers=workers, reading=reading, shard_rows=rows)
    seconds, waited = time.perf_counter() - began, queued(processes) - before
    processor = sum(json.loads(line)["cpu_seconds"] for line in (out / LOG).read_text().splitlines())
    shutil.rmtree(out)
    return result.graphs / np.array([seconds, seconds - waited, processor])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=20_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--states", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--million", action="store_true", help="one million synthetic molecules")
    options = parser.parse_args()
    encoding, data = GAPE(states=options.states), os.environ.get("GAPE_DATA")
    titles = ("source", "graphs", "in-process/s", "workers", "graphs/s", "per core", "not waiting", "processor time")
    print("".join(f"{title:>{16 if i else 20}}" for i, title in enumerate(titles)))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        many = 1_000_000 if options.million else options.graphs
        synthetic(folder / "synthetic.csv", many)
        # Shards small enough for every worker to get several.
        sources = [("synthetic, SMILES", folder / "synthetic.csv", max(many // 16, 1))]
        if data:
            pcqm(Path(data), folder / "pcqm.csv", options.graphs)
            qm9(Path(data), folder / "qm9.parquet", options.graphs)
            sources.append(("PCQM4Mv2, SMILES", folder / "pcqm.csv", max(options.graphs // 16, 1)))
            sources.append(("QM9, edges", folder / "qm9.parquet", max(options.graphs * 19 // 16, 1)))
        synthetic(folder / "warm.csv", 64)
        encode_shards(folder / "warm.csv", encoding, folder / "warm", workers=0)
        for name, source, rows in sources:
            graphs = many if "synthetic" in name else options.graphs
            for workers in options.workers:
                alone, shared = np.zeros(3), np.zeros(3)
                with ProcessPool(workers) as pool:
                    encode_shards(folder / "warm.csv", encoding, folder / f"warm-{name}-{workers}", pool, shard_rows=8)
                    for _ in range(options.repeats):
                        alone = np.maximum(alone, measure(source, folder / "out", encoding, rows, None))
                        shared = np.maximum(shared, measure(source, folder / "out", encoding, rows, pool))
                clock, waiting, processor = shared / alone / (workers, workers, 1)
                print(f"{name:>20}{graphs:16,}{alone[0]:16,.0f}{workers:16}{shared[0]:16,.0f}", end="")
                print(f"{clock:16.2f}{waiting:16.2f}{processor:16.2f}", flush=True)
            if "PCQM" in name:
                hours = PCQM4MV2_GRAPHS / shared[2] / 3600
                print(f"{'':20}all {PCQM4MV2_GRAPHS:,}: {hours:.2f} core hours, by processor time of workers")
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 2**20
    print(f"largest process: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
