"""Graph datasets by name, in one form: real ones from files, synthetic ones from seeded generators."""

import inspect
from collections.abc import Collection, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from gape._internal.validation import did_you_mean
from gape.data.baselines import edge_count_baseline, isolated_node_baseline
from gape.data.brec import BREC
from gape.data.csl import CSL
from gape.data.cycles import Cycles
from gape.data.cycles_v import CyclesV
from gape.data.dataset import GraphDataset, Split, Task
from gape.data.diamonds import Diamonds
from gape.data.directed_cycles import DirectedCycles
from gape.data.flat import FlatGraphs
from gape.data.pcqm4mv2 import ATOM_CATEGORIES, PCQM4Mv2
from gape.data.planar import Planar
from gape.data.qm9 import QM9
from gape.data.sbm import Cluster, Pattern
from gape.data.typed_walks import TypedWalks
from gape.data.zinc import Zinc

__all__ = [
    "ATOM_CATEGORIES",
    "BREC",
    "CSL",
    "QM9",
    "Cluster",
    "Cycles",
    "CyclesV",
    "Diamonds",
    "DirectedCycles",
    "FlatGraphs",
    "GraphDataset",
    "PCQM4Mv2",
    "Pattern",
    "Planar",
    "Split",
    "Task",
    "TypedWalks",
    "Zinc",
    "check",
    "edge_count_baseline",
    "isolated_node_baseline",
    "load",
    "names",
    "options",
    "setting_types",
    "settings_of",
    "task_of",
]

DATASETS: dict[str, Any] = {
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
    "diamonds": Diamonds,
    "typed-walks": TypedWalks,
    "brec": BREC,
}


def names() -> tuple[str, ...]:
    """Return the names of all datasets.

    >>> names()[:4]
    ('zinc', 'csl', 'cycles', 'cycles-v')
    """
    return tuple(DATASETS)


def _dataset_class(name: str) -> Any:
    if name not in DATASETS:
        raise ValueError(f"there is no dataset {name!r}; there are {', '.join(DATASETS)}{did_you_mean(name, DATASETS)}")
    return DATASETS[name]


def _build_options(dataset_class: Any) -> dict[str, Any]:
    parameters = inspect.signature(dataset_class.build).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def settings_of(name: str) -> dict[str, Any]:
    """Return the settings of a dataset, on which its graphs depend, with their defaults.

    >>> settings_of("csl")
    {'order': 'random', 'seed': 0}
    """
    return {field.name: field.default for field in fields(_dataset_class(name))}


def setting_types(name: str) -> dict[str, Any]:
    """Return the type of each setting.

    >>> setting_types("pcqm4mv2")
    {'limit': <class 'int'>, 'val_fraction': <class 'float'>, 'seed': <class 'int'>}
    """
    hints = get_type_hints(_dataset_class(name))
    return {setting: hints[setting] for setting in settings_of(name)}


def task_of(name: str) -> Task:
    """Return the task of a dataset.

    >>> task_of("zinc").metric
    'mae'
    """
    task: Task = _dataset_class(name).TASK
    return task


def check(name: str, **settings: Any) -> None:
    """Validate settings of a dataset without building it.

    >>> check("cycles", train=3)
    Traceback (most recent call last):
    ValueError: train must be an even number of graphs (they come in pairs), got 3
    """
    _check_known(name, settings, settings_of(name))
    _dataset_class(name)(**settings)


def _check_known(name: str, chosen: Iterable[str], known: Collection[str]) -> None:
    for option in chosen:
        if option not in known:
            raise ValueError(
                f"dataset {name!r} has no option {option!r}; it has {', '.join(known)}{did_you_mean(option, known)}"
            )


def options(name: str) -> dict[str, Any]:
    """Return all options of a dataset with their defaults: its settings, then the options of its ``build()``.

    >>> options("cycles")
    {'variant': 'disjointness', 'train': 200, 'val': 1000, 'test': 10000, 'seed': 0, 'cache': True}
    """
    return settings_of(name) | _build_options(_dataset_class(name))


def load(name: str, data_dir: str | Path | None = None, **chosen: Any) -> GraphDataset:
    """Load a dataset by name.

    Args:
        name: one of :func:`names`.
        data_dir: folder with real data; default the environment variable ``GAPE_DATA``. Generated datasets need none.
        chosen: options of that dataset, see :func:`options`; its class documents them.

    Example:
        >>> dataset = load("csl", seed=3)
        >>> train, val, test = dataset.split(fold=4)
        >>> dataset.metric, dataset.num_classes, len(train), len(val), len(test)
        ('accuracy', 10, 90, 30, 30)
        >>> load("csl", colour="red")
        Traceback (most recent call last):
        ValueError: dataset 'csl' has no option 'colour'; it has order, seed
    """
    dataset_class = _dataset_class(name)
    _check_known(name, chosen, options(name))
    build_options = {option: value for option, value in chosen.items() if option in _build_options(dataset_class)}
    settings = {option: value for option, value in chosen.items() if option not in build_options}
    dataset: GraphDataset = dataset_class(**settings).build(data_dir, **build_options)
    return dataset
