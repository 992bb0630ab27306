"""The folder of a translation run: settings, vocabulary, checkpoints, translations and result."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gape._internal.files import replacing
from gape.experiments.runs.folder import RunFolder, load_checkpoint, read_record, write_record
from gape.experiments.runs.settings import describe_changes
from gape.experiments.translation.corpus import read_lines, write_lines
from gape.experiments.translation.settings import Settings
from gape.experiments.translation.transformer import Transformer
from gape.experiments.translation.vocabulary import Vocabulary


@dataclass(frozen=True)
class TranslationFolder(RunFolder):
    """The folder of a translation run, see :class:`gape.experiments.runs.folder.RunFolder`.

    Args:
        path: of the folder, created by the first write.
    """

    @property
    def vocabulary(self) -> Path:
        """Sentencepiece model."""
        return self.path / "pieces.model"

    @property
    def last(self) -> Path:
        """Newest checkpoint, to resume from."""
        return self.path / "last.ckpt"

    @property
    def best(self) -> Path:
        """Weights and position tables with the best development BLEU, to translate with."""
        return self.path / "best.pt"

    @property
    def settings_file(self) -> Path:
        """Settings and the digest of the text."""
        return self.path / "settings.json"

    def translations(self, name: str) -> Path:
        """Translations of the test text of that name."""
        return self.path / f"{name}.hyp.txt"

    def references(self, name: str) -> Path:
        """References of the test text of that name."""
        return self.path / f"{name}.ref.txt"

    def check(self, settings: Settings, text: str, after: TranslationFolder | None = None) -> None:
        """Validate that a run fits this folder and the run that it continues; nothing is written.

        Args:
            settings: of the run.
            text: digest of its text.
            after: a complete run of fewer steps, to continue from.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file; choose a folder for the run")
        if self.started:
            self.settings()  # raises an error if the file is damaged
            self.refuse(_differences(self._record(), _as_record(settings, text)))
        elif self.last.exists():
            raise ValueError(f"{self.path} has a checkpoint but no settings.json; choose another folder")
        if after is not None and self._needs_weights():
            after._check_continuation(settings, text)

    def start(
        self, settings: Settings, vocabulary: Vocabulary, text: str, after: TranslationFolder | None = None
    ) -> None:
        """Write the settings and the vocabulary if they are missing, after all other checks have passed.

        With ``after``, the run starts with the weights of that one. A step depends only on the seed and its number, so
        the result equals that of a run from step 0.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.started:
            vocabulary.save(self.vocabulary)
        self.pin("settings.json", _as_record(settings, text), _differences)
        if after is not None and self._needs_weights():
            names = [self.best.name, self.last.name]  # in this order: a run that has the last one resumes from it
            if (after.path / "versions.json").exists():  # runs of earlier versions have none
                names.insert(0, "versions.json")
            for name in names:
                with replacing(self.path / name) as temporary:
                    shutil.copyfile(after.path / name, temporary)

    def _needs_weights(self) -> bool:
        """Tell if the run has no checkpoint and no result yet, so that it can start with another run's weights."""
        return not self.last.exists() and self.result() is None

    def _check_continuation(self, settings: Settings, text: str) -> None:
        """Validate that a longer run with these settings and this text passes through the end of this one."""
        if not self.started:
            raise FileNotFoundError(f"there is no run {self.path} to continue from; train it first")
        recorded = self.settings()
        steps, longer = recorded.training.steps, settings.training.steps
        extended = replace(recorded, training=replace(recorded.training, steps=longer))
        changes = _differences(_as_record(extended, self._record().get("text")), _as_record(settings, text))
        if changes:
            raise ValueError(f"cannot continue from {self.path}: {', '.join(changes)}. Only the steps may differ")
        if steps is None or longer is None or steps >= longer:
            raise ValueError(f"{self.path} has steps={steps}, expected fewer than steps={longer} of the longer run")
        every = recorded.training.validate_every
        if every is None or steps % every:
            raise ValueError(
                f"{self.path} ends after {steps} steps, and a longer run validates every {every or 'epoch'}; only a "
                f"run that ends with such a validation can be continued"
            )
        if self.result() is None:
            raise ValueError(f"{self.path} is not complete; finish it first")

    def settings(self) -> Settings:
        """Read the settings."""
        record = self._record()
        try:
            return Settings.from_dict(record)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.settings_file} does not contain the settings of a run: {error!r}; choose another folder"
            ) from error

    def _record(self) -> dict[str, Any]:
        if not self.settings_file.is_file():
            raise FileNotFoundError(f"{self.path} is not a translation run; it has no settings.json")
        return read_record(self.settings_file)

    def write_history(self, history: list[dict[str, float]]) -> None:
        """Write one record per validation."""
        write_record(self.path / "history.json", history)

    def write_translations(self, name: str, lines: Sequence[str], references: Sequence[str]) -> None:
        """Write translations of a test text, and their references beside them."""
        write_lines(self.references(name), references)
        write_lines(self.translations(name), lines)

    def read_translations(self, name: str) -> list[str]:
        """Read the translations of a test text."""
        return read_lines(self.translations(name))

    def read_references(self, name: str) -> list[str]:
        """Read the references of a test text."""
        return read_lines(self.references(name))

    def load(self) -> tuple[Transformer, Vocabulary]:
        """Load the best model so far, in evaluation mode, and its vocabulary."""
        settings = self.settings()
        if not self.best.is_file():
            raise FileNotFoundError(f"{self.path} has no checkpoint yet; train it first, with gape translate train")
        vocabulary = Vocabulary.load(self.vocabulary)
        model = Transformer(settings.model, len(vocabulary), seed=settings.training.seed)
        weights = load_checkpoint(self.best, dict)
        try:
            model.load_state_dict(weights)
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"{self.best} does not fit the model of {self.settings_file}: {error}") from error
        return model.eval(), vocabulary

    def checkpoint(self) -> Path | None:
        """Return the checkpoint to resume from, None if there is none; raise an error if it is damaged."""
        if not self.last.exists():
            return None
        load_checkpoint(self.last, dict)
        return self.last


def _as_record(settings: Settings, text: str | None) -> dict[str, Any]:
    return {**settings.as_dict(), "text": text}


def _differences(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Describe the settings in which a recorded run differs, and if its text differs."""
    flat = [
        {"data": record.get("data"), **record.get("model", {}), **record.get("training", {})}
        for record in (recorded, current)
    ]
    changes = describe_changes(*flat)
    if recorded.get("data") == current["data"] and recorded.get("text") != current["text"]:
        changes.append("its training or development text was different")
    return changes
