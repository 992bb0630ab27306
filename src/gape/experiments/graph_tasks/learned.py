"""Learnable encodings by name, ready to stand in a comparison beside the fixed ones."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, get_type_hints

import torch

from gape.encodings import RandomWalk
from gape.nn.encoders import LinearEncoder
from gape.nn.learnable.basis import WalkBasis
from gape.nn.learnable.encoder import GAPEEncoder, WalkInput
from gape.nn.learnable.layer import GAPE
from gape.nn.scaling import Scaling

#: Labels by degree where a data set's nodes are all alike and the automaton asks for labels.
DEGREES = 8

#: Attribute of the data that holds the fixed encoding beside the learned one.
FIXED = "beside"


@dataclass(frozen=True)
class LearnedEncoding:
    """One or more learnable automata, and maybe random walks, as an encoding of a data set.

    Args:
        layers: settings of each :class:`gape.nn.GAPE`. ``labels=0`` stands for the categories of the data's nodes.
        walks: length of random walks (RW) beside them; 0 for none.

    Example:
        >>> encoding = learned("gape-learned-typed", states=4)
        >>> encoding.encoder(hidden=80, categories=(28,)).layers[0].machine.automaton.transition.shape
        torch.Size([28, 4, 4])
    """

    layers: tuple[Mapping[str, Any], ...]
    walks: int = 0

    def encoder(
        self, hidden: int, categories: Sequence[int] = (), heads: int = 8, scaling: Scaling = "none"
    ) -> GAPEEncoder:
        """The encoder for a model.

        Args:
            hidden, heads: of the model.
            categories: of the data's nodes, see ``GraphDataset``.
            scaling: of the random walks beside, see :class:`LinearEncoder`.
        """
        layers = []
        for layer in self.layers:
            width = heads if layer.get("readout") == "pair" else hidden
            layers.append(GAPE(out_channels=width, **self._settings(layer, categories)))
        beside = LinearEncoder(self.walks, hidden, scaling=scaling) if self.walks else None
        return GAPEEncoder(*layers, beside=beside)

    def check(self) -> None:
        """Complain about settings that do not go together, before there are data and a model."""
        with torch.random.fork_rng(devices=[]):
            self.encoder(hidden=8, categories=(2,))

    def as_dict(self) -> dict[str, Any]:
        """Every setting, defaults of :class:`GAPE` included, as plain values for JSON.

        >>> learned("gape-learned-node").as_dict()["layers"][0]["damping"]
        0.9
        """
        signature = inspect.signature(GAPE.__init__).parameters.values()
        defaults = {one.name: one.default for one in signature if one.name not in ("self", "out_channels")}
        return {"layers": [{**defaults, **layer} for layer in self.layers], "walks": self.walks}

    def prepare(self, dataset: Any, categories: Sequence[int] = ()) -> Any:
        """The data set (PyG, in memory) with everything that training need not compute, all graphs at once.

        Bases are kept in float32: half the memory, encodings equal to about six digits.
        """
        from gape.pyg import AddEncoding, AddWalkBasis

        # Building the layers must not move the generator from which the model draws its weights.
        with torch.random.fork_rng(devices=[]):
            needed = self.encoder(1, categories).basis_settings
        dataset = AddWalkBasis(**needed, dtype=torch.float32).over(dataset)
        return AddEncoding(RandomWalk(self.walks), FIXED).over(dataset) if self.walks else dataset

    def given(self, batch: Any) -> WalkInput:
        """What the model's encoder takes, from a batch of the prepared data set."""
        x = batch.x
        labels = None if x is None or x.is_floating_point() else x[:, 0] if x.dim() == 2 else x
        kind = getattr(batch, "edge_attr", None)
        kind = kind if kind is not None and not kind.is_floating_point() and kind.dim() == 1 else None
        weight, fixed = getattr(batch, "edge_weight", None), getattr(batch, FIXED, None)
        weight = None if weight is None else weight.flatten()
        return WalkInput(labels, kind, edge_weight=weight, basis=WalkBasis.of(batch), fixed=fixed)

    @staticmethod
    def _settings(layer: Mapping[str, Any], categories: Sequence[int]) -> dict[str, Any]:
        if layer.get("labels") != 0:
            return dict(layer)
        if categories and categories[0] > 1:
            return {**layer, "labels": categories[0]}
        return {**layer, "labels": DEGREES, "labelling": "degree"}


_NODE = MappingProxyType({"states": 32, "matrix": "random_walk"})
# Run lengths apart, each on a scale of its own that the training set gives: closed runs around a long cycle are a
# 1e-5 of those that go there and back, and statistics of small batches of alike graphs would be noise.
_CLOSED = MappingProxyType(
    {"states": 4, "readout": "closed", "length": 20, "matrix": "random_walk", "damping": 1.0, "scaling": "fixed"}
)
_TYPED = MappingProxyType(
    {
        "states": 8,
        "readout": "closed",
        "labels": 0,
        "transition_by": "node",
        "length": 10,
        "matrix": "random_walk",
        "damping": 1.0,
    }
)

LEARNED: Mapping[str, LearnedEncoding] = MappingProxyType(
    {
        "gape-learned-node": LearnedEncoding(({"states": 32},)),
        "gape-learned-closed": LearnedEncoding((_CLOSED,)),
        "gape-learned-closed-node": LearnedEncoding((_CLOSED, _NODE)),
        "gape-learned-typed": LearnedEncoding((_TYPED,), walks=20),
        "gape-learned-typed-alone": LearnedEncoding((_TYPED,)),
    }
)


def learned(name: str, **options: Any) -> LearnedEncoding:
    """The learnable encoding of that name.

    Args:
        name: one of :data:`LEARNED`.
        options: other settings for all its automata, such as ``learn=False`` for an ablation; ``walks`` for its RW.
    """
    if name not in LEARNED:
        raise ValueError(f"there is no learnable encoding {name!r}; there are {', '.join(LEARNED)}")
    if unknown := set(options) - set(learned_settings()):
        raise ValueError(
            f"{name!r} has no setting {', '.join(sorted(unknown))}; it has {', '.join(learned_settings())}"
        )
    found = LEARNED[name]
    walks = options.pop("walks", found.walks)
    return replace(found, layers=tuple({**layer, **options} for layer in found.layers), walks=walks)


def learned_settings() -> dict[str, Any]:
    """What can be set of a learnable encoding, by name, with its type: ``options`` of :func:`learned`.

    >>> learned_settings()["damping"], learned_settings()["length"]
    (<class 'float'>, int | None)
    """
    hints = get_type_hints(GAPE.__init__)
    return {**{name: hint for name, hint in hints.items() if name not in ("out_channels", "return")}, "walks": int}
