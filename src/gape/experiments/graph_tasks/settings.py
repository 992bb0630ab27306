"""Settings of a training cell: the protocol's, overrides as ``key=value`` text, records, and the time of a schedule."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gape import data
from gape._internal.validation import did_you_mean, parse_setting
from gape.experiments.graph_tasks.protocol import GAPE_STATES, PPRP_POWERS, SEEDS, TASKS, TaskProtocol
from gape.experiments.graph_tasks.registry import encoding_settings, find_row, learned, setting_types
from gape.experiments.runs.settings import check_known, describe_changes, value_text


@dataclass(frozen=True)
class Settings:
    """All settings of one training cell; nothing else decides its numbers.

    Args:
        task: name of a dataset, see :func:`gape.data.names`.
        encoding: name of a row, see :func:`gape.experiments.graph_tasks.registry.row_names`.
        seed: of weights, order of the graphs, dropout, sign flips, and of encodings that draw random numbers.
        layers, hidden, heads: shape of the graph transformer.
        pooling: "sum" or "mean" over the nodes of a graph, or "node" for one prediction per node.
        attention: "neighbours", or "full" for all pairs of nodes of a graph.
        norm: "batch" or "layer".
        dropout: in the layers.
        scaling: of a fixed encoding that enters by a linear layer, alone or added to learned ones: "none" as in the
            paper, or by the training set, "fixed" or "whitened", see :class:`gape.nn.FeatureScaling`.
        width: copy the features of such an encoding, after scaling, to so many; 0 for no copies.
        batch_size: graphs per batch, in training and in evaluation.
        lr: initial learning rate of Adam.
        patience: epochs without a better validation loss before the learning rate is reduced.
        factor: the learning rate is multiplied by this.
        min_lr: training ends when the learning rate falls below.
        max_epochs: training ends after this many epochs at the latest.
        train_fraction: share of the training graphs that is used, drawn at random but the same in all cells.
        data: options of the dataset that differ from its defaults.
        encoding_options: settings of the encoding that differ from its defaults.

    Example:
        >>> Settings("cycles", "none", seed=41, batch_size=0)
        Traceback (most recent call last):
        ValueError: batch_size must be at least 1, got 0
    """

    task: str
    encoding: str
    seed: int = 41
    layers: int = 10
    hidden: int = 80
    heads: int = 8
    pooling: Literal["sum", "mean", "node"] = "sum"
    attention: Literal["neighbours", "full"] = "neighbours"
    norm: Literal["batch", "layer"] = "batch"
    dropout: float = 0.0
    scaling: Literal["none", "fixed", "whitened"] = "none"
    width: int = 0
    batch_size: int = 25
    lr: float = 5e-4
    patience: int = 10
    factor: float = 0.5
    min_lr: float = 1e-6
    max_epochs: int = 1000
    train_fraction: float = 1.0
    data: Mapping[str, Any] = field(default_factory=dict)
    encoding_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "batch_size", "max_epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("seed", "patience", "width"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        for name in ("lr", "min_lr"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")
        if not 0 < self.factor < 1:
            raise ValueError(f"factor must lie between 0 and 1, got {self.factor}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        if not 0 < self.train_fraction <= 1:
            raise ValueError(f"train_fraction must be above 0 and at most 1, got {self.train_fraction}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


_CHOICES = {name: get_args(hint) for name, hint in get_type_hints(Settings).items() if get_origin(hint) is Literal}

#: Renamed settings: the name in earlier records and folders, and the current one.
RENAMED = {"readout": "pooling"}

# These name the cell; another value is another cell, not the same one with another setting.
_IDENTITY = ("task", "encoding", "seed")
_GROUPS = {"data": "data", "encoding": "encoding_options"}


def override(settings: Settings, pairs: Mapping[str, str]) -> Settings:
    """Return the settings with some changed: ``layers``, ``encoding.states``, ``data.test`` and so on, values as text.

    Values are converted to the type of their setting; :class:`gape.experiments.graph_tasks.cell.Cell` checks
    combinations.

    Example:
        >>> plain = Settings("cycles", "gape")
        >>> override(plain, {"lr": "1e-3", "encoding.damping": "0.1"}).lr
        0.001
        >>> override(plain, {"learning_rate": "1e-3"})
        Traceback (most recent call last):
        ValueError: there is no setting 'learning_rate'; there are layers, hidden, ...
        >>> override(plain, {"layers": "many"})
        Traceback (most recent call last):
        ValueError: layers must be a whole number, got 'many'
    """
    changes: dict[str, Any] = {}
    hints = get_type_hints(Settings)
    for key, text in pairs.items():
        group, dot, name = key.partition(".")
        if dot and group in _GROUPS:
            target = _GROUPS[group]
            hint = _data_type(settings.task, name) if group == "data" else _encoding_type(settings.encoding, name)
            changes[target] = {**changes.get(target, getattr(settings, target)), name: parse_setting(text, hint, key)}
        else:
            if key not in _plain_keys():
                check_known([key], _known_keys(settings))
            changes[key] = parse_setting(text, hints[key], key)
    return replace(settings, **changes)


def current_names(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded settings or overrides under the current names of the settings.

    >>> current_names({"readout": "mean", "encoding.readout": "pair"})
    {'pooling': 'mean', 'encoding.readout': 'pair'}
    """
    return {RENAMED.get(name, name): value for name, value in record.items()}


def override_text(settings: Settings, key: str) -> str:
    """Return the value of a setting as text, in one spelling, whichever :func:`override` was given.

    >>> plain = Settings("cycles", "gape")
    >>> [override_text(override(plain, {"lr": text}), "lr") for text in ("2e-5", "0.00002")]
    ['2e-05', '2e-05']
    """
    group, dot, name = key.partition(".")
    return value_text(getattr(settings, _GROUPS[group])[name] if dot else getattr(settings, key))


def _plain_keys() -> list[str]:
    return [field.name for field in fields(Settings) if field.name not in (*_IDENTITY, *_GROUPS.values())]


def _known_keys(settings: Settings) -> list[str]:
    """Return all keys that can be set for this task and encoding."""
    of_data = [f"data.{name}" for name in data.settings_of(settings.task)]
    return _plain_keys() + of_data + [f"encoding.{name}" for name in setting_types(settings.encoding)]


def _data_type(task: str, name: str) -> Any:
    known = data.setting_types(task)
    if name not in known:
        raise ValueError(f"dataset {task!r} has no option {name!r}; it has {', '.join(known)}")
    return known[name]


def _encoding_type(encoding: str, name: str) -> Any:
    known = setting_types(encoding)
    if not known:
        raise ValueError(f"{encoding!r} has no settings, got encoding.{name}")
    if name not in known:
        raise ValueError(f"{encoding} has no setting {name!r}; it has {', '.join(known)}")
    return known[name]


def task_protocol(task: str) -> TaskProtocol:
    """Return the protocol of a task.

    >>> task_protocol("zinc").lr
    0.0007
    """
    if task not in TASKS:
        raise ValueError(f"there is no task {task!r}; there are {', '.join(TASKS)}{did_you_mean(task, TASKS)}")
    return TASKS[task]


def protocol_settings(
    task: str, encoding: str, seed: int = SEEDS[0], overrides: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings of a cell as in the protocol, with some of them changed.

    Args:
        task: one of the tasks.
        encoding: one of the rows, see :func:`gape.experiments.graph_tasks.registry.row_names`.
        seed: of everything random, the encoding included.
        overrides: settings as text, see :func:`gape.experiments.graph_tasks.settings.override`.

    Example:
        >>> protocol_settings("cycles-v", "rw").encoding_options
        {'length': 9}
        >>> protocol_settings("zinc", "rw+gape-rooted", overrides={"encoding.rw.length": "8"}).encoding_options
        {'rw.length': 8, 'gape-rooted.seed': 41}
        >>> protocol_settings("cycles", "gape", seed=95, overrides={"encoding.states": "8"}).encoding_options
        {'on_singular': 'least_squares', 'states': 8, 'seed': 95}
    """
    of_task = task_protocol(task)
    plain = Settings(
        task=task,
        encoding=encoding,
        seed=seed,
        layers=of_task.layers,
        batch_size=of_task.batch_size,
        lr=of_task.lr,
        patience=of_task.patience,
        pooling=of_task.pooling,
        encoding_options=_encoding_options(of_task, encoding, seed),
    )
    return override(plain, overrides or {})


def settings_record(chosen: Settings) -> dict[str, Any]:
    """Return everything that decides the numbers of a cell as plain values; a learned row's name is spelled out.

    >>> settings_record(protocol_settings("cycles", "gape-learned-closed"))["encoding_options"]["layers"][0]["length"]
    20
    """
    found = chosen.as_dict()
    if find_row(chosen.encoding).encoder == "learned":
        found["encoding_options"] = learned(chosen.encoding, **chosen.encoding_options).as_dict()
    return found


def protocol_changes(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Describe how the settings of a recorded cell differ from the current ones, both as of :func:`settings_record`.

    >>> current = settings_record(protocol_settings("zinc", "rw"))
    >>> earlier = {**current, "readout": "mean", "lr": 0.1}
    >>> del earlier["pooling"]
    >>> protocol_changes(earlier, current)
    ['lr is 0.1 there and 0.0007 here']
    """
    # Settings added since then had their defaults.
    then = {"devices": 1, **Settings(current["task"], current["encoding"]).as_dict()}
    return describe_changes({**then, **current_names(recorded)}, json.loads(json.dumps(current)))


def full_record(chosen: Settings) -> dict[str, Any]:
    """Return :func:`settings_record` with the defaults of the dataset and of the encoding filled in.

    >>> plain = protocol_settings("csl", "gape")
    >>> full_record(plain) == full_record(override(plain, {"data.order": "random", "encoding.damping": "0.02"}))
    True
    """
    found = settings_record(chosen)
    found["data"] = {**data.settings_of(chosen.task), **found["data"]}
    if known := encoding_settings(chosen.encoding):
        found["encoding_options"] = {**{one.name: one.default for one in known}, **found["encoding_options"]}
    return found


def _encoding_options(task: TaskProtocol, encoding: str, seed: int) -> dict[str, Any]:
    """Return the settings of an encoding in a task; of encodings side by side, those of each part."""
    row, parts = find_row(encoding), encoding.split("+")
    if len(parts) == 1:
        return {**row.options, **_features(task, encoding, row.size_setting), **_seed(encoding, seed)}
    of_parts = {part: _encoding_options(task, part, seed) for part in parts}
    return {f"{part}.{name}": value for part, options in of_parts.items() for name, value in options.items()}


def _features(task: TaskProtocol, encoding: str, setting: str | None) -> dict[str, Any]:
    """Return the number of features k under the encoding's own name for it."""
    if setting is None:
        return {}
    of_encoding = {"lape": task.eigenvectors, "sa": task.eigenpairs, "rw": task.walk, "pprp": PPRP_POWERS}
    return {setting: of_encoding.get(encoding, GAPE_STATES)}


def _seed(encoding: str, seed: int) -> dict[str, int]:
    """Return the cell's seed for encodings that draw random numbers."""
    return {"seed": seed} if any(known.name == "seed" for known in encoding_settings(encoding)) else {}


#: Overrides for a quick comparison on CYCLES: fewer graphs to evaluate, a learning rate that falls sooner.
QUICK_SCHEDULE: Mapping[str, str] = MappingProxyType(
    {"data.val": "400", "data.test": "2000", "patience": "8", "min_lr": "1e-5", "max_epochs": "90"}
)
#: Minutes of training per cell at most; four such cells, two at a time, take less than five minutes.
QUICK_MINUTES = 2.2


def halvings_left(settings: Settings, lr: float) -> int:
    """Count how often the learning rate must still be reduced before training ends.

    >>> halvings_left(Settings("cycles", "none"), 5e-4), halvings_left(Settings("cycles", "none"), 0.9e-6)
    (9, 0)
    """
    if lr < settings.min_lr:
        return 0
    return math.floor(math.log(settings.min_lr / lr) / math.log(settings.factor) + 1e-9) + 1


def epochs_left(settings: Settings, line: Mapping[str, float]) -> int:
    """Return the least number of epochs left of a fold after the epoch of this line of ``metrics.csv``.

    >>> epochs_left(Settings("cycles", "none"), {"epoch": 10, "lr": 5e-4})
    99
    """
    by_schedule = halvings_left(settings, line["lr"]) * (settings.patience + 1)
    return max(0, min(by_schedule, settings.max_epochs - int(line["epoch"])))


def minutes_left(
    settings: Settings, fold: int, folds: int, line: Mapping[str, float], max_minutes: float | None
) -> float:
    """Return the least number of minutes left of a cell, at the speed of this fold so far."""
    pace = line["minutes"] / line["epoch"]
    whole = min(settings.max_epochs, halvings_left(settings, settings.lr) * (settings.patience + 1))
    left = pace * (epochs_left(settings, line) + (folds - 1 - fold) * whole)
    if max_minutes is not None:
        share = max_minutes / folds
        left = min(left, max(0.0, share - line["minutes"]) + (folds - 1 - fold) * share)
    return left
