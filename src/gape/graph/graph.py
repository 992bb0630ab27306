"""The Graph class: one graph or a batch, stored as one block-diagonal sparse matrix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape._internal.validation import whole_number
from gape.graph.adjacency import Adjacency
from gape.graph.batching import members, offsets, part_bounds
from gape.graph.small_graphs import Scan, scan
from gape.graph.validate import as_integers, as_weights, check_attribute, check_graph, infer_num_nodes, sorted_unique
from gape.graph.walk_matrix import WalkMatrix, walk_matrix

_Which = Tensor | slice


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """One graph or many, directed or not, as one block-diagonal sparse matrix.

    An undirected graph has each edge in both directions. Parallel edges add up. The tensors are shared with
    the caller, not copied, and are not to be written to afterwards.

    Args:
        edge_index: ``[2, E]`` integers, source and target of each edge.
        num_nodes: number of nodes n, of all graphs together.
        edge_weight: ``[E]``, ones if ``None``; may require gradients.
        labels: ``[n]`` node labels, integers from 0.
        edge_type: ``[E]`` edge types, integers from 0.
        ptr: ``[graphs + 1]``, nodes ``ptr[i]`` to ``ptr[i + 1] - 1`` belong to graph ``i``; one graph if ``None``.

    Example:
        >>> path = Graph(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> path
        Graph(graphs=1, nodes=3, edges=2, directed)
    """

    edge_index: Tensor
    num_nodes: int
    edge_weight: Tensor | None = None
    labels: Tensor | None = None
    edge_type: Tensor | None = None
    ptr: Tensor = None  # type: ignore[assignment]  # filled in below
    # Walk matrices already built, by name. Shared between copies that differ in labels only.
    _walks: dict[str, WalkMatrix] = field(default_factory=dict, init=False)
    # Whether the edges are known to be sorted by source.
    _sorted: bool = field(default=False, init=False)
    # True for parts cut out of a graph that was checked before.
    _trusted: InitVar[bool] = field(default=False, kw_only=True)

    def __post_init__(self, _trusted: bool) -> None:
        set_ = object.__setattr__
        index = as_integers(self.edge_index, "edge_index")
        # The transpose of a list of pairs becomes two rows, as everything else expects it.
        set_(self, "edge_index", index.contiguous() if index.dim() == 2 and index.stride(0) == 1 else index)
        device = self.edge_index.device
        set_(self, "num_nodes", whole_number(self.num_nodes, "num_nodes", at_least=0))
        if self.ptr is None:
            # By NumPy, which is faster for two numbers.
            set_(self, "ptr", torch.from_numpy(np.array([0, self.num_nodes])).to(device))
        for name in ("labels", "edge_type", "ptr"):
            value = getattr(self, name)
            if value is not None:
                set_(self, name, as_integers(value, name).to(device))
        if self.edge_weight is not None:
            set_(self, "edge_weight", as_weights(self.edge_weight).to(device))
        if not _trusted:
            check_graph(self)

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[int, int]] | Any,
        *,
        num_nodes: int | None = None,
        undirected: bool = False,
        edge_weight: Any = None,
        **others: Any,
    ) -> Graph:
        """Build a graph from pairs ``(source, target)``; ``undirected`` adds the reverse of every edge but loops.

        Without ``num_nodes`` the nodes are 0 … the largest id, and an id of 2²⁴ + 100 × edges or more is refused: it is
        a name, not a number from 0.

        Example:
            >>> Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
            Graph(graphs=1, nodes=3, edges=6, undirected)
        """
        array = isinstance(edges, Tensor | np.ndarray) or not isinstance(edges, Iterable)
        pairs = as_integers(edges if array else list(edges), "edges")
        if pairs.numel() == 0:
            pairs = pairs.reshape(0, 2)
        if pairs.dim() != 2 or pairs.shape[1] != 2:
            raise ValueError(f"edges must be pairs (source, target), got shape {list(pairs.shape)}")
        index = pairs.T.contiguous()
        graph = cls(
            index, infer_num_nodes(index) if num_nodes is None else num_nodes, edge_weight=edge_weight, **others
        )
        if not undirected:
            return graph
        # Each edge once more the other way round, loops not.
        edges_back = (index[0] != index[1]).nonzero().flatten()
        both = torch.cat([torch.arange(index.shape[1], device=index.device), edges_back])
        reverse = index[:, edges_back].flip(0)
        return graph._take(both, slice(None), torch.cat([index, reverse], 1), graph.num_nodes, graph.ptr)

    # ------------------------------------------------------------------ properties

    @property
    def num_graphs(self) -> int:
        return len(self.ptr) - 1

    @property
    def num_edges(self) -> int:
        return self.edge_index.shape[1]

    @property
    def device(self) -> torch.device:
        return self.edge_index.device

    @property
    def sizes(self) -> Tensor:
        """``[graphs]``: number of nodes of each graph."""
        return self.adjacency.sizes

    @property
    def batch(self) -> Tensor:
        """``[n]``: the graph of each node."""
        return self.adjacency.batch

    @cached_property
    def adjacency(self) -> Adjacency:
        known = self._walks.get("adjacency")
        if known is not None:
            return known.adjacency
        return Adjacency(self.edge_index, self.num_nodes, self.ptr, self.edge_weight, self._sorted, self.scan)

    @cached_property
    def scan(self) -> Scan | None:
        """Facts about a batch of small graphs from one pass over its edges; ``None`` without compiled kernels."""
        return scan(self.edge_index, self.ptr)

    @property
    def undirected(self) -> bool:
        """True if every edge has its reverse with the same weight."""
        return self.adjacency.symmetric

    def walk(self, name: str = "adjacency") -> WalkMatrix:
        """The walk matrix of that name (see :mod:`gape.graph.walk_matrix`), built at the first call."""
        if self.edge_weight is not None and self.edge_weight.requires_grad:
            # Degrees carry the gradient of the weights, and an autograd graph serves one backward pass only.
            return walk_matrix(Adjacency(self.edge_index, self.num_nodes, self.ptr, self.edge_weight), name)
        if name not in self._walks:
            if "adjacency" not in self._walks:
                self._walks["adjacency"] = walk_matrix(self.adjacency, "adjacency")
            self._walks[name] = walk_matrix(self._walks["adjacency"].adjacency, name)
        return self._walks[name]

    def __len__(self) -> int:
        return self.num_graphs

    def __repr__(self) -> str:
        parts = [f"graphs={self.num_graphs}", f"nodes={self.num_nodes}", f"edges={self.num_edges}"]
        parts.append("undirected" if self.undirected else "directed")
        if self.edge_weight is not None:
            parts.append("weighted")
        if self.labels is not None:
            parts.append(f"labels={_top(self.labels)}")
        if self.edge_type is not None:
            parts.append(f"edge_types={_top(self.edge_type)}")
        return f"Graph({', '.join(parts)})"

    # ------------------------------------------------------------------ derived graphs

    def with_labels(self, labels: Any) -> Graph:
        """Return the graph with other node labels: a tensor, or a labelling of :mod:`gape.graph.labels`."""
        if callable(labels):
            labels = labels(self)
        labelled = replace(self, labels=labels, _trusted=True)
        check_attribute(labelled, "labels")
        object.__setattr__(labelled, "_walks", self._walks)
        object.__setattr__(labelled, "_sorted", self._sorted)
        self._copy_scan(labelled, self.__dict__.get("scan"))
        return labelled

    @staticmethod
    def _copy_scan(graph: Graph, found: Scan | None) -> None:
        """Copy cached scan facts to a derived graph."""
        if found is not None:
            graph.__dict__["scan"] = found

    def to(self, device: torch.device | str) -> Graph:
        """Return the graph on another device."""
        if self.device == torch.device(device):
            return self
        moved: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name).to(device)
            for name in ("edge_index", "edge_weight", "labels", "edge_type", "ptr")
        }
        return Graph(**moved, num_nodes=self.num_nodes, _trusted=True)

    def __getstate__(self) -> dict[str, Any]:
        # Drop cached matrices: sparse tensors do not support deepcopy and can be rebuilt.
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"_walks": {}}

    @cached_property
    def edge_ptr(self) -> Tensor | None:
        """Edge offsets ``[graphs + 1]`` of the graphs, ``None`` if edges are not stored graph by graph."""
        if self.scan is not None:
            return self.scan.edge_ptr
        if self.adjacency.source_sorted:
            return torch.searchsorted(self.edge_index[0].contiguous(), self.ptr.contiguous())
        graph_of_edge = self.batch[self.edge_index[0]]
        if not bool((graph_of_edge[1:] >= graph_of_edge[:-1]).all()):
            return None
        counts = torch.bincount(graph_of_edge, minlength=self.num_graphs)
        return offsets(counts)

    @cached_property
    def parts(self) -> tuple[Graph, ...]:
        """The batch cut into parts of whole graphs that fit into cache.

        Padding a part to its largest graph at most quadruples its nodes.
        """
        if self.num_graphs == 1 or self.num_nodes == 0:
            return (self,)
        if self.edge_ptr is None:
            return self._grouped.parts
        bounds = part_bounds(self.ptr.cpu().numpy(), self.edge_ptr.cpu().numpy())
        if len(bounds) == 2:
            return (self,)
        return tuple(self.slice(a, b) for a, b in pairwise(bounds))

    def slice(self, start: int, stop: int) -> Graph:
        """Return graphs ``start`` to ``stop - 1`` as a batch."""
        if not 0 <= start < stop <= self.num_graphs:
            raise ValueError(f"a slice needs 0 ≤ start < stop ≤ {self.num_graphs} graphs, got {start} and {stop}")
        if self.edge_ptr is None:
            return self._grouped.slice(start, stop)
        first, last = int(self.ptr[start]), int(self.ptr[stop])
        edges = slice(int(self.edge_ptr[start]), int(self.edge_ptr[stop]))
        index = self.edge_index[:, edges] - first if first else self.edge_index[:, edges]
        part = self._take(edges, slice(first, last), index, last - first, self.ptr[start : stop + 1] - first)
        object.__setattr__(part, "_sorted", self.adjacency.source_sorted)
        self._copy_scan(part, None if self.scan is None else self.scan.slice(start, stop))
        return part

    def nodes_of(self, graphs: Tensor) -> Tensor:
        """Return the nodes of the given graphs, ascending."""
        return members(self.ptr, graphs.sort().values)

    def select(self, graphs: Any) -> Graph:
        """Return the given graphs, each named once, as a batch in their present order."""
        graphs = sorted_unique(graphs, self.num_graphs).to(self.device)
        if self.edge_ptr is None:
            return self._grouped.select(graphs)
        nodes, edges, ptr = members(self.ptr, graphs), members(self.edge_ptr, graphs), offsets(self.sizes[graphs])
        shift = torch.repeat_interleave(self.ptr[graphs] - ptr[:-1], self.edge_ptr.diff()[graphs])
        return self._take(edges, nodes, self.edge_index[:, edges] - shift, len(nodes), ptr)

    @cached_property
    def _grouped(self) -> Graph:
        """The batch with its edges stored graph by graph."""
        return self._with_edges(torch.argsort(self.batch[self.edge_index[0]], stable=True))

    def _with_edges(self, order: Tensor) -> Graph:
        return self._take(order, slice(None), self.edge_index[:, order], self.num_nodes, self.ptr)

    def _take(self, edges: _Which, nodes: _Which, edge_index: Tensor, num_nodes: int, ptr: Tensor) -> Graph:
        """Return a subgraph with its attributes, numbered as in ``edge_index``, without validating it again."""

        def picked(values: Tensor | None, which: _Which) -> Tensor | None:
            return None if values is None else values[which]

        return Graph(
            edge_index,
            num_nodes,
            edge_weight=picked(self.edge_weight, edges),
            labels=picked(self.labels, nodes),
            edge_type=picked(self.edge_type, edges),
            ptr=ptr,
            _trusted=True,
        )

    @classmethod
    def union(cls, graphs: Iterable[Graph]) -> Graph:
        """Join graphs or batches into one batch, in order.

        Labels and types must be on all graphs or on none; a graph without weights has weights 1.

        Example:
            >>> Graph.union(Graph.from_edges([(0, 1)], num_nodes=n) for n in (2, 3))
            Graph(graphs=2, nodes=5, edges=2, directed)
        """
        graphs = list(graphs)
        if not graphs:
            raise ValueError("union needs at least one graph, got an empty list")
        if len(graphs) == 1:
            return graphs[0]
        starts = np.cumsum([0] + [graph.num_nodes for graph in graphs]).tolist()

        def join(name: str) -> Tensor | None:
            values = [getattr(graph, name) for graph in graphs]
            if all(value is None for value in values):
                return None
            if name == "edge_weight":
                values = [g.adjacency.weights if w is None else w for g, w in zip(graphs, values, strict=True)]
            if any(value is None for value in values):
                without = next(i for i, value in enumerate(values) if value is None)
                raise ValueError(f"graph {without} has no {name}, others have; give it to all graphs or none")
            return torch.cat(values)

        return cls(
            torch.cat([g.edge_index + s for g, s in zip(graphs, starts, strict=False)], 1),
            starts[-1],
            edge_weight=join("edge_weight"),
            labels=join("labels"),
            edge_type=join("edge_type"),
            ptr=torch.cat([graphs[0].ptr[:1]] + [g.ptr[1:] + s for g, s in zip(graphs, starts, strict=False)]),
            _trusted=True,
        )


def _top(values: Tensor) -> int:
    return int(values.max()) + 1 if values.numel() else 0
