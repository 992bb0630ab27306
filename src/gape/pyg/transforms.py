"""One transform for each encoding, thin: names, defaults and where the result goes."""

from __future__ import annotations

from typing import Any

from torch_geometric.data.datapipes import functional_transform

from gape.encodings import make
from gape.pyg.add_encoding import AddEncoding


@functional_transform("add_gape")
class AddGAPE(AddEncoding):
    """Adds GAPE (Soga & Chiang, TMLR 2023): the weights with which an automaton reaches each node.

    Args:
        states: number of states, and so of features.
        attr_name: where to put it, ``None`` to join ``x``.
        settings: others of :class:`gape.encodings.GAPE`; ``readout="pair"`` makes RRWP-like relative encodings.

    Example:
        >>> AddGAPE(states=16, damping=0.05).encoding.damping
        0.05
    """

    def __init__(self, states: int = 32, attr_name: str | None = "gape", **settings: Any) -> None:
        super().__init__(make("gape", states=states, **settings), attr_name)


@functional_transform("add_random_walk")
class AddRandomWalk(AddEncoding):
    """Adds the return probabilities of random walks (Dwivedi et al., 2022), edge weights honoured.

    Args:
        length: number of steps, and so of features.
        attr_name: where to put it, ``None`` to join ``x``.
        settings: others of :class:`gape.encodings.RandomWalk`.
    """

    def __init__(self, length: int = 20, attr_name: str | None = "random_walk", **settings: Any) -> None:
        super().__init__(make("rw", length=length, **settings), attr_name)


@functional_transform("add_laplacian")
class AddLaplacian(AddEncoding):
    """Adds Laplacian eigenvectors of the lowest nonzero eigenvalues (LAPE; Dwivedi et al., 2020).

    Signs are the same at every call; :func:`gape.encodings.random_flips` flips them for training.

    Args:
        vectors: number of eigenvectors, and so of features.
        attr_name: where to put it, ``None`` to join ``x``.
        settings: others of :class:`gape.encodings.Laplacian`.
    """

    def __init__(self, vectors: int = 8, attr_name: str | None = "laplacian", **settings: Any) -> None:
        super().__init__(make("lape", vectors=vectors, **settings), attr_name)


@functional_transform("add_spectrum")
class AddSpectrum(AddEncoding):
    """Adds what spectral attention looks at (SA; Kreuzer et al., 2021): ``[num_nodes, pairs, 2]``, NaN where missing.

    Args:
        pairs: number of eigenpairs.
        attr_name: where to put it.
        settings: others of :class:`gape.encodings.Spectrum`.
    """

    def __init__(self, pairs: int = 10, attr_name: str | None = "spectrum", **settings: Any) -> None:
        super().__init__(make("sa", pairs=pairs, **settings), attr_name)


@functional_transform("add_shortest_path")
class AddShortestPath(AddEncoding):
    """Adds the number of edges between each two nodes (SPD; Ying et al., 2021), flat ``[n²]`` integers.

    ``Pairs(batch.shortest_path, batch.ptr.diff()).padded()`` is the dense form for attention.

    Args:
        cap: the distance of nodes without a path; longer paths count as ``cap - 1``.
        attr_name: where to put it.
        settings: others of :class:`gape.encodings.ShortestPath`.
    """

    def __init__(self, cap: int = 510, attr_name: str | None = "shortest_path", **settings: Any) -> None:
        super().__init__(make("spd", cap=cap, **settings), attr_name)


@functional_transform("add_degree")
class AddDegree(AddEncoding):
    """Adds in-degree and out-degree (the C of SPD+C; Ying et al., 2021), ``[num_nodes, 2]`` integers.

    Args:
        cap: degrees above this count as this; ``None`` for no limit.
        attr_name: where to put it, ``None`` to join ``x``.
        settings: others of :class:`gape.encodings.Degree`.
    """

    def __init__(self, cap: int | None = None, attr_name: str | None = "degree", **settings: Any) -> None:
        super().__init__(make("degree", cap=cap, **settings), attr_name)


@functional_transform("add_pagerank")
class AddPageRank(AddEncoding):
    """Adds the personalised PageRank of each node for each other (Page et al., 1999), flat ``[n²]``.

    Args:
        beta: restart probability.
        attr_name: where to put it.
        settings: others of :class:`gape.encodings.PageRank`.
    """

    def __init__(self, beta: float = 0.15, attr_name: str | None = "pagerank", **settings: Any) -> None:
        super().__init__(make("ppr", beta=beta, **settings), attr_name)


@functional_transform("add_pprp")
class AddPPRP(AddEncoding):
    """Adds the diagonals of personalised PageRank of walk powers (PPRP; Soga & Chiang, TMLR 2023, §3.3.3).

    Args:
        powers: number of powers, and so of features.
        attr_name: where to put it, ``None`` to join ``x``.
        settings: others of :class:`gape.encodings.PageRankPowers`.
    """

    def __init__(self, powers: int = 20, attr_name: str | None = "pprp", **settings: Any) -> None:
        super().__init__(make("pprp", powers=powers, **settings), attr_name)
