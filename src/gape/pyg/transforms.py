"""One transform per encoding, with the attribute name and defaults of the most important settings."""

from __future__ import annotations

from typing import Any

from torch_geometric.data.datapipes import functional_transform

from gape.encodings import make
from gape.pyg.base import AddEncoding


@functional_transform("add_gape")
class AddGAPE(AddEncoding):
    """Adds GAPE (Soga & Chiang, TMLR 2023): the weights with which an automaton reaches each node.

    Args:
        states: number of states, and so of features.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.GAPE`; ``readout="pair"`` gives relative encodings like RRWP.

    Example:
        >>> AddGAPE(states=16, damping=0.05).encoding.damping
        0.05
    """

    def __init__(self, states: int = 32, attr_name: str | None = "gape", **settings: Any) -> None:
        super().__init__(make("gape", states=states, **settings), attr_name)


@functional_transform("add_random_walk")
class AddRandomWalk(AddEncoding):
    """Adds the return probabilities of random walks (Dwivedi et al., 2022), with edge weights.

    Args:
        length: number of steps, and so of features.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.RandomWalk`.
    """

    def __init__(self, length: int = 20, attr_name: str | None = "random_walk", **settings: Any) -> None:
        super().__init__(make("rw", length=length, **settings), attr_name)


@functional_transform("add_laplacian")
class AddLaplacian(AddEncoding):
    """Adds Laplacian eigenvectors of the lowest nonzero eigenvalues (LAPE; Dwivedi et al., 2020).

    Signs are the same at every call; :func:`gape.encodings.random_flips` flips them for training.

    Args:
        vectors: number of eigenvectors, and so of features.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.Laplacian`.
    """

    def __init__(self, vectors: int = 8, attr_name: str | None = "laplacian", **settings: Any) -> None:
        super().__init__(make("lape", vectors=vectors, **settings), attr_name)


@functional_transform("add_spectrum")
class AddSpectrum(AddEncoding):
    """Adds the input of spectral attention (SA; Kreuzer et al., 2021): ``[num_nodes, pairs, 2]``, NaN where missing.

    Args:
        pairs: number of eigenpairs.
        attr_name: name of the attribute.
        settings: other settings of :class:`gape.encodings.Spectrum`.
    """

    def __init__(self, pairs: int = 10, attr_name: str | None = "spectrum", **settings: Any) -> None:
        super().__init__(make("sa", pairs=pairs, **settings), attr_name)


@functional_transform("add_shortest_path")
class AddShortestPath(AddEncoding):
    """Adds shortest-path distances between all pairs of nodes (SPD; Ying et al., 2021), flat ``[n²]`` integers.

    ``Pairs(batch.shortest_path, batch.ptr.diff()).padded()`` is the dense form for attention.

    Args:
        cap: distance of pairs without a path; longer paths count as ``cap - 1``.
        attr_name: name of the attribute.
        settings: other settings of :class:`gape.encodings.ShortestPath`.
    """

    def __init__(self, cap: int = 510, attr_name: str | None = "shortest_path", **settings: Any) -> None:
        super().__init__(make("spd", cap=cap, **settings), attr_name)


@functional_transform("add_degree")
class AddDegree(AddEncoding):
    """Adds in-degree and out-degree (the C of SPD+C; Ying et al., 2021), ``[num_nodes, 2]`` integers.

    Args:
        cap: largest degree, above which degrees are clipped; ``None`` for no limit.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.Degree`.
    """

    def __init__(self, cap: int | None = None, attr_name: str | None = "degree", **settings: Any) -> None:
        super().__init__(make("degree", cap=cap, **settings), attr_name)


@functional_transform("add_pagerank")
class AddPageRank(AddEncoding):
    """Adds personalised PageRank between all pairs of nodes (Page et al., 1999), flat ``[n²]``.

    Args:
        beta: restart probability.
        attr_name: name of the attribute.
        settings: other settings of :class:`gape.encodings.PageRank`.
    """

    def __init__(self, beta: float = 0.15, attr_name: str | None = "pagerank", **settings: Any) -> None:
        super().__init__(make("ppr", beta=beta, **settings), attr_name)


@functional_transform("add_pprp")
class AddPPRP(AddEncoding):
    """Adds the diagonals of personalised PageRank of walk powers (PPRP; Soga & Chiang, TMLR 2023, §3.3.3).

    Args:
        powers: number of powers, and so of features.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.PageRankPowers`.
    """

    def __init__(self, powers: int = 20, attr_name: str | None = "pprp", **settings: Any) -> None:
        super().__init__(make("pprp", powers=powers, **settings), attr_name)
