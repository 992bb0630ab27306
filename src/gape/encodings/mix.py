"""Features of several encodings side by side, each with its own scaling, from shared eigendecompositions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from gape._internal.validation import check_one_of
from gape.encodings.base import Encoding
from gape.encodings.laplacian import Spectrum
from gape.encodings.pairs import Pairs
from gape.encodings.sequence import CycleSpectrum
from gape.encodings.spectral import SpectralEncoding, as_spectral, compute_spectral
from gape.graph.graph import Graph

MixScaling = Literal["none", "column", "row"]


@dataclass(frozen=True)
class Mix(Encoding):
    """Features of several encodings side by side, in the order given: all of nodes, or all of pairs.

    As GraphGPS concatenates position and structure (Rampášek et al., 2022).

    By name: ``gape.encodings.make("rw+lape+gape-rooted")``, with settings such as ``{"rw.length": 16}`` and
    ``{"lape.scaling": "column"}``. Encodings that need all eigenpairs of the same Laplacian (``heat``, ``resistance``,
    ``electrostatic``) share one decomposition per graph, and ``lape`` takes its eigenvectors from it.

    Args:
        parts: the encodings, at least two.
        scaling: one per part, or empty for no scaling: "none"; "column", every feature divided by its root mean square
            over the graph, so that eigenvectors of graphs of any size are of order 1; "row", the features of every node
            or pair scaled to norm 1. For statistics of a training set see :class:`gape.nn.FeatureScaling`.

    Returns, when called on a graph: ``[num_nodes, Σ k]``, or :class:`Pairs` of ``[n, n, Σ k]``.

    Example:
        >>> from gape.encodings import Laplacian, RandomWalk
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> Mix((RandomWalk(5), Laplacian(2)), scaling=("none", "column"))(triangle).shape
        torch.Size([3, 7])
    """

    parts: tuple[Encoding, ...] = ()
    scaling: tuple[MixScaling, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.parts) < 2:
            raise ValueError(f"Mix needs at least two encodings, got {len(self.parts)}")
        if self.scaling and len(self.scaling) != len(self.parts):
            raise ValueError(f"scaling needs one name for each of {len(self.parts)} encodings, got {self.scaling!r}")
        for name in self.scaling:
            check_one_of(get_args(MixScaling), scaling=name)
        for part in self.parts:
            if isinstance(part, Spectrum | CycleSpectrum):
                raise ValueError(
                    f"{part!r} has two numbers per node and eigenvalue and cannot stand beside others; "
                    "use 'lape' for the eigenvectors"
                )
        of_pairs = [part for part in self.parts if part.pairwise]
        if of_pairs and len(of_pairs) < len(self.parts):
            raise ValueError(
                f"{of_pairs[0]!r} encodes pairs of nodes and others encode nodes; choose the same readout for all, "
                "or make two encodings"
            )
        # Versions only grow, so the sum of those of all parts changes with any of them.
        object.__setattr__(self, "version", sum(part.version for part in self.parts))

    @property
    def pairwise(self) -> bool:
        return self.parts[0].pairwise

    def compute(self, graph: Graph) -> Tensor | Pairs:
        # Validate the graphs for all encodings first.
        for part in self.parts:
            spectral = as_spectral(part)
            if spectral is not None:
                spectral.matrix.check(graph)
        found: dict[int, Tensor | Pairs] = {}
        for group in self._groups():
            together = compute_spectral(list(group.values()), graph)
            found.update(zip(group, together, strict=True))
        rows = graph.sizes.square() if self.pairwise else graph.sizes
        columns = []
        for i, part in enumerate(self.parts):
            values = found[i] if i in found else part.compute(graph)
            values = _columns(values.values if isinstance(values, Pairs) else values, part)
            columns.append(_scaled(values, self.scaling[i] if self.scaling else "none", rows).to(self.dtype))
        joined = torch.cat(columns, 1)
        return Pairs(joined, graph.sizes) if self.pairwise else joined

    def _groups(self) -> list[dict[int, SpectralEncoding]]:
        """Group the parts, by number, that share a decomposition; those that gain nothing from it are in no group."""
        groups: dict[str, dict[int, SpectralEncoding]] = {}
        for i, part in enumerate(self.parts):
            spectral = as_spectral(part)
            if spectral is not None:
                groups.setdefault(spectral.matrix.name, {})[i] = spectral
        needs_all = [i for i, part in enumerate(self.parts) if isinstance(part, SpectralEncoding)]
        return [group for group in groups.values() if len(group) > 1 and any(i in group for i in needs_all)]


def _columns(values: Tensor, part: Encoding) -> Tensor:
    values = values.unsqueeze(1) if values.dim() == 1 else values
    if values.dim() != 2:
        raise ValueError(f"{part!r} does not give one row of features per node or pair")
    return values


def _scaled(values: Tensor, scaling: MixScaling, rows: Tensor) -> Tensor:
    """Scale ``[Σ rows, k]``, where graph i has ``rows[i]`` rows."""
    if scaling == "none":
        return values
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    if scaling == "row":
        size = torch.linalg.vector_norm(values, dim=1, keepdim=True)
    else:
        graph = torch.arange(len(rows), device=values.device).repeat_interleave(rows)
        squares = values.new_zeros(len(rows), values.shape[1]).index_add_(0, graph, values.square())
        size = (squares / rows.clamp(min=1).unsqueeze(1)).sqrt()[graph]
    return values / torch.where(size > 0, size, 1.0)
