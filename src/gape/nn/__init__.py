"""How encodings enter a model: graph and sequence transformers, what they are made of, and learnable automata."""

from gape.nn.attention.multi_head import MultiHeadAttention, attend
from gape.nn.attention.pattern import AttentionPattern
from gape.nn.degree_distance import DegreeAndDistance
from gape.nn.encoder import Encoder, LinearEncoder
from gape.nn.graph_transformer import GraphTransformer
from gape.nn.inputs import OGB_ATOM, NodeInput
from gape.nn.layer import GraphTransformerLayer
from gape.nn.learnable.automaton import LearnableAutomaton
from gape.nn.learnable.basis import WalkBasis
from gape.nn.learnable.compute_basis import walk_basis
from gape.nn.learnable.encoder import GAPEEncoder, WalkInput
from gape.nn.learnable.layer import GAPE
from gape.nn.learnable.transitions import DenseTransition, DiagonalTransition
from gape.nn.readout import Readout
from gape.nn.scaling import FeatureScaling
from gape.nn.spectral_attention import SpectralAttention

__all__ = [
    "GAPE",
    "OGB_ATOM",
    "AttentionPattern",
    "DegreeAndDistance",
    "DenseTransition",
    "DiagonalTransition",
    "Encoder",
    "FeatureScaling",
    "GAPEEncoder",
    "GraphTransformer",
    "GraphTransformerLayer",
    "LearnableAutomaton",
    "LinearEncoder",
    "MultiHeadAttention",
    "NodeInput",
    "Readout",
    "SpectralAttention",
    "WalkBasis",
    "WalkInput",
    "attend",
    "walk_basis",
]
