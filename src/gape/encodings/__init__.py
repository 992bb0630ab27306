"""Position encodings: frozen dataclasses of settings, called on a graph. :func:`encode` takes them by name."""

from gape.encodings.base import Encoding, NodeEncoding, PairEncoding
from gape.encodings.communicability import Communicability
from gape.encodings.degree import Degree
from gape.encodings.electrostatic import Electrostatic
from gape.encodings.encode import encode
from gape.encodings.gape import GAPE, RelationalGAPE
from gape.encodings.heat import HeatKernel
from gape.encodings.laplacian import Laplacian, Spectrum, random_flips, split_spectrum
from gape.encodings.magnetic import MagneticLaplacian
from gape.encodings.mix import Mix
from gape.encodings.pagerank import PageRank, PageRankPowers
from gape.encodings.pairs import Pairs
from gape.encodings.random_walk import Estimate, RandomWalk, RelativeRandomWalk, estimate_random_walk
from gape.encodings.registry import ALIASES, PRESETS, Setting, is_name, make, names, settings_of, summary
from gape.encodings.resistance import EffectiveResistance
from gape.encodings.rooted import RootedGAPE
from gape.encodings.sequence import (
    CycleSpectrum,
    PathRandomWalk,
    SequenceEncoding,
    SequenceLaplacian,
    Sinusoidal,
    sequence_graph,
)
from gape.encodings.shortest_path import ShortestPath
from gape.encodings.svd import SingularVectors
from gape.encodings.walk_profile import WalkProfile
from gape.graph.spectral_radius import spectral_radius
from gape.linalg.eigenpairs import fix_signs

__all__ = [
    "ALIASES",
    "GAPE",
    "PRESETS",
    "Communicability",
    "CycleSpectrum",
    "Degree",
    "EffectiveResistance",
    "Electrostatic",
    "Encoding",
    "Estimate",
    "HeatKernel",
    "Laplacian",
    "MagneticLaplacian",
    "Mix",
    "NodeEncoding",
    "PageRank",
    "PageRankPowers",
    "PairEncoding",
    "Pairs",
    "PathRandomWalk",
    "RandomWalk",
    "RelationalGAPE",
    "RelativeRandomWalk",
    "RootedGAPE",
    "SequenceEncoding",
    "SequenceLaplacian",
    "Setting",
    "ShortestPath",
    "SingularVectors",
    "Sinusoidal",
    "Spectrum",
    "WalkProfile",
    "encode",
    "estimate_random_walk",
    "fix_signs",
    "is_name",
    "make",
    "names",
    "random_flips",
    "sequence_graph",
    "settings_of",
    "spectral_radius",
    "split_spectrum",
    "summary",
]
