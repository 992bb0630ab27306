"""How encodings enter a model: the graph transformer and what it is made of."""

from gape.nn.attention import MultiHeadAttention, attend
from gape.nn.degree_distance import DegreeAndDistance
from gape.nn.encoder import Encoder, LinearEncoder
from gape.nn.graph_transformer import GraphTransformer
from gape.nn.inputs import OGB_ATOM, NodeInput
from gape.nn.layer import GraphTransformerLayer
from gape.nn.pattern import AttentionPattern
from gape.nn.readout import Readout
from gape.nn.spectral_attention import SpectralAttention

__all__ = [
    "OGB_ATOM",
    "AttentionPattern",
    "DegreeAndDistance",
    "Encoder",
    "GraphTransformer",
    "GraphTransformerLayer",
    "LinearEncoder",
    "MultiHeadAttention",
    "NodeInput",
    "Readout",
    "SpectralAttention",
    "attend",
]
