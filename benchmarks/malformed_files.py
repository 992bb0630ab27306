"""Damage graph files of every format in many ways, and check that `gape encode` reads or refuses each one cleanly.

    python benchmarks/malformed_files.py --cases 10000 --seed 0

Every case is one small valid file with one or two damages: bytes flipped, cut, repeated or inserted, numbers replaced
by huge, negative or non-finite ones, lines dropped, swapped or joined. It is read and encoded in another process,
limited to 2 GiB more memory than it starts with and 10 seconds of processor time. A case passes if the command ends
with success or with one line of error, and leaves no file but a complete output. Failing files are kept in --keep.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gzip
import io
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

SECONDS, MEMORY = 10, 2 << 30
EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)]
NUMBERS = [
    b"-1",
    b"0",
    b"1e308",
    b"-1e400",
    b"nan",
    b"inf",
    b"9223372036854775807",
    b"99999999999999999999",
    b"4e9",
    b"0x10",
    b"1.5",
]
WORDS = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b'"',
    b"\n",
    b"\r",
    b"{",
    b"<",
    b"]]>",
    b"a" * 100_000,
    "é".encode(),
    b"#",
    b"%%",
]


def samples(folder: Path) -> dict[str, bytes]:
    """One small valid file per format, by name."""
    import networkx as nx
    import numpy as np
    import pyarrow
    import pyarrow.parquet
    import scipy.io
    import scipy.sparse
    import torch
    from torch_geometric.data import Data

    text = "source,target,weight,graph\n" + "".join(f"{u},{v},{u + 0.5},{u // 3}\n" for u, v in EDGES)
    words = "# a comment\n" + "".join(f"{u}\t{v}\n" for u, v in EDGES)
    graph = nx.Graph(EDGES)
    nx.set_edge_attributes(graph, 2.5, "weight")
    matrix = scipy.sparse.coo_array((np.ones(6), tuple(np.array(EDGES).T)), shape=(5, 5)).tocsr()
    nx.write_graphml(graph, folder / "a.graphml")
    nx.write_gml(graph, folder / "a.gml")
    nx.write_edgelist(graph, folder / "a.edgelist")
    scipy.sparse.save_npz(folder / "a.npz", matrix)
    np.savez(folder / "csr.npz", indptr=matrix.indptr, indices=matrix.indices)
    scipy.io.mmwrite(folder / "a.mtx", matrix)
    edges = torch.tensor(EDGES).T
    torch.save([Data(edge_index=edges, num_nodes=5), Data(edge_index=edges, num_nodes=6)], folder / "a.pt")
    columns = {"source": [u for u, _ in EDGES], "target": [v for _, v in EDGES], "weight": [1.0] * 6}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "a.parquet")
    found = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    return found | {
        "a.csv": text.encode(),
        "a.tsv": text.replace(",", "\t").encode(),
        "b.csv": text.replace(",", ";").encode(),
        "a.txt": words.encode(),
        "a.csv.gz": gzip.compress(text.encode(), mtime=0),
        "smiles.csv": b"smiles,graph\nCCO,a\nc1ccccc1,b\nCC(=O)O,c\n",
    }


def damage(content: bytes, draw: random.Random) -> bytes:
    """Damage a file in one way."""
    size = max(1, len(content))
    at, length = draw.randrange(size), draw.choice([1, 2, 4, 16, 64])
    lines = content.split(b"\n")
    ways: list[Callable[[], bytes]] = [
        lambda: content[:at],
        lambda: content[:at] + bytes([draw.randrange(256)]) + content[at + 1 :],
        lambda: content[:at] + content[at + length :],
        lambda: content[:at] + content[at : at + length] * draw.choice([2, 3, 50]) + content[at + length :],
        lambda: content[:at] + draw.choice(WORDS) + content[at:],
        lambda: content[:at] + draw.randbytes(length) + content[at + length :],
        lambda: replaced_number(content, draw),
        lambda: b"\n".join(line for i, line in enumerate(lines) if i != at % len(lines)),
        lambda: b"\n".join(draw.sample(lines, len(lines))),
        lambda: content[:at] + (draw.randrange(2**32)).to_bytes(4, "little") + content[at + 4 :],
    ]
    return draw.choice(ways)()


def replaced_number(content: bytes, draw: random.Random) -> bytes:
    found = list(re.finditer(rb"\d+(\.\d+)?", content))
    if not found:
        return content + draw.choice(NUMBERS)
    number = draw.choice(found)
    return content[: number.start()] + draw.choice(NUMBERS) + content[number.end() :]


def case(files: dict[str, bytes], seed: int) -> tuple[str, bytes]:
    """Name and content of one damaged file."""
    draw = random.Random(seed)
    name = draw.choice(sorted(files))
    content = damage(files[name], draw)
    return name, damage(content, draw) if draw.random() < 0.3 else content


def problem(folder: Path, name: str, content: bytes) -> str:
    """What is wrong with how `gape encode` treats a file; empty if nothing is."""
    from gape.cli import main

    for path in folder.iterdir():
        path.unlink()
    (folder / name).write_bytes(content)
    started, out, err = time.process_time(), io.StringIO(), io.StringIO()
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            main(
                ["encode", str(folder / name), "-e", "rw", "--length", "3", "-o", str(folder / "pe.npz"), "--no-cache"]
            )
    except SystemExit as end:
        code = end.code or 0
    except BaseException as error:  # noqa: BLE001 - whatever comes out of the command is the finding
        return f"{type(error).__name__}: {error}"[:300]
    if time.process_time() - started > SECONDS:
        return f"took {time.process_time() - started:.1f} s"
    left = {path.name for path in folder.iterdir()} - {name}
    if code == 0:
        return "" if left == {"pe.npz"} else f"success, and the folder has {sorted(left)}"
    if left:
        return f"failure leaves {sorted(left)}"
    said = err.getvalue()
    if code != 2 or not said.startswith("gape: ") or "Traceback" in said:
        return f"exit code {code}, {said[:300]!r}"
    return ""


def work(cases: Connection, files: dict[str, bytes], folder: Path) -> None:
    """Serve cases by seed until there are no more."""
    import gape.cli.app  # noqa: F401 - loaded before memory is limited

    for name, content in files.items():
        if found := problem(folder, name, content):
            raise SystemExit(f"{name} is not damaged and yet: {found}")
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))

    def too_long(*_: object) -> None:
        raise TimeoutError(f"took more than {SECONDS} s")

    signal.signal(signal.SIGPROF, too_long)
    while True:
        seed = cases.recv()
        if seed is None:
            return
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        found = problem(folder, *case(files, seed))
        signal.setitimer(signal.ITIMER_PROF, 0)
        cases.send(found)


@contextlib.contextmanager
def worker(files: dict[str, bytes], folder: Path) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, files, folder), daemon=True)
    process.start()
    there.close()
    try:
        yield here
    finally:
        process.kill()
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files that fail")
    arguments = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    passed: collections.Counter[str] = collections.Counter()
    failed: list[tuple[int, str, str]] = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as scratch:
        files = samples(Path(made))
        seeds = iter(range(arguments.seed, arguments.seed + arguments.cases))
        seed = next(seeds, None)
        while seed is not None:
            with worker(files, Path(scratch)) as pipe:
                while seed is not None:
                    name = case(files, seed)[0]
                    try:
                        pipe.send(seed)
                        # A second at a time, so that time for which all of us are stopped does not count.
                        answered = any(pipe.poll(1) for _ in range(20 * SECONDS))
                        found = pipe.recv() if answered else "hangs"
                    except (EOFError, BrokenPipeError):
                        found = "its process ended"
                    if found:
                        failed.append((seed, name, found))
                        print(f"seed {seed}, {name}: {found}", flush=True)
                        if arguments.keep:
                            arguments.keep.mkdir(parents=True, exist_ok=True)
                            (arguments.keep / f"{seed}-{name}").write_bytes(case(files, seed)[1])
                    else:
                        passed[name] += 1
                    seed = next(seeds, None)
                    if found in ("hangs", "its process ended"):
                        break
    for name, count in sorted(passed.items()):
        print(f"{name:12} {count:6,} of {count + sum(other == name for _, other, _ in failed):6,} damaged files")
    total = sum(passed.values())
    print(f"{total:,} of {total + len(failed):,} in {time.monotonic() - started:.0f} s")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
