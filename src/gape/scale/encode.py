"""Encode one graph on disk."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gape._internal.files import check_free_space, check_writable, folder_lock, replacing
from gape._internal.validation import check_one_of
from gape.encodings.gape import GAPE
from gape.scale.build import Progress
from gape.scale.disk_graph import DiskGraph
from gape.scale.encodings import NAMES, Katz, LargeEncoding, PersonalisedPageRank, ReturnEstimate, large_encoding
from gape.scale.radius import spectral_radius
from gape.scale.ranks import Ranks, ranks
from gape.scale.walk import SplitWalk
from gape.scale.walk_sum import WalkSum, estimate_returns, walk_sum_bytes
from gape.scale.workspace import RowFile, Workspace

OUTPUTS = (".npy", ".parquet")
# Columns carried side by side by estimates, and bytes of their vectors above which they go one by one.
SAMPLE_COLUMNS, MAX_SAMPLE_BYTES = 8, 1 << 30
MAX_STEPS = 10_000


@dataclass(frozen=True)
class LargeResult:
    """The files written, and their certificate.

    Args:
        path: the encoding, ``[nodes, features]``.
        errors: standard errors of estimates, ``[nodes, features]``; ``None`` for exact encodings and in parquet files,
            where they are columns.
        nodes, features: the shape.
        edge_steps: edges times columns times steps that walks were carried.
        steps: terms of the sum over runs, or samples.
        residual: relative residual ‖P - μᵀPA - αℓ‖ / ‖αℓ‖, an upper bound, before P is rounded to the encoding's dtype;
            NaN for estimates.
        spectral_radius: upper bound of ρ(μ)ρ(A), below 1: the weights are the sum over all runs. NaN for estimates.
        largest_error: the largest standard error; 0 for exact encodings.
    """

    path: Path
    errors: Path | None
    nodes: int
    features: int
    edge_steps: int
    steps: int
    residual: float
    spectral_radius: float
    largest_error: float = 0.0


def encode_large(
    graph: DiskGraph | str | os.PathLike[str],
    encoding: LargeEncoding | str,
    out: str | os.PathLike[str],
    *,
    tolerance: float = 1e-12,
    vectors: Literal["float64", "float32"] = "float64",
    threads: int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> LargeResult:
    """Encode a graph on disk block by block; resumes where an interrupted call with the same arguments ended.

    Started by ``torchrun``, the processes share the work: each holds the vectors and its rows of the graph, and only
    the walk counts are exchanged. All of them need the folder of the graph and that of ``out``, on a shared disk if
    they are on several machines.

    Args:
        graph: from :func:`build`, or its folder.
        encoding: :class:`gape.encodings.GAPE` with readout "node", :class:`Katz`, :class:`PersonalisedPageRank`,
            :class:`ReturnEstimate`, or a name: gape, katz, ppr, rw.
        out: ``.npy`` or ``.parquet`` file. Standard errors of estimates go to ``….error.npy``, or to columns.
        tolerance: relative residual at which the sum over runs ends. With ``vectors="float32"`` the residual of the
            result is larger, by a bound of the rounding of the walk counts.
        vectors: type of the walk counts. With float32, half the memory and about six digits; sums are in float64.
        threads: of each process; ``None`` for PyTorch's.
        progress: called with the stage, how much of it is done, and how much there is (``None`` if not known).
        settings: of an encoding given by name.

    Example:
        >>> import tempfile
        >>> from gape.scale import RMAT, build
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graph = build(RMAT(scale=8, edges=1000), Path(folder, "graph"))
        ...     result = encode_large(graph, "gape", Path(folder, "pe.npy"), states=4, matrix="random_walk")
        ...     np.load(result.path).shape, result.residual < 1e-12
        ((256, 4), True)
    """
    graph = graph if isinstance(graph, DiskGraph) else DiskGraph.open(Path(graph))
    if isinstance(encoding, str):
        encoding = large_encoding(encoding, **settings)
    elif settings:
        raise ValueError(f"settings belong to an encoding given by name; got {settings} beside {encoding!r}")
    check_one_of(("float64", "float32"), vectors=vectors)
    out = Path(out)
    check_large_output(out)
    report = progress or (lambda *_: None)
    with ranks() as processes:
        work = _Encode(graph, encoding, out, tolerance, vectors, threads, report, processes)
        if not processes.first:
            return work.run()
        # One computation at a time in a folder; the other ranks belong to it.
        with folder_lock(graph.folder):
            return work.run()


def check_large_output(out: Path) -> None:
    """Raise if an encoding could not be written to ``out``."""
    if out.suffix not in OUTPUTS:
        raise ValueError(f"{out}: encodings of graphs on disk are written as {' or '.join(OUTPUTS)} files")
    check_writable(out)


@dataclass(frozen=True)
class _Problem:
    """X = Σ_t W_t C_t: W_0 by labels of nodes, C_0 ``[m, k]``, μ ``[k, k]``, and the walk matrix."""

    matrix: str
    initial: NDArray[np.float64]
    transition: NDArray[np.float64]
    relative: bool = False
    labels: Literal["one", "degree", "sources"] = "one"
    normalise: bool = False


class _Encode:
    def __init__(
        self,
        graph: DiskGraph,
        encoding: LargeEncoding,
        out: Path,
        tolerance: float,
        vectors: str,
        threads: int | None,
        progress: Progress,
        processes: Ranks,
    ) -> None:
        self.graph, self.encoding, self.out, self.tolerance = graph, encoding, out, tolerance
        self.vectors, self.threads, self.ranks = vectors, threads, processes
        self.progress: Progress = progress if processes.first else (lambda *_: None)
        self.name = next((name for name, kind in NAMES.items() if isinstance(encoding, kind)), "gape")
        self.dtype = str(encoding.dtype).removeprefix("torch.")
        self.settings = f"{encoding!r}, tolerance={tolerance}, vectors={vectors}"

    def run(self) -> LargeResult:
        if isinstance(self.encoding, ReturnEstimate):
            return self._estimate(self.encoding)
        problem = self._problem()
        m, k = problem.initial.shape
        scale, radius = self._checked_scale(problem)
        workspace = Workspace(self.graph.folder, self.settings, self.ranks)
        if not workspace.state:
            self._check_space(workspace, m, k, radius)
        walk = self._walk(problem.matrix, m)
        start = self._start(walk, problem)
        counts = walk.ranks.sum(*start.sum(0, dtype=np.float64))
        norm = math.sqrt(float(np.array(counts) @ np.square(problem.initial).sum(1)))
        total = WalkSum(
            walk,
            workspace,
            problem.initial,
            problem.transition * scale,
            normalise=problem.normalise,
            counts=problem.labels != "sources",
            progress=self.progress,
        )
        found = total.run(start, norm, self.tolerance, MAX_STEPS)
        if not found.converged:
            raise ArithmeticError(
                f"the sum over runs has a residual of {found.residual:.1e} after {found.steps} steps, and ρ(μ)ρ(A) is "
                f"at most {total.radius * found.radius_bound:.6g}; lower the damping"
            )
        out = RowFile(self._array_path(self.out), (self.graph.nodes, k), self.dtype, self.ranks)
        total.write(out)
        self._finish([out])
        workspace.delete()
        return LargeResult(
            path=self.out,
            errors=None,
            nodes=self.graph.nodes,
            features=k,
            edge_steps=walk.steps * m * self.graph.edges,
            steps=found.steps,
            residual=found.residual,
            spectral_radius=total.radius * found.radius_bound,
        )

    def _walk(self, matrix: str, columns: int, dtype: str | None = None) -> SplitWalk:
        return SplitWalk(
            self.graph, matrix, self.ranks, columns=columns, dtype=dtype or self.vectors, threads=self.threads
        )

    # ------------------------------------------------------------------ the equation

    def _problem(self) -> _Problem:
        encoding = self.encoding
        if isinstance(encoding, Katz):
            one = np.ones((1, 1))
            return _Problem("adjacency", one, encoding.beta * one, encoding.relative)
        if isinstance(encoding, PersonalisedPageRank):
            eye = np.eye(len(encoding.sources))
            restart = encoding.dangling == "restart"
            return _Problem(
                "random_walk", encoding.beta * eye, (1 - encoding.beta) * eye, labels="sources", normalise=restart
            )
        assert isinstance(encoding, GAPE)
        for setting, allowed in {
            "readout": ("node",),
            "labelling": ("one", "degree"),
            "initial": ("normal", "orthogonal", "softmax_states"),
        }.items():
            value = getattr(encoding, setting)
            if value not in allowed:
                raise ValueError(
                    f"{setting}={value!r} is not available for graphs on disk; there it is one of {', '.join(allowed)}"
                )
        automaton = encoding.automaton
        return _Problem(
            encoding.matrix,
            automaton.initial.numpy().T.copy(),
            automaton.transition.numpy(),
            encoding.relative,
            "degree" if encoding.labelling == "degree" else "one",
        )

    def _check_space(self, workspace: Workspace, m: int, k: int, radius: float) -> None:
        """Raise on every rank if the disks cannot hold the walk counts, partial sums and the encoding.

        Args:
            workspace: deleted in that case.
            m: columns of the walk counts.
            k: columns of the encoding.
            radius: ρ(μ)ρ(A), or a bound, from which follows how many steps there will be.
        """
        steps = math.log(self.tolerance) / math.log(radius) if 0 < radius < 1 and self.tolerance > 0 else 1
        error: OSError | None = None
        if self.ranks.first:
            files = [(self.graph.folder, walk_sum_bytes(steps, self.graph.nodes, m, k, np.dtype(self.vectors)))]
            copies = 2 if self.out.suffix == ".parquet" else 1
            files.append((self.out.absolute().parent, copies * self.graph.nodes * k * np.dtype(self.dtype).itemsize))
            if os.stat(files[0][0]).st_dev == os.stat(files[1][0]).st_dev:
                files = [(files[0][0], files[0][1] + files[1][1])]
            try:
                for folder, needed in files:
                    check_free_space(folder, needed, f"encoding {self.graph.nodes:,} nodes with {k} columns")
            except OSError as found:
                error = found
        error = self.ranks.agree(error)
        if error is not None:
            workspace.delete()
            raise error

    def _checked_scale(self, problem: _Problem) -> tuple[float, float]:
        """Return the factor of the transition and a bound of ρ(μ)ρ(A), after proving that it is below 1, or refuse."""
        mu = float(np.abs(np.linalg.eigvals(problem.transition)).max(initial=0.0))
        walk = self._walk(problem.matrix, 1, "float64")
        if not problem.relative and mu * walk.norm_bound() < 1:
            return 1.0, mu * walk.norm_bound()
        if problem.relative and mu >= 1:
            raise ValueError(f"the sum over runs diverges: a relative damping must be below 1, got {mu:g}")
        radius = self._radius(walk)
        if problem.relative:
            return (1.0 / radius, mu) if radius > 0 else (1.0, 0.0)
        if mu * radius >= 1:
            raise ValueError(
                f"the sum over runs diverges: ρ(μ) = {mu:g} times ρ(A) = {radius:.6g} is {mu * radius:.3g}, not "
                "below 1. Make the damping a fraction of 1/ρ(A) (relative=True, --relative), walk on the random-walk "
                f"matrix (matrix='random_walk'), or take a damping below {1 / radius:.3g}"
            )
        return 1.0, mu * radius

    def _radius(self, walk: SplitWalk) -> float:
        """Find ρ(A), or read it where an earlier call left it."""
        kept = Workspace(self.graph.folder, f"radius of {walk.matrix}", self.ranks, "radius")
        if "radius" not in kept.state:
            kept.commit(radius=spectral_radius(walk, self.progress))
        return float(kept.state["radius"])

    def _start(self, walk: SplitWalk, problem: _Problem) -> NDArray[Any]:
        """This rank's rows of W_0, ``[rows, m]``: one-hot labels."""
        start = np.zeros((walk.rows, walk.columns), dtype=walk.dtype)
        if problem.labels == "sources":
            assert isinstance(self.encoding, PersonalisedPageRank)
            for column, node in enumerate(self._numbers(self.encoding.sources)):
                if walk.first <= node < walk.last:
                    start[node - walk.first, column] = 1.0
        elif problem.labels == "degree":
            edges = np.diff(self.graph.offsets[walk.first : walk.last + 1])
            start[np.arange(walk.rows), np.minimum(edges, walk.columns - 1)] = 1.0
        else:
            start[:] = 1.0
        return start

    def _numbers(self, ids: Iterable[Any]) -> list[int]:
        """Map ids of the edge file to rows."""
        found = []
        names = self.graph.names
        for node in map(int, ids):
            row = node if names is None else int(np.searchsorted(names, node))
            if not 0 <= row < self.graph.nodes or (names is not None and names[row] != node):
                raise ValueError(f"sources: there is no node {node} in {self.graph}")
            found.append(row)
        return found

    # ------------------------------------------------------------------ estimates

    def _estimate(self, encoding: ReturnEstimate) -> LargeResult:
        graph = self.graph
        wide = graph.nodes * 8 * SAMPLE_COLUMNS * (encoding.length // 2 + 3) <= MAX_SAMPLE_BYTES
        walk = self._walk("symmetric" if graph.undirected else "random_walk", SAMPLE_COLUMNS if wide else 1, "float64")
        workspace = Workspace(graph.folder, self.settings, self.ranks)
        shape = (graph.nodes, encoding.length)
        errors_path = self.out.with_suffix(".error.npy")
        values = RowFile(self._array_path(self.out), shape, self.dtype, self.ranks)
        errors = RowFile(self._array_path(errors_path), shape, self.dtype, self.ranks)
        largest = estimate_returns(
            walk,
            workspace,
            length=encoding.length,
            samples=encoding.samples,
            seed=encoding.seed,
            values=values,
            errors=errors,
            progress=self.progress,
        )
        self._finish([values, errors])
        workspace.delete()
        return LargeResult(
            path=self.out,
            errors=errors_path if self.out.suffix == ".npy" else None,
            nodes=graph.nodes,
            features=encoding.length,
            edge_steps=walk.steps * walk.columns * graph.edges,
            steps=encoding.samples,
            residual=math.nan,
            spectral_radius=math.nan,
            largest_error=largest,
        )

    # ------------------------------------------------------------------ output

    def _array_path(self, path: Path) -> Path:
        """A parquet file is made from arrays, which lie beside it until then."""
        return path if self.out.suffix == ".npy" else path.with_name(f".{path.stem}.rows.npy")

    def _finish(self, files: list[RowFile]) -> None:
        for file in files:
            file.finish()
        if self.ranks.first:
            if self.out.suffix == ".parquet":
                self._write_parquet(files)
                for file in files:
                    file.path.unlink()
            elif self.graph.names is not None:
                with replacing(self.out.with_suffix(".nodes.csv")) as temporary, open(temporary, "w") as out:
                    out.write("node\n")
                    for first in range(0, self.graph.nodes, 1 << 20):
                        out.writelines(f"{name}\n" for name in self.graph.names[first : first + (1 << 20)].tolist())
        self.ranks.barrier()

    def _write_parquet(self, files: list[RowFile]) -> None:
        import pyarrow
        import pyarrow.parquet

        graph, block = self.graph, 1 << 18
        arrays = [np.load(file.path, mmap_mode="r") for file in files]
        with replacing(self.out) as temporary:
            writer = None
            for first in range(0, max(graph.nodes, 1), block):
                rows = slice(first, min(first + block, graph.nodes))
                columns = {"node": np.arange(rows.start, rows.stop) if graph.names is None else graph.names[rows]}
                for array, kind in zip(arrays, (self.name, f"{self.name}_error"), strict=False):
                    part = np.asarray(array[rows])
                    columns |= {f"{kind}_{i}": part[:, i] for i in range(part.shape[1])}
                table = pyarrow.table(columns).replace_schema_metadata({"gape.encoding": self.settings})
                writer = writer or pyarrow.parquet.ParquetWriter(temporary, table.schema)
                writer.write_table(table)
                self.progress("writing", rows.stop, graph.nodes)
            if writer is not None:
                writer.close()
