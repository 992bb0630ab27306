"""Adjacency matrices in files: SciPy's ``.npz`` and Matrix Market ``.mtx``; entry ``[u, v]`` is the weight of u → v."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse

from gape._internal.files import NPZ_ERRORS
from gape.graph.convert import as_graph
from gape.io.named import NamedGraphs, numbered


def read_npz(path: Path) -> NamedGraphs:
    """What ``scipy.sparse.save_npz`` wrote, or the bare arrays ``indptr`` and ``indices`` (and ``data``) of a CSR
    matrix.
    """
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no archive of arrays")
        with np.load(path, allow_pickle=False) as arrays:
            held = set(arrays.files)
            if "format" in held:
                return numbered(as_graph(scipy.sparse.load_npz(path)))
            if not {"indptr", "indices"} <= held:
                raise ValueError(f"it holds the arrays {', '.join(sorted(held))}, which are no sparse matrix")
            # Counts may come as unsigned numbers, which SciPy does not take.
            indptr, indices = arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int64)
            data = arrays["data"] if "data" in held else np.ones(len(indices))
            size = len(indptr) - 1
            return numbered(as_graph(scipy.sparse.csr_array((data, indices, indptr), shape=(size, size))))
    except (FileNotFoundError, PermissionError):
        raise  # the system's complaint, not one about the content
    except NPZ_ERRORS as error:
        raise ValueError(f"{path} cannot be read as a sparse matrix: {error}") from error


def read_mtx(path: Path) -> NamedGraphs:
    """A Matrix Market file; a symmetric one gives an undirected graph."""
    import scipy.io  # brings threadpoolctl along where there is one

    try:
        return numbered(as_graph(scipy.sparse.coo_array(scipy.io.mmread(path))))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path} cannot be read as a Matrix Market file: {error}") from error
