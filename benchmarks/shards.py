"""Time ``gape.scale.encode_shards``: graphs per second from files to Parquet, in this process and by worker processes.

Sources: the first molecules of PCQM4Mv2 as SMILES and QM9 as an edge table (repeated under new names up to --graphs
graphs), if $GAPE_DATA has them; synthetic molecules as SMILES. The workers have started before the clock does. Per
core: the rate over workers × the rate in this process, by the clock; by processor time: the same with the processor
seconds that the log states, which other programs on the machine disturb less.

    python benchmarks/shards.py [--graphs 20000] [--workers 1 2] [--states 32] [--million]
"""

import argparse
import csv
import json
import lzma
import os
import random
import resource
import tempfile
import time
from concurrent.futures import Executor
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


def measure(source: Path, out: Path, encoding: GAPE, rows: int, executor: Executor | None) -> tuple[int, float, float]:
    """Graphs, seconds by the clock and processor seconds of all shards."""
    began = time.perf_counter()
    workers = 0 if executor is None else None
    reading = Reading(undirected=source.suffix == ".parquet")
    result = encode_shards(source, encoding, out, executor, workers=workers, reading=reading, shard_rows=rows)
    seconds = time.perf_counter() - began
    processor = sum(json.loads(line)["cpu_seconds"] for line in (out / LOG).read_text().splitlines())
    return result.graphs, seconds, processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=20_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--states", type=int, default=32)
    parser.add_argument("--million", action="store_true", help="one million synthetic molecules")
    options = parser.parse_args()
    encoding, data = GAPE(states=options.states), os.environ.get("GAPE_DATA")
    print(f"{'source':24} {'graphs':>9} {'workers':>10} {'graphs/s':>9} {'per core':>9} {'by processor time':>18}")
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
            graphs, seconds, processor = measure(source, folder / f"{name}-0", encoding, rows, None)
            alone, alone_processor = graphs / seconds, graphs / processor
            print(f"{name:24} {graphs:9,} {'in-process':>10} {alone:9,.0f}", flush=True)
            for workers in options.workers:
                with ProcessPool(workers) as pool:
                    encode_shards(folder / "warm.csv", encoding, folder / f"warm-{name}-{workers}", pool, shard_rows=8)
                    graphs, seconds, processor = measure(source, folder / f"{name}-{workers}", encoding, rows, pool)
                print(
                    f"{'':24} {'':9} {workers:10} {graphs / seconds:9,.0f} {graphs / seconds / workers / alone:9.2f} "
                    f"{graphs / processor / alone_processor:18.2f}",
                    flush=True,
                )
            if "PCQM" in name:
                print(f"{'':24} all {PCQM4MV2_GRAPHS:,}: {PCQM4MV2_GRAPHS / alone / 3600:.2f} core hours")
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 2**20
    print(f"largest process: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
