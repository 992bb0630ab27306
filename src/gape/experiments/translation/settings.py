"""The settings of a translation run, and the two presets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, get_type_hints

from gape._internal.validation import parse_setting, seed_number, whole_number
from gape.experiments.translation.model import ModelSettings


@dataclass(frozen=True)
class BeamSettings:
    """How translations are searched for.

    Args:
        beam: number of hypotheses kept.
        length_penalty: α of Wu et al. (2016): scores are divided by ((5 + length) / 6)^α.
        extra_length: a translation has at most so many tokens more than its source.
    """

    beam: int = 4
    length_penalty: float = 0.6
    extra_length: int = 50

    def __post_init__(self) -> None:
        whole_number(self.beam, "beam", at_least=1)
        whole_number(self.extra_length, "extra_length", at_least=1)
        if not self.length_penalty >= 0:
            raise ValueError(f"length_penalty must be at least 0, got {self.length_penalty}")


@dataclass(frozen=True)
class TrainingSettings:
    """How the model is trained. The defaults are the paper's (Witwicky's).

    Args:
        steps: number of updates; None to train for ``epochs`` instead.
        epochs: passes over the training text, if ``steps`` is None.
        tokens: of a batch, on the longer side, padding counted.
        validate_every: updates between two looks at the development text; None for once a pass.
        learning_rate: of Adam, without warm-up.
        decay: factor on the learning rate when development BLEU is below the lowest of the last ``patience``.
        floor: smallest learning rate.
        patience: see ``decay``.
        clip: largest norm of the gradient.
        label_smoothing: share of probability spread over all pieces.
        dev_sentences: look at so many development sentences, spread over the text; None for all.
        dev_beam: beam for development BLEU. Tests are always searched with a beam of 4.
        seed: of weights, dropout, GAPE's automaton and the order of the batches.
    """

    steps: int | None = None
    epochs: int = 100
    tokens: int = 4096
    validate_every: int | None = None
    learning_rate: float = 3e-4
    decay: float = 0.8
    floor: float = 1e-5
    patience: int = 3
    clip: float = 1.0
    label_smoothing: float = 0.1
    dev_sentences: int | None = None
    dev_beam: int = 4
    seed: int = 147

    def __post_init__(self) -> None:
        seed_number(self.seed)
        for name in ("epochs", "tokens", "patience", "dev_beam"):
            whole_number(getattr(self, name), name, at_least=1)
        for name in ("steps", "validate_every", "dev_sentences"):
            if getattr(self, name) is not None:
                whole_number(getattr(self, name), name, at_least=1)
        for name in ("learning_rate", "floor", "clip"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be more than 0 and finite, got {getattr(self, name)}")
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay must be more than 0 and at most 1, got {self.decay}")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing must be at least 0 and less than 1, got {self.label_smoothing}")


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a run does.

    Example:
        >>> preset("small", positions="gape", steps=500).model.positions
        'gape'
    """

    model: ModelSettings
    training: TrainingSettings
    data: str = "evbnews"

    def with_positions(self, name: str) -> Settings:
        """The same with another position encoding."""
        return replace(self, model=replace(self.model, positions=name))

    def as_dict(self) -> dict[str, Any]:
        """For a JSON file; :meth:`from_dict` reads it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        return cls(ModelSettings(**values["model"]), TrainingSettings(**values["training"]), values["data"])


#: ``paper`` is the published protocol, for a GPU. ``small`` fits two processor cores.
PRESETS: dict[str, tuple[ModelSettings, TrainingSettings]] = {
    "paper": (ModelSettings(), TrainingSettings()),
    "small": (
        ModelSettings(layers=2, width=256, feed_forward=512, heads=4, dropout=0.1, attention_dropout=0.0),
        # A higher learning rate than the paper's: a narrower model, and runs of some thousand steps.
        TrainingSettings(tokens=2048, epochs=10, learning_rate=1e-3, validate_every=250, dev_sentences=200, dev_beam=1),
    ),
}


def preset(name: str, *, data: str = "evbnews", **changes: Any) -> Settings:
    """A preset with changes, each of which is a setting of the model or of the training."""
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    return _changed(Settings(*PRESETS[name], data), changes)


#: Settings that have options of their own.
_OPTIONS = {"positions": "--encoding", "steps": "--steps", "seed": "--seed"}


def override(settings: Settings, pairs: Mapping[str, str]) -> Settings:
    """The settings with some changed, values as text: what ``--set`` does.

    Example:
        >>> override(preset("small"), {"layers": "1", "learning_rate": "3e-4"}).training.learning_rate
        0.0003
        >>> override(preset("small"), {"steps": "9"})
        Traceback (most recent call last):
        ValueError: steps has an option of its own: --steps
    """
    for key, option in _OPTIONS.items():
        if key in pairs:
            raise ValueError(f"{key} has an option of its own: {option}")
    if "epochs" in pairs and settings.training.steps is not None:
        raise ValueError(f"epochs={pairs['epochs']} would change nothing: the length is given by --steps")
    hints = get_type_hints(ModelSettings) | get_type_hints(TrainingSettings)
    return _changed(settings, {key: parse_setting(text, hints.get(key, str), key) for key, text in pairs.items()})


def differences(there: Settings, here: Settings) -> list[str]:
    """In which settings two runs differ, in words.

    >>> differences(preset("small"), preset("small", layers=3))
    ['layers is 2 there and 3 here']
    """
    known, new = ({"data": one.data, **vars(one.model), **vars(one.training)} for one in (there, here))
    return [f"{key} is {known[key]!r} there and {value!r} here" for key, value in new.items() if known[key] != value]


def _changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    parts = {part: [field.name for field in fields(getattr(settings, part))] for part in ("model", "training")}
    known = [name for names in parts.values() for name in names]
    if unknown := [key for key in changes if key not in known]:
        listed = ", ".join(name for name in known if name not in _OPTIONS)
        raise ValueError(f"there is no setting {unknown[0]!r} of the model or its training; there are {listed}")
    model, training = ({key: value for key, value in changes.items() if key in names} for names in parts.values())
    return replace(settings, model=replace(settings.model, **model), training=replace(settings.training, **training))
