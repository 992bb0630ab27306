"""The files of a run."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from gape._internal.files import replacing
from gape.experiments.translation.model import Transformer
from gape.experiments.translation.settings import Settings, differences
from gape.experiments.translation.text import read_lines, write_lines
from gape.experiments.translation.vocabulary import Vocabulary


@dataclass(frozen=True)
class RunFolder:
    """Where a run keeps its settings, vocabulary, checkpoints, translations and result.

    Args:
        path: the folder; made when something is written.
    """

    path: Path

    @property
    def begun(self) -> bool:
        """Whether a run has written its first files."""
        return self._settings.exists()

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

    def refuse(self, settings: Settings, text: str | None = None, after: RunFolder | None = None) -> None:
        """Complain if this folder, or the run to go on from, does not fit; nothing is written.

        Args:
            settings: of the run that wants the folder.
            text: digest of its text, which must not change either.
            after: a complete run of fewer steps, to go on from.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file; name a folder for the run")
        if self.begun:
            there, known = self._read_settings()
            changed = differences(there, settings)
            if there.data == settings.data and _differ(known, text):
                changed.append("its training or development text was another one")
            if changed:
                other = "; ".join(changed)
                raise ValueError(
                    f"{self.path} holds a run with other settings: {other}. Take another folder, or remove this one"
                )
        elif self.last.exists():
            raise ValueError(f"{self.path} holds a checkpoint of something else, without settings; take another folder")
        if after is not None and self._wants_weights():
            after._refuse_to_be_prolonged_to(settings, text)

    def begin(self, settings: Settings, vocabulary: Vocabulary, text: str, after: RunFolder | None = None) -> None:
        """Write the first files, unless they are there.

        Whatever can go wrong before the first step has gone well by now. With ``after``, the run begins with the
        weights of that one: what a step does depends on the seed and its number, so the run becomes what it would have
        become from step 0.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.begun:
            vocabulary.save(self.vocabulary)
            self._write(self._settings, {**settings.as_dict(), "text": text})
        if after is not None and self._wants_weights():
            for name in ("best", "last"):  # in this order: who finds the last resumes from it
                with replacing(getattr(self, name)) as temporary:
                    shutil.copyfile(getattr(after, name), temporary)

    def _wants_weights(self) -> bool:
        """Whether the run has looked at nothing yet, and so may begin with the weights of another."""
        return not self.last.exists() and self.result() is None

    def _refuse_to_be_prolonged_to(self, settings: Settings, text: str | None) -> None:
        """Complain unless a run with ``settings`` on that text passes through the end of this one."""
        if not self._settings.is_file():
            raise FileNotFoundError(f"there is no run {self.path} to go on from; train it first")
        there, known = self._read_settings()
        steps, longer = there.training.steps, settings.training.steps
        other = differences(replace(there, training=replace(there.training, steps=longer)), settings)
        if _differ(known, text):
            other.append("its training or development text was another one")
        if other:
            raise ValueError(f"{self.path} cannot be gone on from: {'; '.join(other)}. Only the steps may differ")
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
        if not self._settings.is_file():
            raise FileNotFoundError(f"{self.path} is no translation run: it has no settings.json")
        return self._read_settings()[0]

    def _read_settings(self) -> tuple[Settings, str | None]:
        """The settings, and the digest of the text if the run has noted it."""
        content = self._read(self._settings)
        try:
            return Settings.from_dict(content), content.get("text")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{self._settings} does not hold the settings of a run: {error!r}; take another folder"
            ) from error

    def result(self) -> dict[str, Any] | None:
        """What came out; None as long as the run is not complete, since it is written last."""
        path = self.path / "result.json"
        return self._read(path) if path.is_file() else None

    def write_result(self, result: dict[str, Any]) -> None:
        self._write(self.path / "result.json", result)

    def write_history(self, history: list[dict[str, float]]) -> None:
        self._write(self.path / "history.json", history)

    def write_translations(self, name: str, lines: Sequence[str]) -> None:
        write_lines(self.translations(name), lines)

    def read_translations(self, name: str) -> list[str]:
        return read_lines(self.translations(name))

    def write_references(self, name: str, lines: Sequence[str]) -> None:
        """What the translations are compared with, kept beside them."""
        write_lines(self.path / f"{name}.ref.txt", lines)

    def read_references(self, name: str) -> list[str]:
        return read_lines(self.path / f"{name}.ref.txt")

    def load(self) -> tuple[Transformer, Vocabulary]:
        """The best model so far, in evaluation mode, and its vocabulary."""
        settings = self.settings()
        if not self.best.is_file():
            raise FileNotFoundError(f"{self.path} has no checkpoint yet: train it first, with gape translate train")
        vocabulary = Vocabulary.load(self.vocabulary)
        model = Transformer(settings.model, len(vocabulary), seed=settings.training.seed)
        weights = _load(self.best)
        try:
            model.load_state_dict(weights)
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"{self.best} does not fit the model of {self._settings}: {error}") from error
        return model.eval(), vocabulary

    def checked_last(self) -> Path | None:
        """The checkpoint to resume from; None if there is none. One that cannot be read is refused."""
        if not self.last.exists():
            return None
        _load(self.last)
        return self.last

    @property
    def _settings(self) -> Path:
        return self.path / "settings.json"

    @staticmethod
    def _read(path: Path) -> Any:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}; take another folder, or remove this one") from error

    @staticmethod
    def _write(path: Path, content: Any) -> None:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n")


def _load(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, ValueError, LookupError, EOFError, pickle.UnpicklingError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"{path} is damaged ({reason}); remove its folder and train again, or take another one"
        ) from error
    return found


def _differ(one: str | None, other: str | None) -> bool:
    """Whether two digests are known and not the same."""
    return one is not None and other is not None and one != other
