"""BREC: 400 pairs of graphs that are hard to tell apart (Wang & Zhang, 2024)."""

import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from gape.data.dataset import GraphDataset, Split, Task
from gape.data.flat import Array, FlatGraphs
from gape.data.raw_files import require_file

FILES = ("brec/brec_pairs.tsv.xz",)
#: Categories of pairs, in the order of the file.
CATEGORIES = (
    "basic",
    "regular",
    "strongly-regular",
    "extension",
    "cfi",
    "4-vertex-condition",
    "distance-regular",
)
_HEADER = ["category", "first", "second"]


@dataclass(frozen=True)
class BREC:
    """Pairs of graphs that are not isomorphic and that 1-WL does not tell apart (Wang & Zhang, 2024).

    Graphs 2i and 2i + 1 are pair i; ``y`` is the number of the pair's category in :data:`CATEGORIES`. Nothing is to be
    trained: all graphs are in the test part. `gape expressiveness` counts the pairs that encodings tell apart.

    Args:
        category: keep the pairs of one category only; all if empty.

    Example:
        >>> BREC(category="easy")
        Traceback (most recent call last):
        ValueError: category must be '' or one of basic, regular, strongly-regular, ..., got 'easy'
    """

    category: str = ""

    TASK: ClassVar[Task] = Task(
        "brec", level="graph", metric="accuracy", num_classes=len(CATEGORIES), node_categories=(1,)
    )

    def __post_init__(self) -> None:
        if self.category and self.category not in CATEGORIES:
            raise ValueError(f"category must be '' or one of {', '.join(CATEGORIES)}, got {self.category!r}")

    def build(self, data_dir: str | Path | None = None) -> GraphDataset:
        """Read the set from ``brec/brec_pairs.tsv.xz`` in the data folder."""
        advice = "github.com/GraphPKU/BREC has the pairs as brec_v3.npy (MIT)."
        path = require_file("brec", data_dir, FILES, advice)
        with lzma.open(path, "rt", encoding="ascii") as file:
            header, *rows = (line.rstrip("\n").split("\t") for line in file)
        if header != _HEADER or any(len(row) != 3 or row[0] not in CATEGORIES for row in rows):
            raise ValueError(f"{path} must have the columns {', '.join(_HEADER)}, with categories {CATEGORIES}")
        rows = [row for row in rows if self.category in ("", row[0])]
        decoded = [decode_graph6(text) for row in rows for text in row[1:]]
        sizes = [size for size, _ in decoded]
        graphs = FlatGraphs.from_edges(
            sizes,
            [edges for _, edges in decoded],
            y=np.repeat([CATEGORIES.index(row[0]) for row in rows], 2),
            x=np.zeros((sum(sizes), 1), dtype=np.int64),
        )
        return GraphDataset(graphs, self.TASK, [Split.contiguous(0, 0, len(sizes))], f"published: {path.name}")


def decode_graph6(text: str) -> tuple[int, Array]:
    """Decode a graph in graph6: number of nodes and edges ``[m, 2]``.

    The columns of the upper triangle of the adjacency matrix as bits, six to a character, after the number of nodes.

    >>> decode_graph6("Bw")  # a triangle
    (3, array([[0, 1],
           [0, 2],
           [1, 2]]))
    """
    values = np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int64) - 63
    if len(values) and values[0] < 63:
        nodes, start = int(values[0]), 1
    elif len(values) > 4 and values[1] < 63:
        nodes, start = int(values[1:4] @ np.array([4096, 64, 1])), 4
    else:
        raise ValueError(f"not a graph6 string of at most 258,047 nodes: {text[:40]!r}")
    bits = np.unpackbits(values[start:].astype(np.uint8)[:, None], axis=1)[:, 2:].ravel()
    needed = nodes * (nodes - 1) // 2
    if values.min() < 0 or values.max() > 63 or len(values) - start != -(-needed // 6):
        raise ValueError(f"not a graph6 string of {nodes} nodes: {text[:40]!r}")
    # Bit number v (v - 1) / 2 + u is the pair u < v: row by row in the lower triangle.
    later, earlier = np.tril_indices(nodes, -1)
    present = bits[:needed] == 1
    edges = np.stack([earlier[present], later[present]], 1)
    return nodes, edges[np.lexsort((edges[:, 1], edges[:, 0]))]
