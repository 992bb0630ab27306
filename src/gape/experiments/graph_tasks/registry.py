"""The encodings of the comparison by name: those of the paper, learnable automata, and every other node encoding."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, get_type_hints

import torch

from gape import encodings
from gape._internal.validation import did_you_mean
from gape.encodings import Encoding, RandomWalk, Setting
from gape.nn.encoders import LinearEncoder
from gape.nn.learnable.encoder import GAPEEncoder, WalkInput
from gape.nn.learnable.layer import GAPE, RECIPES
from gape.nn.scaling import Scaling

EncoderKind = Literal["none", "linear", "signed", "spectral", "degree-distance", "learned"]


@dataclass(frozen=True)
class Row:
    """A position encoding in the comparison: a row of its tables.

    Args:
        name: on the command line; the encoding's name in :func:`gape.encodings.names`, except that "gape" is the
            paper's setting here, "gape-paper" there.
        title: in the paper's tables.
        encoder: how it enters the model: "none", not at all; "linear", a linear layer, added; "signed", the same with
            random signs in training; "spectral", a small transformer, concatenated; "degree-distance", degree
            embeddings, added, and an attention bias by distance; "learned", automata trained with the model
            (:mod:`gape.nn.learnable`).
        size_setting: the setting of the encoding that is its number of features k, if it has one.
        options: settings of the encoding in every task.
    """

    name: str
    title: str
    encoder: EncoderKind = "linear"
    size_setting: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


# If a graph's equation is singular, the paper's code used whatever its solver returned. We take the least-squares
# solution, and every result records for how many graphs.
_GAPE: Mapping[str, Any] = MappingProxyType({"on_singular": "least_squares"})
# The softmax of the authors' runs is over the nodes of a graph; the paper's text has it over the states.
_TWO_STAR: Mapping[str, Any] = MappingProxyType({**_GAPE, "initial": "softmax_nodes"})

#: The paper's rows.
ROWS: tuple[Row, ...] = (
    Row("none", "Baseline", "none"),
    Row("lape", "LAPE", "signed", "vectors"),
    Row("sa", "SA", "spectral", "pairs"),
    Row("rw", "RW", "linear", "length"),
    Row("spd", "SPD+C", "degree-distance"),
    Row("pprp", "PPRP", "linear", "powers"),
    Row("gape", "GAPE", "linear", "states", _GAPE),
    Row("gape-star", "GAPE*", "linear", "states", _GAPE),
    Row("gape-star-20", "GAPE*20", "linear", "states", _GAPE),
    Row("gape-2star", "GAPE**", "linear", "states", _TWO_STAR),
    Row("gape-2star-20", "GAPE**20", "linear", "states", _TWO_STAR),
    Row("gape-2star-max", "GAPE**max", "linear", "states", _TWO_STAR),
)

# Rows whose encoding has another name: results, queues and tables say "gape" for the paper's setting.
_ENCODING_OF = MappingProxyType({"gape": "gape-paper"})
_ROW_OF = MappingProxyType({encoding: row for row, encoding in _ENCODING_OF.items()})

# Titles of other encodings, where their name is not one.
_TITLES = {"gape-rooted": "rooted"}

#: Automata learned with the model; not in the paper.
LEARNED_ROWS: tuple[Row, ...] = tuple(
    Row(name, title, "learned")
    for name, title in {
        "gape-learned-node": "learned, node",
        "gape-learned-closed": "learned, closed",
        "gape-learned-closed-node": "learned, closed + node",
        "gape-learned-rooted": "learned, rooted",
        "gape-learned-rooted-rw": "learned, rooted + RW",
        "gape-learned-typed": "learned, typed closed + RW",
        "gape-learned-typed-alone": "learned, typed closed",
        "gape-learned-edge-typed": "learned, closed, typed by edges",
        "gape-learned-pair": "learned, pair bias",
        "gape-learned-pair-rw": "learned, pair bias + RW",
    }.items()
)


def row_names() -> list[str]:
    """Return all names that ``--encoding`` accepts.

    >>> row_names()[:4]
    ['none', 'lape', 'sa', 'rw']
    """
    ours = [row.name for row in (*ROWS, *LEARNED_ROWS)]
    return ours + [name for name in encodings.names() if name not in ours and name not in _ROW_OF]


def find_row(name: str) -> Row:
    """Return the row of a name; encodings that the paper does not have enter by a linear layer.

    Names joined by ``+`` are encodings side by side, in one linear layer.

    >>> find_row("gape-star").title
    'GAPE*'
    >>> find_row("rw+gape-rooted").title
    'RW + rooted'
    >>> find_row("gape*")
    Traceback (most recent call last):
    ValueError: there is no encoding 'gape*'; there are none, lape, sa, rw, ...
    """
    for row in (*ROWS, *LEARNED_ROWS):
        if row.name == name:
            return row
    if "+" in name:
        parts = [find_row(part) for part in name.split("+")]
        for part in parts:
            if part.encoder != "linear":
                raise ValueError(f"{part.name!r} does not enter by a linear layer and cannot stand in {name!r}")
        return Row(name, " + ".join(part.title for part in parts))
    if name in _ROW_OF:
        raise ValueError(f"in the comparison the row of {name!r} is named {_ROW_OF[name]!r}; use that name")
    if name not in row_names():
        raise ValueError(
            f"there is no encoding {name!r}; there are {', '.join(row_names())}{did_you_mean(name, row_names())}"
        )
    return Row(name, _TITLES.get(name, name))


def make_encoding(name: str, **options: Any) -> Encoding:
    """Make the fixed encoding of a row.

    >>> make_encoding("gape", states=8).damping, make_encoding("rw+gape", **{"gape.states": 8}).parts[1].relative
    (0.02, False)
    """
    return encodings.make(
        _renamed(name, _ENCODING_OF), **{_renamed(key, _ENCODING_OF): options[key] for key in options}
    )


def encoding_settings(name: str) -> list[Setting]:
    """Return the settings of the fixed encoding of a row, with its defaults in the comparison; none if it has none.

    >>> next(setting.default for setting in encoding_settings("gape") if setting.name == "damping")
    0.02
    """
    if not encodings.is_name(name):
        return []
    settings = encodings.settings_of(_renamed(name, _ENCODING_OF))
    return [replace(setting, name=_renamed(setting.name, _ROW_OF)) for setting in settings]


def _renamed(name: str, names: Mapping[str, str]) -> str:
    """Rename the parts of ``rw+gape``, or the part that a setting such as ``gape.states`` belongs to."""
    part, dot, setting = name.rpartition(".")
    if dot:
        return f"{names.get(part, part)}.{setting}"
    return "+".join(names.get(part, part) for part in name.split("+"))


#: Number of degree labels if a dataset has no node categories and the automaton needs labels.
DEGREE_LABELS = 8

#: Attribute of the data that holds the fixed encoding added to the learned one.
FIXED_ATTRIBUTE = "fixed_encoding"


@dataclass(frozen=True)
class LearnedEncoding:
    """One or more learnable automata, optionally with random walks, as an encoding of a dataset.

    Args:
        layers: settings of each :class:`gape.nn.GAPE`. ``labels=0`` stands for the dataset's node categories,
            ``edge_types=0`` for its edge categories.
        walks: length of the random walks (RW) added to them; 0 for none.

    Example:
        >>> encoding = learned("gape-learned-typed", states=4)
        >>> encoding.encoder(hidden=80, categories=(28,)).layers[0].machine.automaton.transition.shape
        torch.Size([28, 4, 4])
    """

    layers: tuple[Mapping[str, Any], ...]
    walks: int = 0

    def encoder(
        self,
        hidden: int,
        categories: Sequence[int] = (),
        heads: int = 8,
        scaling: Scaling = "none",
        edge_categories: int = 0,
    ) -> GAPEEncoder:
        """Build the encoder for a model.

        Args:
            hidden, heads: of the model.
            categories, edge_categories: of the dataset's nodes and edges, see :class:`gape.data.Task`.
            scaling: of the random walks, see :class:`LinearEncoder`.
        """
        layers = []
        for layer in self.layers:
            width = heads if layer.get("readout") == "pair" else hidden
            layers.append(GAPE(out_channels=width, **self._layer_settings(layer, categories, edge_categories)))
        walks = LinearEncoder(self.walks, hidden, scaling=scaling) if self.walks else None
        return GAPEEncoder(*layers, extra_encoder=walks)

    def check(self, edge_categories: int = 0) -> None:
        """Validate combinations of settings before there are data and a model."""
        with torch.random.fork_rng(devices=[]):
            self.encoder(hidden=8, categories=(2,), edge_categories=edge_categories)

    def as_dict(self) -> dict[str, Any]:
        """Return every setting, defaults of :class:`GAPE` included, as plain values for JSON.

        >>> learned("gape-learned-node").as_dict()["layers"][0]["damping"]
        0.9
        """
        signature = inspect.signature(GAPE.__init__).parameters.values()
        defaults = {one.name: one.default for one in signature if one.name not in ("self", "out_channels")}
        layers = [{**defaults, **layer} for layer in self.layers]
        for layer in layers:
            if layer["readout"] != "rooted":  # as results were recorded before there were rooted runs
                del layer["layers"], layer["radius"]
        return {"layers": layers, "walks": self.walks}

    def prepare(self, dataset: Any, categories: Sequence[int] = (), edge_categories: int = 0) -> Any:
        """Add to an in-memory PyG dataset everything that can be computed before training, all graphs at once.

        Bases are stored in float32: half the memory, encodings equal to about six digits.
        """
        from gape.pyg import AddEncoding, AddWalkBasis

        # Building the layers must not advance the generator that the model draws its weights from.
        with torch.random.fork_rng(devices=[]):
            needed = self.encoder(1, categories, edge_categories=edge_categories).basis_settings
        dataset = AddWalkBasis(**needed, dtype=torch.float32).over(dataset)
        return AddEncoding(RandomWalk(self.walks), FIXED_ATTRIBUTE).over(dataset) if self.walks else dataset

    def encoder_input(self, batch: Any) -> WalkInput:
        """Collect the input of the model's encoder from a batch of the prepared dataset."""
        from gape.pyg import basis_of

        x = batch.x
        labels = None if x is None or x.is_floating_point() else x[:, 0] if x.dim() == 2 else x
        kind = getattr(batch, "edge_attr", None)
        kind = kind if kind is not None and not kind.is_floating_point() and kind.dim() == 1 else None
        weight, fixed = getattr(batch, "edge_weight", None), getattr(batch, FIXED_ATTRIBUTE, None)
        weight = None if weight is None else weight.flatten()
        return WalkInput(labels, kind, edge_weight=weight, basis=basis_of(batch), fixed=fixed)

    @staticmethod
    def _layer_settings(
        layer: Mapping[str, Any], categories: Sequence[int], edge_categories: int = 0
    ) -> dict[str, Any]:
        if layer.get("edge_types") == 0:
            if edge_categories < 2:
                raise ValueError(
                    "transitions by edge type need a task whose edges have types, such as typed-walks or, with "
                    "data.edges=both, diamonds; or set encoding.edge_types"
                )
            layer = {**layer, "edge_types": edge_categories}
        if layer.get("labels") != 0:
            return dict(layer)
        if categories and categories[0] > 1:
            return {**layer, "labels": categories[0]}
        return {**layer, "labels": DEGREE_LABELS, "labelling": "degree"}


_NODE = MappingProxyType({"states": 32, "matrix": "random_walk"})
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

_EDGE_TYPED = MappingProxyType(
    {
        "states": 8,
        "readout": "closed",
        "transition_by": "edge",
        "edge_types": 0,
        "length": 6,
        "matrix": "random_walk",
        "damping": 1.0,
    }
)
# Runs of 1 … 20 steps between neighbours, as an attention bias: RRWP of GRIT (Ma et al., 2023) on edges, learned.
_PAIR = MappingProxyType({"states": 4, "readout": "pair", "length": 20, "matrix": "random_walk", "damping": 1.0})

LEARNED: Mapping[str, LearnedEncoding] = MappingProxyType(
    {
        "gape-learned-node": LearnedEncoding(({"states": 32},)),
        "gape-learned-closed": LearnedEncoding((RECIPES["gape-closed"],)),
        "gape-learned-closed-node": LearnedEncoding((RECIPES["gape-closed"], _NODE)),
        "gape-learned-rooted": LearnedEncoding((RECIPES["gape-rooted"],)),
        "gape-learned-rooted-rw": LearnedEncoding((RECIPES["gape-rooted"],), walks=20),
        "gape-learned-typed": LearnedEncoding((_TYPED,), walks=20),
        "gape-learned-typed-alone": LearnedEncoding((_TYPED,)),
        "gape-learned-edge-typed": LearnedEncoding((_EDGE_TYPED,)),
        "gape-learned-pair": LearnedEncoding((_PAIR,)),
        "gape-learned-pair-rw": LearnedEncoding((_PAIR,), walks=20),
    }
)


def learned(name: str, **options: Any) -> LearnedEncoding:
    """Return the learnable encoding of a name.

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
    """Return the settings of a learnable encoding by name, with their types: ``options`` of :func:`learned`.

    >>> learned_settings()["damping"], learned_settings()["length"]
    (<class 'float'>, int | None)
    """
    hints = get_type_hints(GAPE.__init__)
    return {**{name: hint for name, hint in hints.items() if name not in ("out_channels", "return")}, "walks": int}


def setting_types(encoding: str) -> dict[str, Any]:
    """Return the types of all settings of a row's encoding by name; empty if it has none.

    >>> setting_types("rw")["length"], setting_types("none")
    (<class 'int'>, {})
    """
    if find_row(encoding).encoder == "learned":
        return learned_settings()
    return {setting.name: setting.type for setting in encoding_settings(encoding)}
