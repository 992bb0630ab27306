"""Datasets in memory: a task, one or more splits, and graphs in PyG's collated storage."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gape.data.flat import FlatGraphs
from gape.graph.batching import offsets

try:
    from torch_geometric.data import Batch, Data, InMemoryDataset
except ImportError as error:
    raise ImportError("gape.data needs PyTorch Geometric: pip install 'gape[bench]'") from error

Level = Literal["graph", "node"]
MetricName = Literal["mae", "accuracy", "macro-recall"]


@dataclass(frozen=True)
class Task:
    """Prediction task of a dataset: level, metric, classes and node features.

    Args:
        name: the dataset's name in the registry.
        level: ``"graph"`` (one target per graph) or ``"node"`` (one target per node).
        metric: ``"mae"``, ``"accuracy"`` or ``"macro-recall"``.
        num_classes: number of classes; 0 for a regression.
        node_categories: number of categories per column of ``x`` if ``x`` holds categories, which a model embeds.
            Empty if ``x`` is real-valued, such as the constant 1; then a model applies a linear map.
        edge_categories: number of edge types if ``edge_attr`` holds one per edge and encodings may read it.

    Example:
        >>> zinc = Task("zinc", level="graph", metric="mae", num_classes=0, node_categories=(28,))
        >>> zinc.regression, zinc.num_outputs
        (True, 1)
    """

    name: str
    level: Level
    metric: MetricName
    num_classes: int
    node_categories: tuple[int, ...] = ()
    edge_categories: int = 0

    def __post_init__(self) -> None:
        if self.level not in ("graph", "node"):
            raise ValueError(f"level must be 'graph' or 'node', got {self.level!r}")
        if self.metric not in ("mae", "accuracy", "macro-recall"):
            raise ValueError(f"metric must be 'mae', 'accuracy' or 'macro-recall', got {self.metric!r}")
        if self.num_classes < 0 or self.num_classes == 1:
            raise ValueError(f"num_classes must be 0 (a regression) or at least 2 (classes), got {self.num_classes}")
        if (self.metric == "mae") != (self.num_classes == 0):
            raise ValueError(
                f"metric {self.metric!r} does not fit {self.num_classes} classes: "
                "use 'mae' for a regression (num_classes=0) and the others for classes"
            )
        if any(size < 1 for size in self.node_categories):
            raise ValueError(f"node_categories must all be at least 1, got {self.node_categories}")
        if self.edge_categories < 0:
            raise ValueError(f"edge_categories must be at least 0, got {self.edge_categories}")

    @property
    def key(self) -> str:
        """The metric's key in records of results.

        >>> Task("pattern", level="node", metric="macro-recall", num_classes=2).key
        'macro_recall'
        """
        return self.metric.replace("-", "_")

    @property
    def regression(self) -> bool:
        """True if targets are real numbers."""
        return self.num_classes == 0

    @property
    def num_outputs(self) -> int:
        """Number of model outputs per target: the number of classes, or 1 for a regression."""
        return self.num_classes or 1


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of the training, validation and test graphs, which are disjoint by default.

    Args:
        train, val, test: int64 tensors of graph indices (sequences are converted). ``test`` may be empty, for datasets
            without public test targets.
        disjoint: raise an error if a graph is in more than one part.

    Example:
        >>> Split([0, 1, 2], [3], [4])
        Split(train=3, val=1, test=1)
        >>> Split([0, 1], [1], [2])
        Traceback (most recent call last):
        ValueError: graph 1 is in more than one part of the split; every graph may be used once
    """

    train: Tensor
    val: Tensor
    test: Tensor
    disjoint: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        for part in ("train", "val", "test"):
            indices = torch.as_tensor(getattr(self, part), dtype=torch.int64).reshape(-1)
            object.__setattr__(self, part, indices)
        everything = torch.cat([self.train, self.val, self.test])
        if everything.numel() and int(everything.min()) < 0:
            raise ValueError(f"graph indices start at 0, got {int(everything.min())}")
        groups = [everything] if self.disjoint else [self.train, self.val, self.test]
        for group in groups:
            graphs, uses = torch.unique(group, return_counts=True)
            if (uses > 1).any():
                twice, where = int(graphs[uses > 1][0]), "part of the split" if self.disjoint else "place of one part"
                raise ValueError(f"graph {twice} is in more than one {where}; every graph may be used once")

    @classmethod
    def contiguous(cls, train: int, val: int, test: int) -> "Split":
        """Take the first ``train`` graphs for training, the next ``val`` for validation, the next ``test`` for testing.

        >>> Split.contiguous(2, 1, 1).test
        tensor([3])
        """
        order = torch.arange(train + val + test)
        return cls(order[:train], order[train : train + val], order[train + val :])

    @classmethod
    def reshuffled(cls, train: int, val: int, test: int, seed: int) -> "Split":
        """Cut each part from its own shuffled order, as the authors' loader of PLANAR does by mistake.

        A graph of the test part is in the training part with probability ``train / (train + val + test)``.

        >>> split = Split.reshuffled(700, 150, 150, seed=0)
        >>> split, 0.6 < float(torch.isin(split.test, split.train).float().mean()) < 0.8
        (Split(train=700, val=150, test=150), True)
        """
        generator = torch.Generator().manual_seed(seed)
        orders = [torch.randperm(train + val + test, generator=generator) for _ in range(3)]
        return cls(orders[0][:train], orders[1][train : train + val], orders[2][train + val :], disjoint=False)

    def some_of_train(self, share: float) -> Tensor:
        """Draw a fixed random subset of the training graphs: this share of them, at least one, in their order.

        >>> Split.contiguous(10, 1, 1).some_of_train(0.3).tolist()
        [1, 4, 7]
        """
        count = max(1, round(share * len(self.train)))
        drawn = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(0))[:count]
        return self.train[drawn.sort().values]

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Training, validation and test indices."""
        return self.train, self.val, self.test

    def __repr__(self) -> str:
        return f"Split(train={len(self.train)}, val={len(self.val)}, test={len(self.test)})"


def _narrow(values: Any) -> Tensor:
    """Store integers as int16 where they fit: PATTERN's 85 million edges take 0.3 GB instead of 1.4 GB as int64.

    Not as uint8, which PyTorch indexing treats as a mask.
    """
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if tensor.is_floating_point():
        return tensor.float()
    bound = int(tensor.max()) if tensor.numel() else 0
    return tensor.to(torch.int16 if bound < 2**15 else torch.int64)


def _widen(values: Tensor) -> Tensor:
    return values if values.is_floating_point() else values.long()


class GraphDataset(InMemoryDataset):  # type: ignore[misc]
    """Graphs with node features, targets, a :class:`Task` and one or more :class:`Split`.

    A PyG ``InMemoryDataset``: ``dataset[3]`` is a ``Data``, ``dataset[:10]`` is a view, and a ``DataLoader`` accepts
    it. Each edge of an undirected graph is stored in both directions. ``Data`` holds ``x`` ``[n, d]`` (int64
    categories, or float32), ``edge_index`` ``[2, 2m]`` (``[2, m]`` if directed), ``y`` (``[1]`` or ``[n]``) and
    ``edge_attr`` if the dataset has edge features.

    The collated storage holds integers as int16; :meth:`get` and :meth:`batch` return int64.

    Args:
        graphs: the graphs in flat arrays.
        task: level, metric, features and classes.
        splits: one split, or one per fold.
        provenance: origin of the graphs in words, for reports.
        directed: store each edge once, from the first node to the second.

    Example:
        >>> import numpy as np
        >>> graphs = FlatGraphs.from_edges([3, 2], [[(0, 1), (1, 2), (0, 2)], [(0, 1)]], y=np.array([1, 0]))
        >>> task = Task("toy", level="graph", metric="accuracy", num_classes=2)
        >>> dataset = GraphDataset(graphs, task, [Split([0], [1], [])], provenance="an example")
        >>> dataset
        GraphDataset('toy', graphs=2, nodes=5, edges=4)
        >>> dataset[1].edge_index
        tensor([[0, 1],
                [1, 0]])
        >>> dataset.batch().edge_index[:, -2:]
        tensor([[3, 4],
                [4, 3]])
        >>> train, val, test = dataset.split()
        >>> len(train), len(test), dataset.metric
        (1, 0, 'accuracy')
    """

    def __init__(
        self, graphs: FlatGraphs, task: Task, splits: Sequence[Split], provenance: str, *, directed: bool = False
    ) -> None:
        super().__init__(root=None)
        if not splits:
            raise ValueError(f"dataset {task.name!r} needs at least one split, got none")
        for split in splits:
            last = max((int(part.max()) for part in split.parts if len(part)), default=-1)
            if last >= graphs.num_graphs:
                raise ValueError(f"{split} names graph {last}, but there are {graphs.num_graphs} graphs")
        rows = len(graphs.x) if task.level == "node" else graphs.num_graphs
        if len(graphs.y) != rows:
            raise ValueError(f"a {task.level}-level task needs {rows} targets, got {len(graphs.y)}")
        self.task = task
        self.splits = tuple(splits)
        self.provenance = provenance
        self.directed = directed
        self._view_indices: Tensor | None = None  # cache of _positions(None)

        node_ptr = torch.from_numpy(graphs.node_ptr.astype(np.int64))
        copies = 1 if directed else 2
        # Offsets of each graph's edges, each counted once; the storage holds both directions.
        self._once_ptr = torch.from_numpy(graphs.edge_ptr.astype(np.int64))
        edge_ptr = copies * self._once_ptr
        pairs = _narrow(graphs.edges)
        # Edge i becomes columns 2i and 2i+1, one per direction, so no sorting is needed.
        stored = torch.stack([pairs, pairs.flip(1)][:copies], dim=1).reshape(-1, 2).t().contiguous()
        self._data = Data(x=_narrow(graphs.x), edge_index=stored, y=_narrow(graphs.y))
        per_target = node_ptr if task.level == "node" else torch.arange(graphs.num_graphs + 1)
        self.slices = {"x": node_ptr, "edge_index": edge_ptr, "y": per_target}
        if graphs.edge_attr is not None:
            self._data.edge_attr = _narrow(graphs.edge_attr).repeat_interleave(copies, dim=0)
            self.slices["edge_attr"] = edge_ptr
        loops = pairs[:, 0] == pairs[:, 1]
        if loops.any() and not directed:
            self._drop_second_copy(loops)

    def _drop_second_copy(self, loops: Tensor) -> None:
        # A self-loop is its own reverse: keep column 2i, drop column 2i+1.
        keep = torch.ones(2 * len(loops), dtype=torch.bool)
        keep[1::2] = ~loops
        kept_before = offsets(keep.long())
        self._data.edge_index = self._data.edge_index[:, keep]
        self.slices["edge_index"] = kept_before[self.slices["edge_index"]]
        if "edge_attr" in self.slices:
            self._data.edge_attr = self._data.edge_attr[keep]
            self.slices["edge_attr"] = self.slices["edge_index"]

    @property
    def name(self) -> str:
        """Name in the registry."""
        return self.task.name

    @property
    def level(self) -> Level:
        """``"graph"`` or ``"node"``."""
        return self.task.level

    @property
    def metric(self) -> MetricName:
        """``"mae"``, ``"accuracy"`` or ``"macro-recall"``."""
        return self.task.metric

    @property
    def node_categories(self) -> tuple[int, ...]:
        """Number of categories per column of ``x``; empty if ``x`` is real-valued."""
        return self.task.node_categories

    @property
    def num_classes(self) -> int:
        """Number of classes; 0 for a regression."""
        return self.task.num_classes

    @property
    def num_outputs(self) -> int:
        """Number of model outputs per target: the number of classes, or 1 for a regression."""
        return self.task.num_outputs

    @property
    def node_counts(self) -> Tensor:
        """Number of nodes per graph of this view, ``[len(self)]``."""
        return self._counts("x")

    @property
    def edge_counts(self) -> Tensor:
        """Number of directed edges per graph of this view, ``[len(self)]``."""
        return self._counts("edge_index")

    def _counts(self, key: str) -> Tensor:
        return self.slices[key].diff()[self._positions(None)]

    @property
    def targets(self) -> Tensor:
        """Concatenated targets of this view: int64 classes or float32 values."""
        rows, _ = self._rows("y", self._positions(None))
        return _widen(self._data.y[rows])

    def _positions(self, indices: Sequence[int] | Tensor | None) -> Tensor:
        """Map indices into this view (None: all of it) to indices into the storage."""
        if self._view_indices is None:
            own = self.indices()
            steps = torch.arange(own.start, own.stop, own.step) if isinstance(own, range) else torch.tensor(own)
            self._view_indices = steps.long()
        base = self._view_indices
        return base if indices is None else base[torch.as_tensor(indices, dtype=torch.int64)]

    def index_select(self, idx: Any) -> "GraphDataset":
        """Select graphs as a view, like ``dataset[idx]``: a slice, a list, or a tensor of integers or bools."""
        view: GraphDataset = super().index_select(idx)
        view._view_indices = None
        return view

    def _rows(self, key: str, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows of the storage that belong to the given graphs, and their number per graph."""
        ptr = self.slices[key]
        counts = ptr[positions + 1] - ptr[positions]
        ends = counts.cumsum(0)
        first = torch.repeat_interleave(ptr[positions] - (ends - counts), counts)
        return torch.arange(len(first)) + first, counts

    def get(self, idx: int) -> Data:
        """Return graph ``idx`` of the storage as ``Data``, with integers as int64."""
        parts = {}
        for key, ptr in self.slices.items():
            start, end = int(ptr[idx]), int(ptr[idx + 1])
            dim = 1 if key == "edge_index" else 0
            parts[key] = _widen(self._data[key].narrow(dim, start, end - start))
        return Data(**parts)

    def batch(self, indices: Sequence[int] | Tensor | None = None) -> Batch:
        """Join the given graphs of this view (None: all) into one block-diagonal ``Batch``.

        Equal to ``Batch.from_data_list([self[i] for i in indices])`` but vectorised over graphs. ``transform`` is
        not applied.
        """
        positions = self._positions(indices)
        node_counts = self._rows("x", positions)[1]
        ptr = offsets(node_counts)
        parts: dict[str, Tensor] = {}
        for key in self.slices:
            rows, counts = self._rows(key, positions)
            if key == "edge_index":
                shift = torch.repeat_interleave(ptr[:-1], counts)
                parts[key] = self._data[key][:, rows].long() + shift
            else:
                parts[key] = _widen(self._data[key][rows])
        graph_of_node = torch.repeat_interleave(torch.arange(len(positions)), node_counts)
        return Batch(_base_cls=Data, batch=graph_of_node, ptr=ptr, **parts)

    def split(self, fold: int = 0) -> tuple["GraphDataset", "GraphDataset", "GraphDataset"]:
        """Return the training, validation and test graphs as views that share this storage."""
        self._require_whole("split")
        if fold not in range(len(self.splits)):
            raise ValueError(
                f"{self.name!r} has folds 0 to {len(self.splits) - 1}, got fold {fold!r}; "
                "split() returns the three parts: train, val, test = dataset.split()"
            )
        train, val, test = (self.index_select(part) for part in self.splits[fold].parts)
        return train, val, test

    def with_node_attribute(self, name: str, values: Tensor) -> "GraphDataset":
        """Return a dataset that shares this storage and has one more attribute, with one row per node.

        Args:
            name: attribute name in ``Data``, such as ``"pe"``; must be new.
            values: ``[num_nodes_of_all_graphs, ...]``, in the order of ``self.batch()``.
        """
        self._require_whole("with_node_attribute")
        if name in self.slices:
            raise ValueError(f"attribute {name!r} is taken; in use: {', '.join(self.slices)}")
        if len(values) != len(self._data.x):
            raise ValueError(f"{name!r} needs {len(self._data.x)} rows, one per node, got {len(values)}")
        other = copy.copy(self)
        other._data = copy.copy(self._data)
        other._data[name] = values
        other.slices = {**self.slices, name: self.slices["x"]}
        return other

    def _require_whole(self, verb: str) -> None:
        if self._indices is not None:
            raise ValueError(f"{verb}() needs the whole dataset {self.name!r}, but this is a view of it")

    def __repr__(self) -> str:
        nodes, edges = int(self.node_counts.sum()), int(self._once_ptr.diff()[self._positions(None)].sum())
        return f"GraphDataset({self.name!r}, graphs={len(self)}, nodes={nodes}, edges={edges})"
