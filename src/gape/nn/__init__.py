"""Modules to build models with: encoders of position encodings, learnable automata, and the graph transformer."""

from gape.nn.attention import AttentionPattern, MultiHeadAttention, attend
from gape.nn.encoders import (
    OGB_ATOM,
    DegreeAndDistance,
    Encoder,
    LinearEncoder,
    NodeInput,
    SignInvariantEncoder,
    SpectralAttention,
)
from gape.nn.graph_transformer import GraphTransformer, GraphTransformerLayer, Pooling
from gape.nn.learnable.automaton import DenseTransition, DiagonalTransition, LearnableAutomaton, RootedAutomata
from gape.nn.learnable.encoder import GAPEEncoder, WalkInput
from gape.nn.learnable.layer import GAPE
from gape.nn.scaling import FeatureScaling

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
    "Pooling",
    "RootedAutomata",
    "SignInvariantEncoder",
    "SpectralAttention",
    "WalkInput",
    "attend",
]
