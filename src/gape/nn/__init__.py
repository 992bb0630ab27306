"""Modules to build models with: encoders of position encodings, learnable automata, and the graph transformer."""

from gape.nn.attention.multi_head import MultiHeadAttention, attend
from gape.nn.attention.pattern import AttentionPattern
from gape.nn.encoders import OGB_ATOM, DegreeAndDistance, Encoder, LinearEncoder, NodeInput
from gape.nn.graph_transformer import GraphTransformer, GraphTransformerLayer, Pooling
from gape.nn.learnable.automaton import DenseTransition, DiagonalTransition, LearnableAutomaton
from gape.nn.learnable.encoder import GAPEEncoder, WalkInput
from gape.nn.learnable.layer import GAPE
from gape.nn.learnable.rooted import RootedAutomata
from gape.nn.scaling import FeatureScaling
from gape.nn.sign_invariant import SignInvariantEncoder
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
    "Pooling",
    "RootedAutomata",
    "SignInvariantEncoder",
    "SpectralAttention",
    "WalkInput",
    "attend",
]
