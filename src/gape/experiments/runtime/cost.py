"""Seconds and peak memory of one encoding on one set of graphs, each in a process of its own.

Seconds are processor time on one thread, of ours and of others: what a core is busy for, whatever else runs. It is
the thread's and not the process's, whose clock Linux updates rarely where it has a limit.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import get_all_start_methods
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from gape._internal.files import replacing
from gape.encodings.registry import make, settings_of
from gape.experiments.runtime.baselines import sample_graphs
from gape.experiments.runtime.workloads import SIZES, Workload, workload
from gape.graph.batching import MemoryLimitError
from gape.graph.graph import Graph

#: Graph sets by name: the three of the runtime table and two large directed graphs.
LARGE_GRAPHS = {"citations": "cit-HepPh", "web": "web-NotreDame"}
WORKLOADS = ("ZINC", "CYCLES", "PATTERN", *LARGE_GRAPHS)
#: PATTERN with fewer graphs than the runtime table has.
_GRAPHS = {"PATTERN": 3000}
#: Graphs encoded at a time, which bounds the memory of pairs of nodes.
GRAPHS_PER_CALL = 1000
_MAX_REPEATS, _MAX_TOTAL_SECONDS = 3, 3.0
_SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Cost:
    """Time and memory of one encoding of one set of graphs.

    Args:
        seconds: the shortest processor time on one thread; ``None`` if there is none.
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
    """Load a shared directed graph, or generate one of the same size where the data is missing."""
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
    return _in_process(_ours, limit_seconds, name, path, limit_gigabytes)


def measure_baseline(
    name: str, work: str, path: Path, *, limit_seconds: float, limit_gigabytes: float
) -> dict[str, Any] | None:
    """Time the reference implementation in another library on a sample; ``None`` if there is none."""
    from gape.experiments.runtime.baselines import baselines

    known = baselines()
    if name not in known:
        return None
    cost = _in_process(_theirs, limit_seconds, name, work, path, limit_gigabytes)
    return {"way": known[name].name, "seconds": cost.seconds, "refused": cost.refused}


def _in_process(work: Callable[..., Cost], limit_seconds: float, *args: Any) -> Cost:
    """Return ``work(*args)``, called in a new process that may use so many seconds of processor time."""
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    context.set_forkserver_preload(["gape.experiments.runtime.baselines", __name__])
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_limited, args=(there, limit_seconds, work, *args), daemon=True)
    process.start()
    there.close()
    try:
        found: Cost = here.recv()
        return found
    except EOFError:
        process.join()
        late = process.exitcode == -signal.SIGXCPU
        return Cost(refused=f"> {limit_seconds:g} s" if late else f"its process ended with code {process.exitcode}")
    finally:
        process.kill()
        process.join()


def _limited(pipe: Connection, limit_seconds: float, work: Callable[..., Cost], *args: Any) -> None:
    """Send what ``work`` returns, on one thread, unless it takes more processor time than the limit."""
    torch.set_num_threads(1)
    with threadpool_limits(1):
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        last = math.ceil(used + limit_seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (last, last + 10))  # SIGXCPU, and SIGKILL if that is ignored
        pipe.send(work(*args))


def _ours(name: str, path: Path, limit_gigabytes: float) -> Cost:
    graph = load_workload(path)
    return _timed(name, fitting_settings(name, graph, limit_gigabytes), graph)


def _theirs(name: str, work: str, path: Path, limit_gigabytes: float) -> Cost:
    from networkx import NetworkXException
    from torch_geometric.utils import to_undirected

    from gape.experiments.runtime.baselines import baselines
    from gape.experiments.runtime.measurement import time_baseline

    # Others check no memory: the system ends them beyond the limit and what torch itself needs.
    resource.setrlimit(resource.RLIMIT_DATA, (int((limit_gigabytes + 2) * (1 << 30)),) * 2)
    graph, baseline = load_workload(path), baselines()[name]
    graphs = Workload(work, "", graph.edge_index, graph.num_nodes, graph.ptr)
    try:
        with warnings.catch_warnings(action="ignore"):
            if work not in LARGE_GRAPHS:
                return Cost(time_baseline(graphs, baseline, _SAMPLE_SECONDS, time.thread_time)[0] * graph.num_graphs)
            (data,) = sample_graphs(graphs, 1)
            if "symmetrize" in fitting_settings(name, graph, limit_gigabytes):
                data.edge_index = to_undirected(data.edge_index, num_nodes=data.num_nodes)
            ready = baseline.prepare(data)
            started = time.thread_time()
            baseline.compute(ready)
            return Cost(time.thread_time() - started)
    except (MemoryError, ValueError, ArithmeticError, RuntimeError, NetworkXException) as error:
        return _refusal(error)


def fitting_settings(name: str, graph: Graph, limit_gigabytes: float) -> dict[str, Any]:
    """Choose settings other than the defaults: the memory limit, ``symmetrize`` if directed, ``radius`` if large."""
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
            while len(times) < _MAX_REPEATS and sum(times) < _MAX_TOTAL_SECONDS:
                fresh = Graph(graph.edge_index, graph.num_nodes, ptr=graph.ptr)  # with nothing cached
                started = _processor_seconds()
                for first in range(0, fresh.num_graphs, GRAPHS_PER_CALL):
                    encoding(fresh.slice(first, min(first + GRAPHS_PER_CALL, fresh.num_graphs)))
                times.append(_processor_seconds() - started)
    except (MemoryError, ValueError, ArithmeticError, RuntimeError) as error:
        return _refusal(error)
    return Cost(min(times), _peak_gigabytes() - before)


def _processor_seconds() -> float:
    """CPU seconds of this thread and its finished children: a factorisation runs in a process of its own."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + children.ru_utime + children.ru_stime


def _peak_gigabytes() -> float:
    """Peak memory in GiB of this process plus its largest child."""
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return peak / (1 << 30 if sys.platform == "darwin" else 1 << 20)


def _refusal(error: Exception) -> Cost:
    """Reduce an error to its reason.

    >>> _refusal(MemoryLimitError("40 graphs would need 9 GiB, more than memory=4; raise memory")).refused
    'memory'
    """
    # PyTorch reports a failed allocation as RuntimeError.
    out_of_memory = isinstance(error, RuntimeError) and "allocate memory" in str(error)
    if isinstance(error, MemoryError | MemoryLimitError) or out_of_memory:
        return Cost(refused="memory")
    return Cost(refused=str(error)[:40])
