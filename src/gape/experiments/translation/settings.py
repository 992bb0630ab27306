"""Settings of a translation run, and the two presets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, get_type_hints

from gape._internal.validation import parse_setting, seed_number, whole_number
from gape.experiments.runs.settings import check_known
from gape.experiments.translation.transformer import ModelSettings


@dataclass(frozen=True)
class BeamSettings:
    """Settings of the beam search.

    Args:
        beam: number of hypotheses.
        length_penalty: α of Wu et al. (2016): scores are divided by ((5 + length) / 6)^α.
        extra_length: maximum number of tokens of a translation beyond those of its source.
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
    """Settings of the training. The defaults are the paper's (Witwicky's).

    Args:
        steps: number of updates; None to train for ``epochs``.
        epochs: passes over the training text, if ``steps`` is None.
        tokens: per batch, on the longer side, padding included.
        validate_every: updates between two validations on the development text; None for one per epoch.
        learning_rate: of Adam, without warm-up.
        decay: factor on the learning rate when development BLEU is below the lowest of the last ``patience``.
        floor: smallest learning rate.
        patience: see ``decay``.
        clip: maximum norm of the gradient.
        label_smoothing: probability mass spread over all pieces.
        dev_sentences: number of development sentences, spread evenly over the text; None for all.
        dev_beam: beam of the validations. Test texts are always translated with a beam of 4.
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
    """All settings of a translation run.

    Args:
        model: sizes and position encoding.
        training: optimisation and validation.
        data: name of the text.

    Example:
        >>> preset("small", positions="gape", steps=500).model.positions
        'gape'
    """

    model: ModelSettings
    training: TrainingSettings
    data: str = "evbnews"

    def with_positions(self, name: str) -> Settings:
        """Return the settings with another position encoding."""
        return replace(self, model=replace(self.model, positions=name))

    def flat(self) -> dict[str, Any]:
        """Return all settings in one dictionary."""
        return {"data": self.data, **vars(self.model), **vars(self.training)}

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary for a JSON file; :meth:`from_dict` reads it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Read the dictionary of :meth:`as_dict`."""
        return cls(ModelSettings(**values["model"]), TrainingSettings(**values["training"]), values["data"])


#: ``paper`` is the published protocol, for a GPU. ``small`` fits two CPU cores.
PRESETS: dict[str, tuple[ModelSettings, TrainingSettings]] = {
    "paper": (ModelSettings(), TrainingSettings()),
    "small": (
        ModelSettings(layers=2, width=256, feed_forward=512, heads=4, dropout=0.1, attention_dropout=0.0),
        # A higher learning rate than the paper's, because the model is narrower and runs have a few thousand steps.
        TrainingSettings(tokens=2048, epochs=10, learning_rate=1e-3, validate_every=250, dev_sentences=200, dev_beam=1),
    ),
}


def preset(name: str, *, data: str = "evbnews", **changes: Any) -> Settings:
    """Return a preset with changes, each a setting of the model or of the training."""
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    return _changed(Settings(*PRESETS[name], data), changes)


# Settings that have a command-line option.
_OPTIONS = {"positions": "--encoding", "steps": "--steps", "seed": "--seed"}


def override(settings: Settings, pairs: Mapping[str, str]) -> Settings:
    """Change settings given as text, like ``--set key=value``.

    Example:
        >>> override(preset("small"), {"layers": "1", "learning_rate": "3e-4"}).training.learning_rate
        0.0003
        >>> override(preset("small"), {"steps": "9"})
        Traceback (most recent call last):
        ValueError: steps has its own option; use --steps 9
    """
    for key, option in _OPTIONS.items():
        if key in pairs:
            raise ValueError(f"{key} has its own option; use {option} {pairs[key]}")
    if "epochs" in pairs and settings.training.steps is not None:
        raise ValueError(
            f"epochs={pairs['epochs']} has no effect, because steps (--steps) is {settings.training.steps}; leave one "
            f"of them out"
        )
    hints = get_type_hints(ModelSettings) | get_type_hints(TrainingSettings)
    return _changed(settings, {key: parse_setting(text, hints.get(key, str), key) for key, text in pairs.items()})


def _changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    parts = {part: [field.name for field in fields(getattr(settings, part))] for part in ("model", "training")}
    known = [name for names in parts.values() for name in names if name not in _OPTIONS]
    check_known(changes.keys() - _OPTIONS.keys(), known)
    model, training = ({key: value for key, value in changes.items() if key in names} for names in parts.values())
    return replace(settings, model=replace(settings.model, **model), training=replace(settings.training, **training))
