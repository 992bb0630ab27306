"""The paper's settings for every task, in one table.

They are those of the authors' runs, which the paper's text does not always state: its learning rates are ten times
too high, and it gives 20 eigenvectors for every task. One thing is ours: pooling, heads and patience of a task are the
same for all encodings (the authors' SA and SPD+C had another pooling than the rest of their column, SA on CSL ten
heads, SA and SPD+C on ZINC a patience of ten). The softmax of GAPE** is the code's, not the text's.

The help of ``gape bench`` has the names from here, so nothing slow is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: The paper's four seeds.
SEEDS = (41, 95, 22, 35)


@dataclass(frozen=True)
class TaskProtocol:
    """Settings of one task; hidden width 80, 8 heads, Adam, halving to 1e-6 and 1,000 epochs are the same for all.

    Args:
        title: the column's name in the paper.
        layers, batch_size, lr, patience, pooling: see :class:`Settings`.
        eigenvectors: k of LAPE.
        eigenpairs: k of spectral attention.
        walk: k of RW.
        degrees, distances: sizes of the embedding tables of SPD+C.
    """

    title: str
    layers: int
    batch_size: int
    lr: float
    patience: int
    pooling: Literal["sum", "mean", "node"]
    eigenvectors: int
    eigenpairs: int
    walk: int
    degrees: int
    distances: int


# fmt: off
TASKS: Mapping[str, TaskProtocol] = {
    #                          column      layers batch   lr  patience pooling  LAPE  SA  RW   SPD+C
    "zinc":     TaskProtocol("ZINC",        10,  128,  7e-4,  15,     "mean",    8,   10,  20,   64, 128),
    "csl":      TaskProtocol("CSL",          6,    5,  5e-4,  10,     "sum",    20,   20,  20,   64, 128),
    "cycles":   TaskProtocol("CYCLES",      10,   25,  5e-4,  10,     "sum",    20,   20,  20,  128, 512),
    "pattern":  TaskProtocol("PATTERN",     10,   26,  5e-4,  10,     "node",    2,   10,  20,  256, 512),
    "cluster":  TaskProtocol("CLUSTER",     10,   32,  5e-4,  10,     "node",   10,   10,  20,  256, 512),
    "planar":   TaskProtocol("PLANAR",      10,   32,  5e-4,  10,     "mean",   20,   10,  20,  128, 512),
    "cycles-v": TaskProtocol("CYCLES-V",    10,   25,  5e-4,  10,     "sum",    20,   20,   9,  512, 512),
    "pcqm4mv2": TaskProtocol("PCQM4Mv2",    10, 1024,  7e-4,  15,     "mean",   20,   10,  20,   64, 128),
    # Not in the paper; trained like ZINC.
    "qm9-20k":  TaskProtocol("QM9-20K",     10,  128,  7e-4,  15,     "mean",    8,   10,  20,   64, 128),
    # Not in the paper either; trained like CYCLES, the last two with fewer layers.
    "directed-cycles": TaskProtocol("DIRECTED-CYCLES", 10, 25, 5e-4, 10, "sum", 20, 20, 20, 128, 512),
    "diamonds": TaskProtocol("DIAMONDS",     4,   25,  5e-4,  10,     "sum",    20,   20,  20,  128, 512),
    "typed-walks": TaskProtocol("TYPED-WALKS", 4, 25, 5e-4,  10,     "sum",    20,   20,  20,  128, 512),
}
# fmt: on

#: k of GAPE and of PPRP, in every task.
GAPE_STATES = 32
PPRP_POWERS = 20
