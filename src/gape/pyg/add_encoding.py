"""The transform behind all others: any encoding, for ``Data``, ``Batch`` and data sets in memory."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from gape.encodings import Encoding, Pairs
from gape.interop import as_graph

try:
    from torch_geometric.data import Batch
    from torch_geometric.data.datapipes import functional_transform
    from torch_geometric.transforms import BaseTransform
except ImportError as error:
    raise ImportError("gape.pyg needs PyTorch Geometric: pip install 'gape[pyg]'") from error


@functional_transform("add_position_encoding")
class AddEncoding(BaseTransform):  # type: ignore[misc]
    """Adds any encoding of :mod:`gape.encodings` to a graph (functional name: ``add_position_encoding``).

    As ``transform`` it is computed at every access, as ``pre_transform`` once per graph; :meth:`over` computes it once
    for all graphs of a data set together, which is the fastest way by far.

    Args:
        encoding: its settings.
        attr_name: where to put it: ``[num_nodes, k]``; an encoding of pairs flat, ``[n², …]``, so that batches just
            join them. ``None`` joins it to ``x`` (which becomes floating-point if it was not).

    Example:
        >>> import torch_geometric.data
        >>> path = torch_geometric.data.Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> from gape.encodings import RandomWalk
        >>> AddEncoding(RandomWalk(length=2))(path).pe
        tensor([[0., 1.],
                [0., 1.]])
    """

    def __init__(self, encoding: Encoding, attr_name: str | None = "pe") -> None:
        if attr_name is None and encoding.pairwise:
            raise ValueError(f"{type(encoding).__name__} has numbers for pairs of nodes, which cannot join x; name it")
        if attr_name is not None and (not attr_name or any(word in attr_name for word in ("index", "batch", "face"))):
            raise ValueError(f"attr_name {attr_name!r} cannot be: PyG takes 'index', 'batch', 'face' for node numbers")
        self.encoding = encoding
        self.attr_name = attr_name

    def forward(self, data: Any) -> Any:
        """Encode a ``Data`` or a ``Batch``."""
        graph = as_graph(data)
        found = self.encoding(graph)
        name = self._attach(data, found)
        if isinstance(data, Batch) and hasattr(data, "_slice_dict"):
            # Lets batch[i] and batch.to_data_list() give each graph its part.
            ptr = found.ptr if isinstance(found, Pairs) else graph.ptr
            data._slice_dict = {**data._slice_dict, name: ptr.cpu()}
            data._inc_dict = {**data._inc_dict, name: torch.zeros(graph.num_graphs, dtype=torch.int64)}
        return data

    def over(self, dataset: Any) -> Any:
        """The data set with every graph encoded, all together; the argument stays as it is.

        Both share the storage of all other attributes. For a view, such as a training split, the whole storage is
        encoded, so that other views of the result need nothing more.

        Args:
            dataset: a PyG ``InMemoryDataset``.
        """
        if getattr(dataset, "_data", None) is None:
            raise ValueError(f"expected a PyG InMemoryDataset, got {type(dataset).__name__}; use it as pre_transform")
        whole = copy.copy(dataset)
        whole._indices, whole._data_list = None, None
        whole._data = copy.copy(dataset._data)
        graph = as_graph(whole)
        found = self.encoding(graph)
        name = self._attach(whole._data, found)
        if dataset.slices is not None:
            whole.slices = {**dataset.slices, name: found.ptr if isinstance(found, Pairs) else graph.ptr}
        whole._indices = dataset._indices
        return whole

    def _attach(self, data: Any, found: Tensor | Pairs) -> str:
        values = found.values if isinstance(found, Pairs) else found
        if self.attr_name is not None:
            data[self.attr_name] = values
            return self.attr_name
        if values.dim() != 2:
            raise ValueError(f"an encoding of shape {list(values.shape)} cannot join x; give attr_name")
        x = data.x
        if x is not None:
            x = x.unsqueeze(-1) if x.dim() == 1 else x
            dtype = torch.promote_types(x.dtype, values.dtype)
            values = torch.cat([x.to(dtype), values.to(dtype)], dim=-1)
        data.x = values
        return "x"

    def __repr__(self) -> str:
        settings = [f"{field.name}={getattr(self.encoding, field.name)!r}" for field in fields(self.encoding)]
        if type(self) is AddEncoding:
            settings = [repr(self.encoding)]
        return f"{type(self).__name__}({', '.join(settings)}, attr_name={self.attr_name!r})"
