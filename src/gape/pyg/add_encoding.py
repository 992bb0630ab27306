"""The transform behind all others: any encoding, for ``Data``, ``Batch`` and data sets in memory."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data.datapipes import functional_transform

from gape.encodings import Encoding, Pairs, make
from gape.graph.graph import Graph
from gape.pyg.graph_transform import GraphTransform

# What PyG takes for node numbers, edges or a number of nodes, by these words in a name.
WORDS = ("index", "batch", "face", "edge", "adj")
NAMES = ("", "num_nodes", "ptr")
# Of pairs there are n², so their name must not be one by which PyG counts nodes either.
PAIR_NAMES = ("x", "pos", "feature", "n_id")


@functional_transform("add_position_encoding")
class AddEncoding(GraphTransform):
    """Adds any encoding of :mod:`gape.encodings` to a graph (functional name: ``add_position_encoding``).

    As ``transform`` it is computed at every access, as ``pre_transform`` once per graph; :meth:`over` computes it once
    for all graphs of a data set together, which is the fastest way by far.

    Args:
        encoding: an encoding, or the name of one with its default settings.
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

    def __init__(self, encoding: Encoding | str, attr_name: str | None = "pe") -> None:
        if isinstance(encoding, str):
            encoding = make(encoding)
        if not isinstance(encoding, Encoding):
            raise ValueError(f"expected an encoding such as gape.encodings.RandomWalk(), got {encoding!r}")
        if attr_name is None and encoding.pairwise:
            raise ValueError(f"{type(encoding).__name__} has numbers for pairs of nodes, which cannot join x; name it")
        if attr_name is not None:
            _check_name(attr_name, encoding.pairwise)
        self.encoding = encoding
        self.attr_name = attr_name

    def compute(self, graph: Graph, data: Any) -> dict[str, tuple[Tensor, Tensor]]:
        found = self.encoding(graph)
        values, ptr = (found.values, found.ptr) if isinstance(found, Pairs) else (found, graph.ptr)
        if self.attr_name is not None:
            return {self.attr_name: (values, ptr)}
        if values.dim() != 2:
            raise ValueError(f"an encoding of shape {list(values.shape)} cannot join x; give attr_name")
        x = data.x
        if x is not None:
            x = x.unsqueeze(-1) if x.dim() == 1 else x
            dtype = torch.promote_types(x.dtype, values.dtype)
            values = torch.cat([x.to(dtype), values.to(dtype)], dim=-1)
        return {"x": (values, ptr)}

    def __repr__(self) -> str:
        settings = [f"{field.name}={getattr(self.encoding, field.name)!r}" for field in fields(self.encoding)]
        if type(self) is AddEncoding:
            settings = [repr(self.encoding)]
        return f"{type(self).__name__}({', '.join(settings)}, attr_name={self.attr_name!r})"


def _check_name(name: str, pairwise: bool) -> None:
    if not isinstance(name, str):
        raise ValueError(f"attr_name must be a text, or None to join x, got {name!r}")
    misread = name in NAMES or any(word in name for word in WORDS)
    if misread or (pairwise and (name in PAIR_NAMES or "node" in name)):
        raise ValueError(f"attr_name {name!r} cannot be: PyG reads node numbers, edges or a number of nodes from it")
