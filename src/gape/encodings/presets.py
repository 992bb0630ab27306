"""The paper's variants of GAPE by name (§4.2.3). No ``*`` in the names: shells would expand it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

_STAR: dict[str, Any] = {"transition": "stochastic", "damping": 1.0, "on_singular": "least_squares"}
_TWO_STAR = {**_STAR, "initial": "softmax_states"}
_TWENTY = {"labels": 20, "labelling": "random"}

#: What each preset sets; everything else is as in :class:`gape.encodings.GAPE`. The paper's text takes the softmax of
#: `**` over the states, the authors' code over the nodes: set ``initial="softmax_nodes"`` for the latter.
PRESETS = MappingProxyType(
    {
        "gape": {},
        "gape-star": _STAR,
        "gape-star-20": {**_STAR, **_TWENTY},
        "gape-2star": _TWO_STAR,
        "gape-2star-20": {**_TWO_STAR, **_TWENTY},
        "gape-2star-max": {**_TWO_STAR, "labels": 200, "labelling": "index"},
    }
)
