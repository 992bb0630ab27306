"""One graph on disk: the transposed adjacency matrix as memory-mapped CSR arrays in a folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gape._internal.files import replacing

FORMAT = 1
META = "graph.json"


@dataclass(frozen=True)
class DiskGraph:
    """A graph whose edges stay on disk.

    Row v of the CSR matrix lists the sources of the edges into v, so that a product pulls along the edges.

    Args:
        folder: with the files ``offsets.bin`` (int64, ``[nodes + 1]``), ``columns.bin`` (int32, ``[edges]``),
            ``out_degree.bin`` (float64, ``[nodes]``), perhaps ``weights.bin`` (float64, ``[edges]``) and ``names.bin``
            (int64, ``[nodes]``, the ids in the edge file if they are not 0, 1, 2, …), and ``graph.json``, written last.
        nodes, edges: their numbers.
        weighted: whether edges have weights.
        undirected: whether every edge was taken in both directions.
        named: whether the nodes have ids of their own.
        repeated: how many repeated edges were removed.
        source: description of where the edges came from, and how they were read.
    """

    folder: Path
    nodes: int
    edges: int
    weighted: bool
    undirected: bool
    named: bool
    repeated: int
    source: str

    @classmethod
    def open(cls, folder: Path | str) -> DiskGraph:
        """Open the graph in a folder."""
        folder = Path(folder)
        try:
            held = json.loads((folder / META).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{folder} holds no graph: there is no {META} in it") from error
        except ValueError as error:
            raise ValueError(f"{folder / META} is damaged: {error}; delete the folder and build it again") from error
        if held.pop("format", None) != FORMAT:
            raise ValueError(f"{folder / META} is of another version of gape; delete the folder and build it again")
        graph = cls(folder=folder, **held)
        for name, bytes_ in graph._sizes().items():
            path = folder / name
            found = path.stat().st_size if path.exists() else 0
            if found != bytes_:
                raise ValueError(f"{path} has {found} bytes, expected {bytes_}; delete the folder and build it again")
        return graph

    def save(self) -> None:
        """Write ``graph.json``, which makes the folder a graph."""
        held = {key: value for key, value in asdict(self).items() if key != "folder"}
        with replacing(self.folder / META) as temporary:
            temporary.write_text(json.dumps({"format": FORMAT, **held}, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def holds(folder: Path | str) -> bool:
        """Return whether a folder holds a graph."""
        return (Path(folder) / META).is_file()

    def _sizes(self) -> dict[str, int]:
        sizes = {"offsets.bin": 8 * (self.nodes + 1), "columns.bin": 4 * self.edges, "out_degree.bin": 8 * self.nodes}
        if self.weighted:
            sizes["weights.bin"] = 8 * self.edges
        if self.named:
            sizes["names.bin"] = 8 * self.nodes
        return sizes

    def _map(self, name: str, dtype: Any, length: int) -> NDArray[Any]:
        if length == 0:
            return np.zeros(0, dtype=dtype)
        return np.memmap(self.folder / name, dtype=dtype, mode="r", shape=(length,))

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        return self._map("offsets.bin", np.int64, self.nodes + 1)

    @cached_property
    def columns(self) -> NDArray[np.int32]:
        return self._map("columns.bin", np.int32, self.edges)

    @cached_property
    def weights(self) -> NDArray[np.float64] | None:
        return self._map("weights.bin", np.float64, self.edges) if self.weighted else None

    @cached_property
    def out_degree(self) -> NDArray[np.float64]:
        return self._map("out_degree.bin", np.float64, self.nodes)

    @cached_property
    def names(self) -> NDArray[np.int64] | None:
        return self._map("names.bin", np.int64, self.nodes) if self.named else None

    def damaged(self) -> ValueError:
        """The error where the edges of the files cannot be those of a graph."""
        return ValueError(
            f"{self.folder} is damaged: it has an edge from a node that is not one of its {self.nodes:,}, or "
            "offsets out of order; delete the folder and build it again"
        )

    def rows_by_edges(self, parts: int, first: int = 0, last: int | None = None) -> list[int]:
        """Split rows ``first … last`` into parts with about equally many edges; return the bounds."""
        last = self.nodes if last is None else last
        ends = np.linspace(float(self.offsets[first]), float(self.offsets[last]), parts + 1)[1:-1]
        inner = np.searchsorted(self.offsets[first : last + 1], ends) + first
        return [first, *inner.tolist(), last]

    def __repr__(self) -> str:
        kind = "undirected" if self.undirected else "directed"
        return f"DiskGraph({self.folder}, nodes={self.nodes}, edges={self.edges}, {kind})"
