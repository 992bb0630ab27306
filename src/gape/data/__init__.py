"""Graph datasets by name, in one form: real ones from files, synthetic ones from seeded generators."""

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
from gape.data.registry import check, load, names, options, setting_types, settings_of, task_of
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
