"""PyG graphs saved by ``torch.save``, loaded without running any code that the file may hold."""

from __future__ import annotations

import pickle
import re
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from gape.io.named import NamedGraphs, graph_in, numbered

# What torch.load raises on files that are cut short or have changed bytes.
_DAMAGE = (
    pickle.UnpicklingError,
    struct.error,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


def read_pt(path: Path) -> NamedGraphs:
    """A ``.pt`` file that holds one of

    * a ``Data`` or a list of ``Data``;
    * what ``InMemoryDataset.save`` writes, that is a processed data set, old or new form;
    * a dict with ``edge_index`` and perhaps ``num_nodes`` and ``edge_weight``.

    Loaded with ``weights_only=True``, so objects of other classes are refused: heterogeneous graphs, and ``Batch``,
    whose class is made when it is loaded (save ``batch.to_data_list()``).
    """
    try:
        from torch_geometric.data import Data
        from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import GlobalStorage
    except ImportError as error:
        raise ImportError("reading .pt files needs PyTorch Geometric: pip install 'gape[pyg]'") from error
    try:
        # Leaving the block takes away what it was given, also what PyG itself had allowed before.
        allowed = torch.serialization.get_safe_globals()
        classes = [kind for kind in (Data, DataEdgeAttr, DataTensorAttr, GlobalStorage) if kind not in allowed]
        with torch.serialization.safe_globals(classes):
            held = torch.load(path, map_location="cpu", weights_only=True)
    except _DAMAGE as error:
        raise ValueError(f"{path} cannot be loaded safely: {_reason(error)}") from error
    return numbered(graph_in(path, _graphs_in(path, held)))


def _reason(error: Exception) -> str:
    found = re.search(r"Unsupported global: GLOBAL (\S+)", str(error))
    if found is None:
        return "it is damaged, or not a file of torch.save"
    way_out = "; save batch.to_data_list() instead" if ".batch." in found[1] else ""
    return f"it holds a {found[1]}; supported are Data, lists of Data, and processed data sets{way_out}"


def _graphs_in(path: Path, held: Any) -> Any:
    from torch_geometric.data import Data

    if isinstance(held, tuple) and len(held) in (2, 3) and (held[1] is None or isinstance(held[1], dict)):
        # InMemoryDataset.save: the collated storage (a dict, in older files a Data), slices, and since 2.5 its class.
        storage = SimpleNamespace(**held[0]) if isinstance(held[0], dict) else held[0]
        if held[1] is None:
            return _graphs_in(path, held[0])
        return SimpleNamespace(_data=storage, slices=held[1], _indices=None)
    if isinstance(held, dict):
        if "edge_index" not in held:
            raise ValueError(f"{path} holds a dict with {', '.join(map(str, held))}; it has no edge_index")
        return Data.from_dict(held)
    for item in held if isinstance(held, list) else [held]:
        if isinstance(item, Data) and "_store" not in vars(item):
            raise ValueError(f"{path} holds a Data without contents: damaged, or older than PyG 2.0; save it again")
    if not hasattr(held, "edge_index") and not isinstance(held, list):
        raise ValueError(f"{path} holds a {type(held).__name__}, expected PyG graphs")
    return held
