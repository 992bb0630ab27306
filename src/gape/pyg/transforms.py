"""One transform per encoding, with the attribute name and defaults of the most important settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data.datapipes import functional_transform

from gape.encodings import Pairs, RelativeRandomWalk, make
from gape.graph.batching import offsets
from gape.graph.graph import Graph
from gape.pyg.base import AddEncoding, GraphTransform, check_name


@functional_transform("add_gape")
class AddGAPE(AddEncoding):
    """Adds GAPE (Soga & Chiang, TMLR 2023): the weights with which an automaton reaches each node.

    Args:
        states: number of states, and so of features.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        reverse_relations: of a ``HeteroData``: walk every relation in both directions.
        settings: other settings of :class:`gape.encodings.GAPE`; ``readout="pair"`` gives relative encodings like RRWP,
            ``damping=0.02, relative=False`` the paper's numbers.

    Example:
        >>> AddGAPE(states=16).encoding.damping
        0.9
    """

    def __init__(
        self, states: int = 32, attr_name: str | None = "gape", *, reverse_relations: bool = False, **settings: Any
    ) -> None:
        super().__init__(make("gape", states=states, **settings), attr_name, reverse_relations=reverse_relations)


@functional_transform("add_rooted_gape")
class AddRootedGAPE(AddEncoding):
    """Adds rooted GAPE: closed runs of automata that see how far they are from the node.

    Args:
        machines: number of automata.
        layers: largest distance that is told apart; ``machines · (layers + 1)`` features.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.RootedGAPE`; ``radius=2`` bounds the cost on large graphs.

    Example:
        >>> AddRootedGAPE(machines=4, radius=2).encoding.radius
        2
    """

    def __init__(
        self, machines: int = 12, layers: int = 3, attr_name: str | None = "gape_rooted", **settings: Any
    ) -> None:
        super().__init__(make("gape-rooted", machines=machines, layers=layers, **settings), attr_name)


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


@functional_transform("add_rrwp")
class AddRRWP(GraphTransform):
    """Adds relative random-walk probabilities (RRWP; Ma et al., 2023) under the names that GRIT's encoders read.

    ``rrwp`` ``[n, length]`` for nodes; ``rrwp_index`` ``[2, P]`` and ``rrwp_val`` ``[P, length]`` for pairs (source,
    target); ``deg`` and ``log_deg`` ``[n]``, out-degrees and log(1 + degree). Unlike GRIT's transform it runs on whole
    datasets at once (:meth:`over`) and needs no compiled extension.

    Args:
        length: number of features, the first for walks of no step.
        full: all pairs of nodes of a graph; otherwise those that a walk of less than ``length`` steps joins.
        attr_name: prefix of the attributes.
        settings: other settings of :class:`gape.encodings.RelativeRandomWalk`.

    Example:
        >>> import torch_geometric.data
        >>> path = torch_geometric.data.Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> AddRRWP(length=2)(path).rrwp_index
        tensor([[0, 0, 1, 1, 2],
                [0, 1, 1, 2, 2]])
    """

    def __init__(self, length: int = 21, full: bool = False, attr_name: str = "rrwp", **settings: Any) -> None:
        self.encoding = RelativeRandomWalk(length, **settings)
        if not self.encoding.pairwise:
            raise ValueError("AddRRWP adds nodes and pairs; for nodes only use AddEncoding with readout='closed'")
        check_name(attr_name, pairwise=True)
        self.full, self.attr_name = full, attr_name

    def compute(self, graph: Graph, data: Any) -> dict[str, tuple[Tensor, Tensor]]:
        pairs = self.encoding.compute(graph)
        assert isinstance(pairs, Pairs)
        values, sizes = pairs.values, pairs.sizes
        size = sizes.repeat_interleave(sizes.square())
        place = torch.arange(len(values), device=values.device) - pairs.ptr[:-1].repeat_interleave(sizes.square())
        index = torch.stack([place // size.clamp(min=1), place % size.clamp(min=1)])
        loops = values[index[0] == index[1]]
        kept = torch.ones_like(place, dtype=torch.bool) if self.full else values.any(1)
        ptr = offsets(kept.to(torch.int64))[pairs.ptr]
        degree = graph.adjacency.out_degree.detach()
        return {
            self.attr_name: (loops, graph.ptr),
            f"{self.attr_name}_index": (index[:, kept], ptr),
            f"{self.attr_name}_val": (values[kept], ptr),
            "log_deg": ((degree + 1).log().to(values.dtype), graph.ptr),
            "deg": (degree.to(torch.int64), graph.ptr),
        }

    def __repr__(self) -> str:
        return f"AddRRWP({self.encoding!r}, full={self.full}, attr_name={self.attr_name!r})"


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


@functional_transform("add_heat_kernel")
class AddHeatKernel(AddEncoding):
    """Adds diagonals of the heat kernel (HKdiagSE; Kondor & Lafferty, 2002), or with ``readout="pair"`` flat pairs.

    Args:
        times: one feature per time.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.HeatKernel`.
    """

    def __init__(
        self, times: Sequence[float] = (0.5, 1, 2, 4, 8, 16), attr_name: str | None = "heat", **settings: Any
    ) -> None:
        super().__init__(make("heat", times=times, **settings), attr_name)


@functional_transform("add_resistance")
class AddResistance(AddEncoding):
    """Adds effective resistances between all pairs of nodes (Klein & Randić, 1993), flat ``[n², 1]``.

    Args:
        commute: commute times instead.
        attr_name: name of the attribute.
        settings: other settings of :class:`gape.encodings.EffectiveResistance`.
    """

    def __init__(self, commute: bool = False, attr_name: str | None = "resistance", **settings: Any) -> None:
        super().__init__(make("resistance", commute=commute, **settings), attr_name)


@functional_transform("add_electrostatic")
class AddElectrostatic(AddEncoding):
    """Adds statistics of electrostatic potentials (ElstaticSE; Rampášek et al., 2022), ``[num_nodes, 10]``.

    Args:
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: settings of :class:`gape.encodings.Electrostatic`.
    """

    def __init__(self, attr_name: str | None = "electrostatic", **settings: Any) -> None:
        super().__init__(make("electrostatic", **settings), attr_name)


@functional_transform("add_communicability")
class AddCommunicability(AddEncoding):
    """Adds sums over walks of all lengths (Estrada & Hatano, 2008), by default from each node back to itself.

    Args:
        betas: factors per step, one feature each.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.Communicability`.
    """

    def __init__(
        self, betas: Sequence[float] = (0.5, 0.9), attr_name: str | None = "communicability", **settings: Any
    ) -> None:
        super().__init__(make("communicability", betas=betas, **settings), attr_name)


@functional_transform("add_svd")
class AddSVD(AddEncoding):
    """Adds singular vectors of the adjacency matrix (Hussain et al., 2022), ``[num_nodes, 2 · rank]``.

    Args:
        rank: number of singular values.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.SingularVectors`.
    """

    def __init__(self, rank: int = 8, attr_name: str | None = "svd", **settings: Any) -> None:
        super().__init__(make("svd", rank=rank, **settings), attr_name)


@functional_transform("add_magnetic_laplacian")
class AddMagneticLaplacian(AddEncoding):
    """Adds eigenvectors of magnetic Laplacians of directed graphs (Geisler et al., 2023), real and imaginary parts.

    Args:
        vectors: number of eigenvectors per potential.
        potentials: one or several q (Huang et al., 2025).
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.MagneticLaplacian`.
    """

    def __init__(
        self,
        vectors: int = 8,
        potentials: Sequence[float] = (0.25,),
        attr_name: str | None = "magnetic",
        **settings: Any,
    ) -> None:
        super().__init__(make("magnetic", vectors=vectors, potentials=potentials, **settings), attr_name)


@functional_transform("add_walk_profile")
class AddWalkProfile(AddEncoding):
    """Adds walks by their steps forward and backward on directed graphs (Huang et al., 2025).

    Args:
        length: largest number of steps.
        attr_name: name of the attribute, ``None`` to append to ``x``.
        settings: other settings of :class:`gape.encodings.WalkProfile`.
    """

    def __init__(self, length: int = 4, attr_name: str | None = "walk_profile", **settings: Any) -> None:
        super().__init__(make("walk-profile", length=length, **settings), attr_name)
