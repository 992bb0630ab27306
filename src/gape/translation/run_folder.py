"""The files of a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from gape.atomic import replacing
from gape.translation.model import Transformer
from gape.translation.settings import Settings
from gape.translation.text import read_lines
from gape.translation.vocabulary import Vocabulary


@dataclass(frozen=True)
class RunFolder:
    """Where a run keeps its settings, vocabulary, checkpoints, translations and result.

    Args:
        path: the folder; made when something is written.
    """

    path: Path

    @property
    def vocabulary(self) -> Path:
        return self.path / "pieces.model"

    @property
    def last(self) -> Path:
        """The newest checkpoint: to resume from."""
        return self.path / "last.ckpt"

    @property
    def best(self) -> Path:
        """The weights, position tables among them, with the best development BLEU: to translate with."""
        return self.path / "best.pt"

    def translations(self, name: str) -> Path:
        return self.path / f"{name}.hyp.txt"

    def begin(self, settings: Settings) -> None:
        """Write the settings; if there are some, they must be the same."""
        self.path.mkdir(parents=True, exist_ok=True)
        path = self.path / "settings.json"
        if not path.exists():
            self._write(path, settings.as_dict())
            return
        there = json.loads(path.read_text())
        if there != json.loads(json.dumps(settings.as_dict())):
            changed = [
                f"{key} is {there[part].get(key)!r} there and {value!r} here"
                for part in ("model", "training")
                for key, value in settings.as_dict()[part].items()
                if there[part].get(key) != value
            ]
            if there["data"] != settings.data:
                changed.append(f"data is {there['data']!r} there and {settings.data!r} here")
            raise ValueError(f"{self.path} holds a run with other settings: {'; '.join(changed)}. Take another folder")

    def begin_after(self, shorter: RunFolder, settings: Settings) -> None:
        """Begin with what a complete run of fewer steps has learned; a run that has begun already goes on by itself.

        What a step does depends on the seed and its number, so the run becomes what it would have become from step 0.
        """
        if not self.last.exists():
            shorter.refuse_to_be_prolonged_to(settings)
            self.path.mkdir(parents=True, exist_ok=True)
            for name in ("vocabulary", "best", "last"):  # in this order: who finds the last resumes from it
                with replacing(getattr(self, name)) as temporary:
                    shutil.copyfile(getattr(shorter, name), temporary)
        self.begin(settings)

    def refuse_to_be_prolonged_to(self, settings: Settings) -> None:
        """Complain unless a run with ``settings`` passes through the end of this one."""
        there, steps, longer = self.settings(), self.settings().training.steps, settings.training.steps
        if replace(there, training=replace(there.training, steps=longer)) != settings:
            raise ValueError(
                f"{self.path} differs in more than its number of steps; a run that goes on from it must not"
            )
        if steps is None or longer is None or steps >= longer:
            raise ValueError(f"{self.path} has steps={steps}, expected fewer than steps={longer} of the run to come")
        every = there.training.validate_every
        if every is None or steps % every:
            raise ValueError(
                f"{self.path} ends after {steps} steps, and a longer run looks at the development text every "
                f"{every or 'pass'}: only a run that ends with such a look can be gone on from"
            )
        if self.result() is None:
            raise ValueError(f"{self.path} is not complete; finish it first")

    def settings(self) -> Settings:
        path = self.path / "settings.json"
        if not path.is_file():
            raise FileNotFoundError(f"{self.path} is no translation run: it has no settings.json")
        return Settings.from_dict(json.loads(path.read_text()))

    def result(self) -> dict[str, Any] | None:
        """What came out; None as long as the run is not complete, since it is written last."""
        path = self.path / "result.json"
        return json.loads(path.read_text()) if path.is_file() else None

    def write_result(self, result: dict[str, Any]) -> None:
        self._write(self.path / "result.json", result)

    def write_history(self, history: list[dict[str, float]]) -> None:
        self._write(self.path / "history.json", history)

    def write_translations(self, name: str, lines: Sequence[str]) -> None:
        self._write_lines(self.translations(name), lines)

    def read_translations(self, name: str) -> list[str]:
        return read_lines(self.translations(name))

    def write_references(self, name: str, lines: Sequence[str]) -> None:
        """What the translations are compared with, kept beside them."""
        self._write_lines(self.path / f"{name}.ref.txt", lines)

    def read_references(self, name: str) -> list[str]:
        return read_lines(self.path / f"{name}.ref.txt")

    def load(self) -> tuple[Transformer, Vocabulary]:
        """The best model so far, in evaluation mode, and its vocabulary."""
        settings, vocabulary = self.settings(), Vocabulary.load(self.vocabulary)
        if not self.best.is_file():
            raise FileNotFoundError(f"{self.path} has no checkpoint yet: train it first, with gape translate train")
        model = Transformer(settings.model, len(vocabulary), seed=settings.training.seed)
        model.load_state_dict(torch.load(self.best, map_location="cpu", weights_only=True))
        return model.eval(), vocabulary

    @staticmethod
    def _write(path: Path, content: Any) -> None:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n")

    @staticmethod
    def _write_lines(path: Path, lines: Sequence[str]) -> None:
        with replacing(path) as temporary:
            temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
