"""Data sets by name."""

import inspect
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from gape.data.csl import CSL
from gape.data.cycles import Cycles
from gape.data.cycles_v import CyclesV
from gape.data.dataset import GraphDataset
from gape.data.directed_cycles import DirectedCycles
from gape.data.pcqm4mv2 import PCQM4Mv2
from gape.data.planar import Planar
from gape.data.qm9 import QM9
from gape.data.sbm import Cluster, Pattern
from gape.data.task import Task
from gape.data.zinc import Zinc

SOURCES: dict[str, Any] = {
    "zinc": Zinc,
    "csl": CSL,
    "cycles": Cycles,
    "cycles-v": CyclesV,
    "pattern": Pattern,
    "cluster": Cluster,
    "planar": Planar,
    "pcqm4mv2": PCQM4Mv2,
    "qm9-20k": QM9,
    "directed-cycles": DirectedCycles,
}


def names() -> tuple[str, ...]:
    """The data sets that there are.

    >>> names()
    ('zinc', 'csl', 'cycles', 'cycles-v', 'pattern', 'cluster', 'planar', 'pcqm4mv2', 'qm9-20k', 'directed-cycles')
    """
    return tuple(SOURCES)


def _source(name: str) -> Any:
    if name not in SOURCES:
        raise ValueError(f"no data set {name!r}; there are {', '.join(SOURCES)}")
    return SOURCES[name]


def _build_options(source: Any) -> dict[str, Any]:
    parameters = inspect.signature(source.build).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def settings_of(name: str) -> dict[str, Any]:
    """What decides which graphs a data set has, with the defaults.

    >>> settings_of("csl")
    {'order': 'random', 'seed': 0}
    """
    return {field.name: field.default for field in fields(_source(name))}


def setting_types(name: str) -> dict[str, Any]:
    """The type of each setting.

    >>> setting_types("pcqm4mv2")
    {'limit': <class 'int'>, 'val_fraction': <class 'float'>, 'seed': <class 'int'>}
    """
    hints = get_type_hints(_source(name))
    return {setting: hints[setting] for setting in settings_of(name)}


def task_of(name: str) -> Task:
    """What a data set asks.

    >>> task_of("zinc").metric
    'mae'
    """
    task: Task = _source(name).TASK
    return task


def check(name: str, **settings: Any) -> None:
    """Refuse settings that the data set cannot have, without building it.

    >>> check("cycles", train=3)
    Traceback (most recent call last):
    ValueError: train must be an even number of graphs (they come in pairs), got 3
    """
    _refuse_unknown(name, settings, settings_of(name))
    _source(name)(**settings)


def _refuse_unknown(name: str, chosen: Iterable[str], known: Iterable[str]) -> None:
    for option in chosen:
        if option not in known:
            raise ValueError(f"data set {name!r} has no option {option!r}; it has {', '.join(known)}")


def options(name: str) -> dict[str, Any]:
    """All that can be set for a data set, with the defaults: its settings, and how it is made.

    >>> options("cycles")
    {'variant': 'disjointness', 'train': 200, 'val': 1000, 'test': 10000, 'seed': 0, 'cache': True}
    """
    return settings_of(name) | _build_options(_source(name))


def load(name: str, data_dir: str | Path | None = None, **chosen: Any) -> GraphDataset:
    """A data set by name.

    Args:
        name: one of :func:`names`.
        data_dir: folder with real data; default the environment variable ``GAPE_DATA``. Generated sets need none.
        chosen: settings of that set, see :func:`options`; they are explained at its class.

    Example:
        >>> dataset = load("csl", seed=3)
        >>> train, val, test = dataset.split(fold=4)
        >>> dataset.metric, dataset.num_classes, len(train), len(val), len(test)
        ('accuracy', 10, 90, 30, 30)
        >>> load("csl", colour="red")
        Traceback (most recent call last):
        ValueError: data set 'csl' has no option 'colour'; it has order, seed
    """
    source = _source(name)
    _refuse_unknown(name, chosen, options(name))
    how = {option: value for option, value in chosen.items() if option in _build_options(source)}
    settings = {option: value for option, value in chosen.items() if option not in how}
    dataset: GraphDataset = source(**settings).build(data_dir, **how)
    return dataset
