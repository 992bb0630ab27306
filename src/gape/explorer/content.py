"""Content of a page: encodings that Python computed, and the basis with which the browser solves P = μᵀPA + αℓ.

The basis is eigenvectors, or a Schur form if the graph is directed. :class:`Arrays` holds it, and all other arrays of a
page: one base64 string of little-endian numbers, and an index that says where each array lies.
"""

from __future__ import annotations

import base64
import reprlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import torch
from numpy.typing import NDArray

from gape._internal.validation import as_tensor, check_finite
from gape.encodings.base import Encoding
from gape.encodings.gape import GAPE
from gape.encodings.registry import make
from gape.graph.graph import Graph
from gape.graph.spectral_radius import spectral_radii
from gape.graph.walk_matrix import WalkMatrix
from gape.solvers.solution import AlgebraicOnlyWarning, Status

#: Larger graphs get no encodings but GAPE by default: those below cost n² and more.
MAX_DEFAULT_NODES = 2_000
#: What a small graph's page holds beside live GAPE.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "rw": {"length": 16},
    "lape": {"vectors": 8, "symmetrize": True},
    "pprp": {"powers": 16},
}


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoding of all nodes.

    Args:
        title: its name.
        values: ``[n, k]``.
        settings: those that are not defaults, in words for the page; '' if it was given as numbers.
        status: the name of its certificate's worst status, '' without a certificate.
        radius: ρ(μ)ρ(A), NaN without a certificate.
        residual: the largest relative residual, NaN without a certificate.
    """

    title: str
    values: NDArray[Any]
    settings: str = ""
    status: str = ""
    radius: float = float("nan")
    residual: float = float("nan")


def encoded(title: str, what: Any, graph: Graph) -> Encoded:
    """Compute an encoding, or check features that were given as numbers."""
    if not isinstance(what, Encoding):
        given = as_tensor(what, f"encoding {title!r}").detach().cpu()
        if given.dim() != 2 or len(given) != graph.num_nodes or given.shape[1] == 0:
            raise ValueError(
                f"encoding {title!r} must have a row per node, [{graph.num_nodes}, k], got shape {list(given.shape)}"
            )
        check_finite(given, f"encoding {title!r}")
        return Encoded(title, given.to(torch.float64).numpy())
    if what.pairwise:
        raise ValueError(
            f"{title} has values per pair of nodes, and the explorer shows a row per node; leave it out, or give "
            f"encodings={{{title!r}: features}} with a row per node"
        )
    if not hasattr(what, "solve"):
        values = torch.as_tensor(what(graph)).double().flatten(1)
        return Encoded(title, values.numpy(), _changed_settings(what))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlgebraicOnlyWarning)  # the page says it
        solution = what.solve(graph)
    worst = max(solution.status, key=list(Status).index)
    radius, residual = (float(torch.nan_to_num(each).max()) for each in (solution.spectral_radius, solution.residual))
    return Encoded(title, solution.weights.double().numpy(), _changed_settings(what), worst.name, radius, residual)


def _changed_settings(encoding: Encoding) -> str:
    """Name an encoding and those of its settings that are not defaults, as one would type it."""
    default = {item.name: item.default for item in fields(encoding)}
    changed = {name: getattr(encoding, name) for name in default if getattr(encoding, name) != default[name]}
    changed.pop("dtype", None)
    return f"{type(encoding).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def chosen_encodings(
    encodings: Mapping[str, Any] | Sequence[str] | None, graph: Graph, gape: GAPE | None
) -> list[Encoded]:
    """Compute the encodings that a user chose, by name or as features; ``gape`` comes first if given."""
    if isinstance(encodings, str):
        encodings = [encodings]
    if encodings is None:
        small = 0 < graph.num_nodes <= MAX_DEFAULT_NODES
        items = [(name, make(name, **options)) for name, options in _DEFAULTS.items()] if small else []
    elif isinstance(encodings, Mapping):
        items = [(str(title), make(what) if isinstance(what, str) else what) for title, what in encodings.items()]
    elif isinstance(encodings, Sequence) and all(isinstance(name, str) for name in encodings):
        items = [(name, make(name)) for name in encodings]
    else:
        raise ValueError(
            "encodings must be names of encodings, or a mapping from titles to encodings or features [n, k], got "
            f"{reprlib.repr(encodings)}"
        )
    if gape is not None:
        taken = any(title == "GAPE" for title, _ in items)
        items.insert(0, ("GAPE, computed" if taken else "GAPE", gape))
    return [encoded(title, what, graph) for title, what in items]


#: Larger graphs are shown as computed, without sliders: their basis has n² numbers per walk matrix.
MAX_LIVE_NODES = 400
MAX_LIVE_NODES_DIRECTED = 256
#: Lengths of runs whose total weight is drawn: 0 to this.
RUN_STEPS = 30
#: Eigenvalues of a graph that is not live, those of largest modulus.
EXTREMAL_EIGENVALUES = 16
EIGENVECTORS = 4
# Entries of a Schur form below this, relative to the largest, are rounding.
NEGLIGIBLE_RATIO = 1e-15

_NORMALIZED = ("random_walk", "symmetric", "random_walk_in", "normalized_laplacian")
Matrix = NDArray[Any]
_TYPES = {"float64": "f8", "float32": "f4", "uint8": "u1", "uint16": "u2", "uint32": "u4"}
# Tables of features up to these sizes are stored in float64 and float32; larger ones in 16 bits, scaled per column.
MAX_DOUBLE_ELEMENTS, MAX_FLOAT_ELEMENTS = 20_000, 200_000


class Arrays:
    """Collects named arrays for a page.

    Example:
        >>> arrays = Arrays()
        >>> arrays.add("x", np.arange(3, dtype=np.uint8))
        'x'
        >>> arrays.index["x"], arrays.text
        ({'type': 'u1', 'shape': [3], 'start': 0}, 'AAEC')
    """

    def __init__(self) -> None:
        self.index: dict[str, dict[str, Any]] = {}
        self._bytes = bytearray()

    def add(self, name: str, values: Any, dtype: Any = None) -> str:
        """Store an array, aligned to eight bytes; return its name."""
        array = np.ascontiguousarray(values, dtype=dtype)
        self._bytes.extend(b"\0" * (-len(self._bytes) % 8))
        self.index[name] = {"type": _TYPES[array.dtype.name], "shape": list(array.shape), "start": len(self._bytes)}
        self._bytes.extend(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        return name

    def add_nodes(self, name: str, values: Any, num_nodes: int) -> str:
        """Store node numbers in as few bytes as they need."""
        return self.add(name, values, np.uint16 if num_nodes <= 2**16 else np.uint32)

    def add_features(self, name: str, values: Any) -> str:
        """Store ``[n, k]`` features: as floats, or, if there are many, in 65,536 steps of each column's range."""
        array = np.asarray(values, dtype=np.float64)
        if array.size <= MAX_FLOAT_ELEMENTS:
            return self.add(name, array, np.float64 if array.size <= MAX_DOUBLE_ELEMENTS else np.float32)
        low, high = array.min(0), array.max(0)
        step = np.where(high > low, (high - low) / 65535, 1.0)
        self.add(name, np.round((array - low) / step), np.uint16)
        self.index[name] |= {"low": low.tolist(), "step": step.tolist()}
        return name

    @property
    def text(self) -> str:
        return base64.b64encode(self._bytes).decode("ascii")


def is_live(graph: Graph) -> bool:
    """Return whether the page can recompute encodings of this graph."""
    return 0 < graph.num_nodes <= (MAX_LIVE_NODES if graph.undirected else MAX_LIVE_NODES_DIRECTED)


def pack_live(graph: Graph, arrays: Arrays) -> list[dict[str, Any]]:
    """Store a basis for every walk matrix that the page offers; return their descriptions."""
    positive = graph.edge_weight is None or bool((graph.edge_weight > 0).all())
    arrays.add_nodes("edges", graph.edge_index.cpu().numpy(), graph.num_nodes)
    if graph.edge_weight is not None:
        arrays.add("edge_weight", graph.edge_weight.detach().cpu().numpy(), np.float64)
    if not graph.undirected:
        names = ("adjacency", "random_walk", "random_walk_in") if positive else ("adjacency",)
        return [_pack_walk(graph, name, arrays) | _pack_schur(graph, name, arrays) for name in names]
    described = []
    bases: dict[str, tuple[str, ...]] = {
        "adjacency": ("adjacency",),
        "normalized": _NORMALIZED,
        "laplacian": ("laplacian",),
    }
    for basis, of_basis in bases.items():
        if basis == "normalized" and not positive:
            continue
        values, vectors = _eigenbasis(graph, "symmetric" if basis == "normalized" else basis)
        arrays.add(f"{basis}.vectors", vectors, np.float64)
        for name in of_basis:
            own = values
            if name == "normalized_laplacian":
                # A node without edges is a component of its own, with eigenvalue 0 of both matrices.
                diagonal = graph.walk(name).diagonal
                assert diagonal is not None
                own = diagonal.numpy() - values
            similar = graph.walk(name).similarity
            assert similar is not None  # undirected with positive weights
            entry = _pack_walk(graph, name, arrays) | {"basis": f"{basis}.vectors"}
            entry["values"] = arrays.add(f"{name}.values", own, np.float64)
            if bool((similar != 1).any()):
                entry["scale"] = arrays.add(f"{name}.scale", similar.numpy(), np.float64)
            described.append(entry)
    order = ("adjacency", *_NORMALIZED, "laplacian")
    return sorted(described, key=lambda entry: order.index(entry["name"]))


def pack_extremal(graph: Graph, arrays: Arrays) -> list[dict[str, Any]]:
    """Store the eigenvalues of largest modulus of the adjacency matrix, and eigenvectors of the first ones."""
    entry = _pack_walk(graph, "adjacency", arrays)
    matrix = scipy.sparse.csr_array(_sparse(graph.walk("adjacency")).T)
    count = min(EXTREMAL_EIGENVALUES, graph.num_nodes - 2)
    if count < 1 or entry["radius"] == 0.0:
        return [entry]
    solver = scipy.sparse.linalg.eigsh if graph.undirected else scipy.sparse.linalg.eigs
    start = np.random.default_rng(0).uniform(0.5, 1.5, graph.num_nodes)
    try:
        values, vectors = solver(matrix, k=count, which="LM", v0=start, ncv=4 * count + 16, maxiter=300, tol=1e-6)
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
    order = np.argsort(-np.abs(values), kind="stable")
    values = values[order]
    entry["values"] = arrays.add("adjacency.values", values.real, np.float64)
    entry["imaginary"] = arrays.add("adjacency.imaginary", values.imag, np.float64)
    if len(values):
        shown = vectors[:, order[:EIGENVECTORS]]
        real = shown.real if graph.undirected else abs(shown)
        entry["eigenvectors"] = arrays.add_features("adjacency.eigenvectors", real)
    return [entry]


def _pack_walk(graph: Graph, name: str, arrays: Arrays) -> dict[str, Any]:
    """Describe a walk matrix diag(d) + s · diag(l) A diag(r): its vectors, radii and norms of runs by length."""
    walk = graph.walk(name)
    radii = spectral_radii(graph, name)
    entry: dict[str, Any] = {
        "name": name,
        "sign": walk.sign,
        "radius": float(radii.max()),
        "radii": arrays.add(f"{name}.radii", radii.numpy(), np.float64),
    }
    if is_live(graph):
        for part in ("left", "right", "diagonal"):
            vector = getattr(walk, part)
            if vector is not None:
                entry[part] = arrays.add(f"{name}.{part}", vector.numpy(), np.float64)
    x = torch.ones(graph.num_nodes, dtype=torch.float64)
    norms = []
    for _ in range(RUN_STEPS + 1):
        parts = torch.tensor_split(x, graph.ptr[1:-1].cpu())
        norms.append([float(torch.linalg.vector_norm(part)) for part in parts])
        x = walk.push(x)
    entry["run_norms"] = arrays.add(f"{name}.run_norms", norms, np.float64)  # [steps, graphs]
    return entry


def _sparse(walk: WalkMatrix) -> scipy.sparse.csr_array:
    source, target, values = (part.detach().cpu().numpy() for part in walk.entries())
    return scipy.sparse.coo_array((values, (source, target)), shape=(walk.num_nodes, walk.num_nodes)).tocsr()


def _eigenbasis(graph: Graph, name: str) -> tuple[Matrix, Matrix]:
    """Return eigenvalues and orthonormal eigenvectors of a symmetric walk matrix, each of one component."""
    matrix = _sparse(graph.walk(name))
    component = scipy.sparse.csgraph.connected_components(_sparse(graph.walk("adjacency")), directed=False)[1]
    dense = matrix.toarray()
    values, vectors = np.zeros(len(dense)), np.zeros_like(dense)
    for each in range(component.max() + 1):
        nodes = np.flatnonzero(component == each)
        values[nodes], vectors[np.ix_(nodes, nodes)] = np.linalg.eigh(dense[np.ix_(nodes, nodes)])
    return values, vectors


def _pack_schur(graph: Graph, name: str, arrays: Arrays) -> dict[str, Any]:
    """Store Mᵀ = Z T Zᴴ, T upper triangular, as entries.

    Strongly connected components are transformed one by one, the targets of an edge before its source, so that the
    eigenvalues of a graph without cycles are exactly 0.
    """
    matrix = _sparse(graph.walk(name)).T.toarray()
    order = _targets_first(matrix)
    z = np.zeros(matrix.shape, dtype=np.complex128)
    at = 0
    for nodes in order:
        columns = np.arange(at, at + len(nodes))
        block = matrix[np.ix_(nodes, nodes)]
        z[np.ix_(nodes, columns)] = scipy.linalg.schur(block, output="complex")[1] if len(nodes) > 1 else 1.0
        at += len(nodes)
    t = np.triu(z.conj().T @ matrix @ z)
    t[np.abs(t) <= NEGLIGIBLE_RATIO * np.abs(t).max()] = 0.0
    entry: dict[str, Any] = {}
    for key, values in (("z", z), ("t", t)):
        kept = np.nonzero(values)
        entry[f"{key}_rows"] = arrays.add(f"{name}.{key}_rows", kept[0], np.uint16)
        entry[f"{key}_columns"] = arrays.add(f"{name}.{key}_columns", kept[1], np.uint16)
        entry[f"{key}_real"] = arrays.add(f"{name}.{key}_real", values[kept].real, np.float64)
        entry[f"{key}_imaginary"] = arrays.add(f"{name}.{key}_imaginary", values[kept].imag, np.float64)
    diagonal = np.diag(t)
    entry["values"] = arrays.add(f"{name}.values", diagonal.real, np.float64)
    entry["imaginary"] = arrays.add(f"{name}.imaginary", diagonal.imag, np.float64)
    return entry


def _targets_first(transposed: Matrix) -> list[NDArray[np.int64]]:
    """Return the strong components of a graph, each after all components that it has edges to."""
    links = scipy.sparse.csr_array((transposed != 0).T.astype(np.int8))
    count, component = scipy.sparse.csgraph.connected_components(links, directed=True, connection="strong")
    source, target = links.nonzero()
    ahead: list[set[int]] = [set() for _ in range(count)]
    for u, v in zip(component[source].tolist(), component[target].tolist(), strict=True):
        if u != v:
            ahead[u].add(v)
    placed: list[int] = []
    done: set[int] = set()
    while len(placed) < count:
        ready = [c for c in range(count) if c not in done and ahead[c] <= done]
        placed += ready
        done.update(ready)
    return [np.flatnonzero(component == c) for c in placed]
