"""Arrays in a page: one base64 string of little-endian numbers, and an index that says where each array lies."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

_NAMES = {"float64": "f8", "float32": "f4", "uint8": "u1", "uint16": "u2", "uint32": "u4"}
# Tables of features up to these sizes are stored in float64 and float32; larger ones in 16 bits, scaled per column.
MAX_DOUBLE_ELEMENTS, MAX_FLOAT_ELEMENTS = 20_000, 200_000


class Arrays:
    """Collects named arrays for a page.

    Example:
        >>> arrays = Arrays()
        >>> arrays.add("x", np.arange(3, dtype=np.uint8))
        'x'
        >>> arrays.index["x"], arrays.text
        ({'type': 'u1', 'shape': [3], 'start': 0}, 'AAEC')
    """

    def __init__(self) -> None:
        self.index: dict[str, dict[str, Any]] = {}
        self._bytes = bytearray()

    def add(self, name: str, values: Any, dtype: Any = None) -> str:
        """Store an array, aligned to eight bytes; return its name."""
        array = np.ascontiguousarray(values, dtype=dtype)
        self._bytes.extend(b"\0" * (-len(self._bytes) % 8))
        self.index[name] = {"type": _NAMES[array.dtype.name], "shape": list(array.shape), "start": len(self._bytes)}
        self._bytes.extend(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        return name

    def add_nodes(self, name: str, values: Any, num_nodes: int) -> str:
        """Store node numbers in as few bytes as they need."""
        return self.add(name, values, np.uint16 if num_nodes <= 2**16 else np.uint32)

    def add_features(self, name: str, values: Any) -> str:
        """Store ``[n, k]`` features: as floats, or, if there are many, in 65,536 steps of each column's range."""
        array = np.asarray(values, dtype=np.float64)
        if array.size <= MAX_FLOAT_ELEMENTS:
            return self.add(name, array, np.float64 if array.size <= MAX_DOUBLE_ELEMENTS else np.float32)
        low, high = array.min(0), array.max(0)
        step = np.where(high > low, (high - low) / 65535, 1.0)
        self.add(name, np.round((array - low) / step), np.uint16)
        self.index[name] |= {"low": low.tolist(), "step": step.tolist()}
        return name

    @property
    def text(self) -> str:
        return base64.b64encode(self._bytes).decode("ascii")
