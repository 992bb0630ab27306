"""What all transforms share: ``Data``, ``Batch``, and data sets in memory at once."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, Dataset, HeteroData
from torch_geometric.transforms import BaseTransform

from gape._internal.warnings import warn_caller
from gape.graph.convert import as_graph
from gape.graph.graph import Graph


class GraphTransform(BaseTransform):  # type: ignore[misc]
    """Attributes that are computed from a graph, or from many at once."""

    @abstractmethod
    def compute(self, graph: Graph, data: Any) -> dict[str, tuple[Tensor, Tensor]]:
        """By name: the attribute of all graphs together, and where each graph's rows begin, ``[graphs + 1]``.

        ``data`` is what the graphs came from, collated.
        """

    def forward(self, data: Any) -> Any:
        """Add the attributes to a ``Data`` or a ``Batch``."""
        if not isinstance(data, Data):
            raise ValueError(f"{type(self).__name__} takes a PyG Data or Batch, got {_what(data)}")
        graph = as_graph(data)
        for name, (value, ptr) in self.compute(graph, data).items():
            data[name] = value
            if isinstance(data, Batch) and hasattr(data, "_slice_dict"):
                # Lets batch[i] and batch.to_data_list() give each graph its part.
                data._slice_dict = {**data._slice_dict, name: ptr.cpu()}
                data._inc_dict = {**data._inc_dict, name: torch.zeros(graph.num_graphs, dtype=torch.int64)}
        return data

    def over(self, dataset: Any) -> Any:
        """The data set with the attributes of every graph, computed all together; the argument stays as it is.

        Both share the storage of all other attributes. For a view, such as a training split, the whole storage is
        done, so that other views of the result need nothing more. As with ``pre_transform``, the graphs are those in
        the storage; a ``transform`` of the data set is applied later, when they are taken out, and a warning says so.

        Args:
            dataset: a PyG ``InMemoryDataset``.
        """
        if not isinstance(getattr(dataset, "_data", None), Data):
            raise ValueError(f"{type(self).__name__}.over takes a PyG InMemoryDataset, got {_what(dataset)}")
        if getattr(dataset, "transform", None) is not None:
            warn_caller(
                f"{type(self).__name__}.over encodes the graphs as they are stored, before the data set's transform "
                f"{dataset.transform!r}; if that changes edges, pass it to the data set as pre_transform"
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


def _what(data: Any) -> str:
    """What it is that cannot be taken, and the way out."""
    name = type(data).__name__
    if isinstance(data, HeteroData) or isinstance(getattr(data, "_data", None), HeteroData):
        return f"{name}, whose nodes are of several types; take data.to_homogeneous() of its graphs"
    if isinstance(data, Data):
        return f"{name}; call the transform on it, without .over"
    if isinstance(getattr(data, "_data", None), Data):
        return f"the data set {data!r}; use .over(dataset), or pass the transform to the data set"
    if isinstance(data, Dataset):
        return f"{data!r}, which holds no graphs in memory; pass it the transform as transform or pre_transform"
    if isinstance(data, list | tuple):
        return f"a {name}; call the transform on Batch.from_data_list of it, whose to_data_list() gives the graphs back"
    return f"{name}; gape.encode takes all else that holds graphs"
