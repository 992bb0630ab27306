"""The model of a run: the paper's graph transformer with the encoder of its row."""

from __future__ import annotations

from gape.experiments.graph_tasks.protocol import task_protocol
from gape.experiments.graph_tasks.rows import find
from gape.experiments.graph_tasks.settings import Settings
from gape.experiments.graph_tasks.training.encoded import EncodedDataset
from gape.nn import DegreeAndDistance, Encoder, GraphTransformer, LinearEncoder, SpectralAttention


def build_network(settings: Settings, encoded: EncodedDataset) -> GraphTransformer:
    """The graph transformer for these settings and this data; draws its weights from the global generator.

    Example:
        >>> from gape.experiments.graph_tasks.protocol import settings
        >>> from gape.experiments.graph_tasks.training.encoded import encoded_dataset
        >>> cell = settings("csl", "none")
        >>> sum(p.numel() for p in build_network(cell, encoded_dataset(cell)).parameters())
        315390
    """
    categories = encoded.dataset.node_categories
    return GraphTransformer(
        inputs=categories if len(categories) > 1 else categories[0] if categories else "constant",
        out_channels=encoded.dataset.num_outputs,
        layers=settings.layers,
        hidden=settings.hidden,
        heads=settings.heads,
        pooling=settings.readout,
        encoding=_encoder(settings, encoded),
        attention=settings.attention,
        norm=settings.norm,
        dropout=settings.dropout,
    )


def _encoder(settings: Settings, encoded: EncodedDataset) -> Encoder | None:
    how, scaling = find(settings.encoding).how, settings.scaling
    if encoded.learned is not None:
        return encoded.learned.encoder(settings.hidden, encoded.dataset.node_categories, settings.heads, scaling)
    if how == "none":
        return None
    if how == "spectral":
        # One head on CSL, four elsewhere, as in the authors' runs.
        return SpectralAttention(heads=1 if settings.task == "csl" else 4)
    if how == "degree-distance":
        task = task_protocol(settings.task)
        return DegreeAndDistance(settings.hidden, settings.heads, degrees=task.degrees, distances=task.distances)
    return LinearEncoder(encoded.width, settings.hidden, flip_signs=how == "signed", scaling=scaling)
