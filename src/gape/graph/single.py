"""One small graph as a NumPy matrix, for the direct path of encodings.

PyG's ``transform`` and ``pre_transform`` see one graph at a time. On a molecule a NumPy call costs a microsecond, a
call of PyTorch several, and the work itself little more, so the general path for batches is mostly calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gape.graph.graph import Graph

#: Beyond this size the work outweighs the calls.
MAX_SINGLE_NODES = 64


def single_matrix(graph: Graph) -> NDArray[np.float64] | None:
    """Return A ``[n, n]`` of one small graph without weights on the CPU, ``None`` for anything else.

    Example:
        >>> single_matrix(Graph.from_edges([(0, 1), (0, 1)]))
        array([[0., 2.],
               [0., 0.]])
    """
    n = graph.num_nodes
    if not 0 < n <= MAX_SINGLE_NODES or graph.num_graphs > 1 or graph.edge_weight is not None:
        return None
    if graph.edge_index.device.type != "cpu":
        return None
    source, target = graph.edge_index.numpy()
    return np.bincount(source * n + target, minlength=n * n).reshape(n, n).astype(np.float64)
