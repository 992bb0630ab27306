"""CSL: circular skip link graphs, all 4-regular, so that all classes have the same walk counts."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from gape.data.dataset import GraphDataset, Split, Task
from gape.data.flat import Array, FlatGraphs
from gape.data.raw_files import data_folder, find_file, missing_file, pyg_csl
from gape.linalg.integers import offsets

NODES = 41
SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)
GRAPHS_PER_CLASS = 15
FOLDS = 5
FILES = ("csl/csl.npz",)


def circular_skip_link(nodes: int, skip: int) -> Array:
    """Build the edges of a ring of ``nodes`` nodes with a link from each node to the one ``skip`` positions on.

    Returns: ``[2 * nodes, 2]``.

    >>> circular_skip_link(5, 2)[5:].tolist()
    [[0, 2], [1, 3], [2, 4], [3, 0], [4, 1]]
    """
    if not 2 <= skip <= (nodes - 1) // 2:
        raise ValueError(f"skip must be 2 to {(nodes - 1) // 2} for {nodes} nodes, got {skip}")
    here = np.arange(nodes)
    ring = np.stack([here, (here + 1) % nodes], axis=1)
    links = np.stack([here, (here + skip) % nodes], axis=1)
    return np.concatenate([ring, links])


def _near_canonical(generator: np.random.Generator) -> Array:
    """Draw a node order that differs from that of the ring by one or two swaps of neighbours.

    The published file has such orders: 36 to 41 of the 41 edges i ~ i+1 are edges of the ring, so that a node's number
    is almost its position on the ring. A swap of two neighbours breaks at most two of these edges.
    """
    order = np.arange(NODES)
    for place in generator.integers(NODES - 1, size=int(generator.integers(1, 3))):
        order[[place, place + 1]] = order[[place + 1, place]]
    return order


@dataclass(frozen=True)
class CSL:
    """Classify 41-node circular skip link graphs by skip length: 10 classes of 15 graphs (Murphy et al. 2019).

    Args:
        order: ``"random"`` numbers the nodes by a uniform random permutation. ``"near-canonical"`` swaps only one or
            two pairs of neighbours, similar to the published file; there, node indices as features score 100 %.
            ``"published"`` reads that file: ``csl/csl.npz`` in the data folder, with its own five folds, else PyG's
            download, with our folds.
        seed: seed of the permutations and of our folds; ``csl/csl.npz`` does not depend on it.

    ``build()`` returns 150 graphs with five folds of 90 / 30 / 30 graphs, 9 / 3 / 3 per class; the five test parts
    cover every graph once.

    Example:
        >>> dataset = CSL(seed=0).build()
        >>> dataset, len(dataset.splits), dataset.splits[0]
        (GraphDataset('csl', graphs=150, nodes=6150, edges=12300), 5, Split(train=90, val=30, test=30))
    """

    order: Literal["random", "near-canonical", "published"] = "random"
    seed: int = 0

    TASK: ClassVar[Task] = Task("csl", level="graph", metric="accuracy", num_classes=len(SKIPS), node_categories=(1,))

    def __post_init__(self) -> None:
        if self.order not in ("random", "near-canonical", "published"):
            raise ValueError(f"order must be 'random', 'near-canonical' or 'published', got {self.order!r}")

    def build(self, data_dir: str | Path | None = None) -> GraphDataset:
        """Generate the graphs, or read the published ones."""
        if self.order == "published":
            return self._read(data_folder(data_dir))
        generator = np.random.default_rng([self.seed, 0xC51])
        blocks = []
        for skip in SKIPS:
            for copy in range(GRAPHS_PER_CLASS):
                edges = circular_skip_link(NODES, skip)
                if self.order == "random":
                    edges = generator.permutation(NODES)[edges]
                elif copy > 0:  # the published file has the first graph of each class in canonical order
                    edges = _near_canonical(generator)[edges]
                blocks.append(edges)
        labels = np.repeat(np.arange(len(SKIPS)), GRAPHS_PER_CLASS)
        return GraphDataset(_graphs(np.stack(blocks), labels), self.TASK, _folds(generator), f"generated: {self!r}")

    def _read(self, folder: Path | None) -> GraphDataset:
        path = find_file(folder, FILES)
        if path is None:
            try:
                return pyg_csl(folder, self.TASK, _folds(np.random.default_rng([self.seed, 0xC51])))
            except OSError as error:
                raise missing_file(
                    "csl",
                    folder,
                    FILES,
                    "PyG's GNNBenchmarkDataset downloads CSL.zip to pyg/CSL/raw; or use order='random'.",
                    error,
                ) from error
        with np.load(path, allow_pickle=False) as file:
            graphs = _graphs(file["edges"], file["labels"])
            splits = [
                Split(*parts)
                for parts in zip(
                    *(file[f"fold_{part}"].astype(np.int64) for part in ("train", "val", "test")), strict=True
                )
            ]
        return GraphDataset(graphs, self.TASK, splits, f"published: {path.name}")


def _graphs(edges: Array, labels: Array) -> FlatGraphs:
    count, per_graph, _ = edges.shape
    return FlatGraphs(
        node_ptr=offsets([NODES] * count),
        edge_ptr=offsets([per_graph] * count),
        edges=edges.reshape(-1, 2).astype(np.int16),
        x=np.zeros((count * NODES, 1), dtype=np.int64),
        y=labels.astype(np.int64),
    )


def _folds(generator: np.random.Generator) -> list[Split]:
    """Split the graphs into five stratified groups; fold f tests on group f and validates on group f+1."""
    shuffled = np.stack([c * GRAPHS_PER_CLASS + generator.permutation(GRAPHS_PER_CLASS) for c in range(len(SKIPS))])
    groups = [np.sort(shuffled[:, group::FOLDS].ravel()) for group in range(FOLDS)]
    splits = []
    for fold in range(FOLDS):
        val = (fold + 1) % FOLDS
        rest = [groups[group] for group in range(FOLDS) if group not in (fold, val)]
        splits.append(Split(np.sort(np.concatenate(rest)), groups[val], groups[fold]))  # type: ignore[arg-type]
    return splits
