"""A data set in memory: PyG's collated storage, plus what the task is and how it is split."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape.data.flat import FlatGraphs
from gape.data.split import Split
from gape.data.task import Level, Measure, Task
from gape.graph.batching import offsets

try:
    from torch_geometric.data import Batch, Data, InMemoryDataset
except ImportError as error:
    raise ImportError("gape.data needs PyTorch Geometric: pip install 'gape[bench]'") from error


def _narrow(values: Any) -> Tensor:
    """Integers as int16 where they fit: PATTERN's 85 million edges take 0.3 GB so, 1.4 GB as int64.

    Not uint8, which PyTorch would take for a mask where an index is meant.
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

    A PyG ``InMemoryDataset``: ``dataset[3]`` is a ``Data``, ``dataset[:10]`` a view, a ``DataLoader`` takes it.
    Undirected graphs have every edge stored in both directions. ``Data`` holds ``x`` ``[n, d]`` (int64 categories, or
    float32), ``edge_index`` ``[2, 2m]`` (``[2, m]`` if directed), ``y`` (``[1]`` or ``[n]``) and ``edge_attr`` where
    the source has it.

    The collated storage keeps integers as int16; :meth:`get` and :meth:`batch` give int64.

    Args:
        graphs: the graphs, flat.
        task: level, metric, features and classes.
        splits: one split, or one a fold.
        provenance: where the graphs come from, in words; belongs into every report.
        directed: take the edges as they are, from the first node to the second.

    Example:
        >>> import numpy as np
        >>> graphs = FlatGraphs.from_edges([3, 2], [[(0, 1), (1, 2), (0, 2)], [(0, 1)]], y=np.array([1, 0]))
        >>> task = Task("toy", level="graph", metric="accuracy", num_classes=2)
        >>> dataset = GraphDataset(graphs, task, [Split([0], [1], [])], provenance="drawn by hand")
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
            raise ValueError(f"data set {task.name!r} needs at least one split, got none")
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
        self._places: Tensor | None = None  # the view's indices as a tensor, once it is asked for

        node_ptr = torch.from_numpy(graphs.node_ptr.astype(np.int64))
        copies = 1 if directed else 2
        # Where each graph's edges begin, each counted once; stored are both directions.
        self._once_ptr = torch.from_numpy(graphs.edge_ptr.astype(np.int64))
        edge_ptr = copies * self._once_ptr
        pairs = _narrow(graphs.edges)
        # Edge i becomes columns 2i and 2i+1, once in each direction, so no sorting is needed.
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
        """The name in the registry."""
        return self.task.name

    @property
    def level(self) -> Level:
        """``"graph"`` or ``"node"``."""
        return self.task.level

    @property
    def metric(self) -> Measure:
        """``"mae"``, ``"accuracy"`` or ``"macro-recall"``."""
        return self.task.metric

    @property
    def node_categories(self) -> tuple[int, ...]:
        """Number of categories of every column of ``x``; empty when ``x`` is real-valued."""
        return self.task.node_categories

    @property
    def num_classes(self) -> int:
        """Number of classes; 0 for a regression."""
        return self.task.num_classes

    @property
    def num_outputs(self) -> int:
        """Numbers that a model gives for one target: the classes, or 1 for a regression."""
        return self.task.num_outputs

    @property
    def node_counts(self) -> Tensor:
        """Number of nodes of every graph of this view, ``[len(self)]``."""
        return self._counts("x")

    @property
    def edge_counts(self) -> Tensor:
        """Number of directed edges of every graph of this view, ``[len(self)]``."""
        return self._counts("edge_index")

    def _counts(self, key: str) -> Tensor:
        return self.slices[key].diff()[self._positions(None)]

    @property
    def targets(self) -> Tensor:
        """All targets of this view, one after another, int64 classes or float32 values."""
        rows, _ = self._rows("y", self._positions(None))
        return _widen(self._data.y[rows])

    def _positions(self, indices: Sequence[int] | Tensor | None) -> Tensor:
        """Places in the storage of the given members of this view (None: all of them)."""
        if self._places is None:
            own = self.indices()
            steps = torch.arange(own.start, own.stop, own.step) if isinstance(own, range) else torch.tensor(own)
            self._places = steps.long()
        base = self._places
        return base if indices is None else base[torch.as_tensor(indices, dtype=torch.int64)]

    def index_select(self, idx: Any) -> "GraphDataset":
        """A view of some graphs, as ``dataset[idx]``: slice, list, or tensor of numbers or of bools."""
        view: GraphDataset = super().index_select(idx)
        view._places = None
        return view

    def _rows(self, key: str, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of the storage that belong to the given graphs, and how many each has."""
        ptr = self.slices[key]
        counts = ptr[positions + 1] - ptr[positions]
        ends = counts.cumsum(0)
        first = torch.repeat_interleave(ptr[positions] - (ends - counts), counts)
        return torch.arange(len(first)) + first, counts

    def get(self, idx: int) -> Data:
        """Graph ``idx`` of the storage as ``Data``, integers widened to int64."""
        parts = {}
        for key, ptr in self.slices.items():
            start, end = int(ptr[idx]), int(ptr[idx + 1])
            dim = 1 if key == "edge_index" else 0
            parts[key] = _widen(self._data[key].narrow(dim, start, end - start))
        return Data(**parts)

    def batch(self, indices: Sequence[int] | Tensor | None = None) -> Batch:
        """The given graphs of this view (None: all) as one block-diagonal ``Batch``, without a Python loop.

        Equal to ``Batch.from_data_list([self[i] for i in indices])``, many times faster. ``transform`` is
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
        """Training, validation and test part as views that share this storage."""
        self._refuse_view("split")
        if not 0 <= fold < len(self.splits):
            raise ValueError(f"{self.name!r} has folds 0 to {len(self.splits) - 1}, got fold {fold}")
        train, val, test = (self.index_select(part) for part in self.splits[fold].parts)
        return train, val, test

    def with_node_attribute(self, name: str, values: Tensor) -> "GraphDataset":
        """A data set that shares this storage and carries one more attribute, one row a node.

        Args:
            name: attribute name of the ``Data``, such as ``"pe"``; not one that is in use.
            values: ``[num_nodes_of_all_graphs, ...]``, in the order of ``self.batch()``.
        """
        self._refuse_view("with_node_attribute")
        if name in self.slices:
            raise ValueError(f"attribute {name!r} is taken; in use: {', '.join(self.slices)}")
        if len(values) != len(self._data.x):
            raise ValueError(f"{name!r} needs {len(self._data.x)} rows, one a node, got {len(values)}")
        other = copy.copy(self)
        other._data = copy.copy(self._data)
        other._data[name] = values
        other.slices = {**self.slices, name: self.slices["x"]}
        return other

    def _refuse_view(self, verb: str) -> None:
        if self._indices is not None:
            raise ValueError(f"{verb}() is for the whole data set {self.name!r}, this is a view of it")

    def __repr__(self) -> str:
        nodes, edges = int(self.node_counts.sum()), int(self._once_ptr.diff()[self._positions(None)].sum())
        return f"GraphDataset({self.name!r}, graphs={len(self)}, nodes={nodes}, edges={edges})"
