"""Seconds and peak memory of one encoding on one set of graphs, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gape._internal.files import replacing
from gape.encodings.registry import make, settings_of
from gape.experiments.runtime.workloads import SIZES, Workload, workload
from gape.graph.graph import Graph

#: Graph sets by name: the three of the runtime table and two large directed graphs.
LARGE_GRAPHS = {"citations": "cit-HepPh", "web": "web-NotreDame"}
WORKLOADS = ("ZINC", "CYCLES", "PATTERN", *LARGE_GRAPHS)
#: PATTERN with fewer graphs than the runtime table has.
_GRAPHS = {"PATTERN": 3000}
_REPEATS, _ENOUGH_SECONDS = 3, 5.0


@dataclass(frozen=True)
class Cost:
    """Time and memory of one encoding of one set of graphs.

    Args:
        seconds: the shortest time; ``None`` if there is none.
        gigabytes: peak memory beyond the graphs.
        refused: why there is no time: a word such as ``memory``, or the error.
    """

    seconds: float | None = None
    gigabytes: float | None = None
    refused: str = ""


def save_workload(name: str, folder: Path, data_dir: Path | None, share: float = 1.0) -> tuple[Path, str]:
    """Write the graphs of a workload to a file, for the processes that encode them; return it and their origin."""
    path = folder / f"{name}.npz"
    if name in LARGE_GRAPHS:
        graph, origin = _large(name, data_dir, share)
    else:
        count = max(20, int(_GRAPHS.get(name, SIZES[name]) * share))
        work = workload(name, data_dir, count)
        graph, origin = work.graph(), f"{count:,} graphs, {work.origin}"
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, edge_index=graph.edge_index.numpy(), ptr=graph.ptr.numpy())
    return path, origin


def load_workload(path: Path) -> Graph:
    """Read what :func:`save_workload` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        ptr = torch.from_numpy(arrays["ptr"])
        return Graph(torch.from_numpy(arrays["edge_index"]), int(ptr[-1]), ptr=ptr)


def _large(name: str, data_dir: Path | None, share: float) -> tuple[Graph, str]:
    """One of the shared directed graphs, or a generated one of the same size where the data is not there."""
    from gape.data.raw_files import data_folder

    folder = data_folder(data_dir)
    path = None if folder is None else folder / "large" / f"{LARGE_GRAPHS[name]}.npz"
    if path is not None and path.is_file() and share == 1.0:
        with np.load(path, allow_pickle=False) as arrays:
            indptr, target = arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int64)
        source = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        return Graph(torch.from_numpy(np.stack([source, target])), len(indptr) - 1), LARGE_GRAPHS[name]
    nodes, edges = (34_546, 421_578) if name == "citations" else (325_729, 1_497_134)
    nodes, edges = max(50, int(nodes * share)), max(200, int(edges * share))
    draw = np.random.default_rng(0)
    # Targets by a power law; citations point backwards in time.
    ends = np.stack([draw.integers(nodes, size=edges), (nodes * draw.random(edges) ** 3).astype(np.int64)])
    ends = ends[:, ends[0] != ends[1]]
    ends = np.unique(np.sort(ends, 0)[::-1] if name == "citations" else ends, axis=1)
    return Graph(torch.from_numpy(np.ascontiguousarray(ends)), nodes), "generated: give --data-dir for the real one"


def measure(name: str, path: Path, *, limit_seconds: float, limit_gigabytes: float) -> Cost:
    """Encode the graphs of a file in a new process, ended after ``limit_seconds``.

    Args:
        name: of the encoding, with its default settings; ``symmetrize`` is set where directed graphs need it.
        path: from :func:`save_workload`.
        limit_seconds: of one encoding.
        limit_gigabytes: given to encodings that have the setting ``memory``.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(there, name, path, limit_gigabytes), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(60):
            return Cost(refused="its process did not start")
        here.recv()  # the graphs are loaded, and the clock starts
        if not here.poll(limit_seconds):
            return Cost(refused=f"> {limit_seconds:g} s")
        found: Cost = here.recv()
        return found
    except EOFError:
        return Cost(refused="its process ended")
    finally:
        process.kill()
        process.join()


def others(name: str, work: str, path: Path) -> dict[str, Any] | None:
    """Seconds that the usual implementation in another library takes, from a sample; ``None`` if there is none."""
    from gape.experiments.runtime.baselines import comparisons
    from gape.experiments.runtime.measurement import time_baseline

    # The runtime table's GAPE is the paper's.
    of_name = {("gape-paper" if one.encoding == "gape" else one.encoding): one for one in reversed(comparisons((32,)))}
    if name not in of_name or work in LARGE_GRAPHS:
        return None
    graph, baseline = load_workload(path), of_name[name].baseline
    graphs = Workload(work, "", graph.edge_index, graph.num_nodes, graph.ptr)
    pace, _ = time_baseline(graphs, baseline, 1.0)
    return {"way": baseline.name, "k": of_name[name].k, "seconds": pace * graph.num_graphs}


def _work(pipe: Connection, name: str, path: Path, limit_gigabytes: float) -> None:
    graph = load_workload(path)
    settings = fitting_settings(name, graph, limit_gigabytes)
    pipe.send("ready")
    pipe.send(_timed(name, settings, graph))


def fitting_settings(name: str, graph: Graph, limit_gigabytes: float) -> dict[str, Any]:
    """Settings other than the defaults: the memory limit, ``symmetrize`` on directed graphs, ``radius`` on large."""
    known = {setting.name for setting in settings_of(name)}
    chosen: dict[str, Any] = {}
    if "memory" in known:
        chosen["memory"] = limit_gigabytes
    if "symmetrize" in known and not graph.undirected:
        chosen["symmetrize"] = True
    if "radius" in known and int(graph.sizes.max()) > 100:
        chosen["radius"] = 1
    return chosen


def _timed(name: str, settings: Mapping[str, Any], graph: Graph) -> Cost:
    encoding = make(name, **settings)
    before, times = _peak_gigabytes(), list[float]()
    try:
        with warnings.catch_warnings(action="ignore"):
            while len(times) < _REPEATS and sum(times) < _ENOUGH_SECONDS:
                fresh = Graph(graph.edge_index, graph.num_nodes, ptr=graph.ptr)  # with nothing cached
                started = time.perf_counter()
                encoding(fresh)
                times.append(time.perf_counter() - started)
    except MemoryError:
        return Cost(refused="memory")
    except (ValueError, ArithmeticError, RuntimeError) as error:
        return Cost(refused=_short(str(error)))
    return Cost(min(times), _peak_gigabytes() - before)


def _peak_gigabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 30 if sys.platform == "darwin" else 1 << 20)


def _short(error: str) -> str:
    """Reduce a refusal to its reason.

    >>> _short("40 graphs would need 9 GiB, more than memory=4; raise memory")
    'memory'
    """
    for word in ("memory", "directed", "label", "node"):
        if word in error:
            return word
    return error[:40]
