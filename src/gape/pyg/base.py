"""Base of the transforms, for ``Data``, ``Batch`` and in-memory datasets, and the transform that adds any encoding."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, Dataset, HeteroData
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from gape._internal.warnings import warn_caller
from gape.encodings import Encoding, Pairs, make
from gape.encodings.gape import encode_relational
from gape.graph.convert import as_graph
from gape.graph.graph import Graph

# PyG takes an attribute for node numbers, edges or a number of nodes if its name contains one of these words ...
RESERVED_WORDS = ("index", "batch", "face", "edge", "adj")
# ... or is one of these.
RESERVED_NAMES = ("", "num_nodes", "ptr")
# Names from which PyG infers the number of nodes; encodings of pairs have n² rows.
NODE_NAMES = ("x", "pos", "feature", "n_id")


class GraphTransform(BaseTransform):  # type: ignore[misc]
    """Transform that computes attributes from one graph, or from many at once."""

    @abstractmethod
    def compute(self, graph: Graph, data: Any) -> dict[str, tuple[Tensor, Tensor]]:
        """Compute by name the attribute of all graphs together and the offsets ``[graphs + 1]`` of each graph's rows.

        ``data`` holds the same graphs, collated by PyG. An attribute whose name ends in ``_index`` is ``[2, …]`` with
        node numbers within each graph, from 0.
        """

    def forward(self, data: Any) -> Any:
        """Add the attributes to a :class:`torch_geometric.data.Data` or :class:`torch_geometric.data.Batch`."""
        if not isinstance(data, Data):
            raise ValueError(f"{type(self).__name__} takes a PyG Data or Batch, got {_describe(data)}")
        graph = as_graph(data)
        for name, (value, ptr) in self.compute(graph, data).items():
            first = graph.ptr[:-1]
            # As in edge_index, nodes of a batch are numbered through.
            data[name] = value + first.repeat_interleave(ptr.diff()) if _holds_nodes(name) else value
            if isinstance(data, Batch) and hasattr(data, "_slice_dict"):
                # Lets batch[i] and batch.to_data_list() slice the attribute.
                shift = first if _holds_nodes(name) else torch.zeros_like(first)
                data._slice_dict = {**data._slice_dict, name: ptr.cpu()}
                data._inc_dict = {**data._inc_dict, name: shift.cpu()}
        return data

    def over(self, dataset: Any) -> Any:
        """Return a copy of the dataset, or of a list of graphs, with the attributes of every graph, from one batch.

        The copy shares the storage of all other attributes. For a view, such as a training split, the attributes are
        computed for the whole storage, so other views of the result have them too. As with ``pre_transform``, the
        stored graphs are used; a ``transform`` of the dataset runs later, on access, and causes a warning.

        Args:
            dataset: a :class:`torch_geometric.data.InMemoryDataset`, or a list of ``Data``.
        """
        if isinstance(dataset, list | tuple):
            return self._over_list(dataset)
        if not isinstance(getattr(dataset, "_data", None), Data):
            raise ValueError(
                f"{type(self).__name__}.over takes a PyG InMemoryDataset or a list of Data, got {_describe(dataset)}"
            )
        if getattr(dataset, "transform", None) is not None:
            warn_caller(
                f"{type(self).__name__}.over encodes the graphs as they are stored, before the dataset's transform "
                f"{dataset.transform!r}; if that changes edges, pass it to the dataset as pre_transform"
            )
        whole = copy.copy(dataset)
        whole._indices, whole._data_list, whole.transform = None, None, None
        whole._data = copy.copy(dataset._data)
        slices = {}
        for name, (value, ptr) in self.compute(as_graph(whole), whole._data).items():
            whole._data[name], slices[name] = value, ptr
        if dataset.slices is not None:
            whole.slices = {**dataset.slices, **slices}
        whole._indices, whole.transform = dataset._indices, dataset.transform
        return whole

    def _over_list(self, graphs: Sequence[Any]) -> list[Any]:
        for place, data in enumerate(graphs):
            if not isinstance(data, Data) or isinstance(data, Batch):
                raise ValueError(
                    f"{type(self).__name__}.over takes a PyG InMemoryDataset or a list of Data, got a list with "
                    f"{_describe(data)} at place {place}"
                )
        copies = [copy.copy(data) for data in graphs]
        for name, (value, ptr) in self.compute(as_graph(graphs), _Features(graphs)).items():
            each = torch.split(value, ptr.diff().tolist(), dim=1 if _holds_nodes(name) else 0)
            for data, rows in zip(copies, each, strict=True):
                data[name] = rows
        return copies


def _holds_nodes(name: str) -> bool:
    return name.endswith("_index")


class _Features:
    """Node features of a list of graphs, joined when they are read."""

    def __init__(self, graphs: Sequence[Any]) -> None:
        self._graphs = graphs

    @property
    def x(self) -> Tensor | None:
        found = [data.x for data in self._graphs]
        missing = [place for place, x in enumerate(found) if x is None]
        if len(missing) == len(found):
            return None
        if missing:
            raise ValueError(f"graph {missing[0]} of the list has no x, others have; give it to all graphs or none")
        return torch.cat(found)


def _describe(data: Any) -> str:
    """Describe unsupported input and what to do instead, for an error message."""
    name = type(data).__name__
    if isinstance(data, HeteroData) or isinstance(getattr(data, "_data", None), HeteroData):
        return f"{name}, whose nodes have several types; call an encoding's transform on its graphs, one by one"
    if isinstance(data, Data):
        return f"{name}; call the transform on it, without .over"
    if isinstance(getattr(data, "_data", None), Data):
        return f"the dataset {data!r}; use .over(dataset), or pass the transform to the dataset"
    if isinstance(data, Dataset):
        return f"{data!r}, which holds no graphs in memory; pass it the transform as transform or pre_transform"
    if isinstance(data, list | tuple):
        return f"a {name}; use .over({name}), which returns a list"
    return f"{name}; use gape.encode for graphs outside PyG"


@functional_transform("add_position_encoding")
class AddEncoding(GraphTransform):
    """Adds any encoding of :mod:`gape.encodings` to a graph (functional name: ``add_position_encoding``).

    As ``transform`` it runs at every access, as ``pre_transform`` once per graph; :meth:`over` runs it once for all
    graphs of a dataset together, which is the fastest by far.

    Args:
        encoding: an encoding, or the name of one with its default settings.
        attr_name: name of the attribute, ``[num_nodes, k]``; an encoding of pairs is flat, ``[n², …]``, so that
            batching concatenates it. ``None`` appends the encoding to ``x``, which becomes floating-point.
        reverse_relations: of a ``HeteroData``: walk every relation in both directions, the reverse being a relation of
            its own. Node types are labels and relations edge types, see :class:`gape.encodings.RelationalGAPE`.

    Example:
        >>> import torch_geometric.data
        >>> path = torch_geometric.data.Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> from gape.encodings import RandomWalk
        >>> AddEncoding(RandomWalk(length=2))(path).pe
        tensor([[0., 1.],
                [0., 1.]])
    """

    def __init__(
        self, encoding: Encoding | str, attr_name: str | None = "pe", *, reverse_relations: bool = False
    ) -> None:
        if isinstance(encoding, str):
            encoding = make(encoding)
        if not isinstance(encoding, Encoding):
            raise ValueError(f"expected an encoding such as gape.encodings.RandomWalk(), got {encoding!r}")
        if attr_name is None and encoding.pairwise:
            raise ValueError(
                f"{type(encoding).__name__} encodes pairs of nodes, which cannot be appended to x; set attr_name"
            )
        if attr_name is not None:
            check_name(attr_name, encoding.pairwise)
        self.encoding = encoding
        self.attr_name = attr_name
        self.reverse_relations = reverse_relations

    def forward(self, data: Any) -> Any:
        """Add the encoding to a ``Data``, a ``Batch``, or to every node type of a ``HeteroData``."""
        if not isinstance(data, HeteroData):
            return super().forward(data)
        for node_type, rows in encode_relational(data, self.encoding, reverse=self.reverse_relations).items():
            store = data[node_type]
            store[self.attr_name or "x"] = rows if self.attr_name else _appended(store.get("x"), rows)
        return data

    def compute(self, graph: Graph, data: Any) -> dict[str, tuple[Tensor, Tensor]]:
        found = self.encoding.compute(graph)
        values, ptr = (found.values, found.ptr) if isinstance(found, Pairs) else (found, graph.ptr)
        # Only zeros: one graph at a time, equal rows may be right, as on a ring.
        self.encoding.warn_if_zero(values, graph)
        if self.attr_name is not None:
            return {self.attr_name: (values, ptr)}
        if values.dim() != 2:
            raise ValueError(
                f"an encoding of shape {list(values.shape)} cannot be appended to x, which has two dimensions; "
                "set attr_name"
            )
        return {"x": (_appended(data.x, values), ptr)}

    def __repr__(self) -> str:
        settings = [f"{field.name}={getattr(self.encoding, field.name)!r}" for field in fields(self.encoding)]
        if type(self) is AddEncoding:
            settings = [repr(self.encoding)]
        return f"{type(self).__name__}({', '.join(settings)}, attr_name={self.attr_name!r})"


def _appended(x: Tensor | None, values: Tensor) -> Tensor:
    """Append an encoding to the features of nodes, if there are any."""
    if x is None:
        return values
    x = x.unsqueeze(-1) if x.dim() == 1 else x
    dtype = torch.promote_types(x.dtype, values.dtype)
    return torch.cat([x.to(dtype), values.to(dtype)], dim=-1)


def check_name(name: str, pairwise: bool) -> None:
    """Raise if PyG would misread an attribute of that name."""
    if not isinstance(name, str):
        raise ValueError(f"attr_name must be a string, or None to append to x, got {name!r}")
    reserved = name in RESERVED_NAMES or any(word in name for word in RESERVED_WORDS)
    if reserved or (pairwise and (name in NODE_NAMES or "node" in name)):
        raise ValueError(
            f"attr_name {name!r} is reserved: PyG would read node numbers, edges or a number of nodes from it; "
            "choose another name"
        )
