"""A short schedule: the comparison on CYCLES within minutes, to see that it works and roughly what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: What is set otherwise than in the protocol: fewer graphs to evaluate, a learning rate that falls sooner.
SHORT: Mapping[str, str] = MappingProxyType(
    {"data.val": "400", "data.test": "2000", "patience": "8", "min_lr": "1e-5", "max_epochs": "90"}
)
#: Minutes of training a cell at most; two such cells side by side and then two more fit into five minutes.
SHORT_MINUTES = 2.2
