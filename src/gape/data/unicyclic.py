"""Random connected graphs with exactly one cycle, of a chosen length, and with chosen degrees."""

import heapq

import numpy as np

from gape.data.flat import Array

LENGTH = 6  # of the cycle that is looked for
OTHER_LENGTHS = (18, 28)  # of the cycle in graphs that do not hold one of six: uniform on this range
SMALLEST, LARGEST = 37, 65
_MEAN, _DEVIATION = 49.0, 4.0
_LEAF_SHARE = (0.05, 0.12)


def draw_size(generator: np.random.Generator) -> int:
    """A number of nodes: normal around 49, rounded, redrawn until it lies in 37..65."""
    while True:
        nodes = round(generator.normal(_MEAN, _DEVIATION))
        if SMALLEST <= nodes <= LARGEST:
            return nodes


def draw_matched_pair(generator: np.random.Generator) -> tuple[Array, Array]:
    """Edges of a graph with a 6-cycle and of one with a longer cycle, of the same size and the same degrees.

    The cycle's edges come first. Node numbers are the same in both: leaves last; shuffle them before use.
    """
    nodes = draw_size(generator)
    leaves = round(nodes * generator.uniform(*_LEAF_SHARE))
    degrees = degree_sequence(generator, nodes, leaves)
    other = int(generator.integers(OTHER_LENGTHS[0], OTHER_LENGTHS[1] + 1))
    return unicyclic(generator, degrees, LENGTH), unicyclic(generator, degrees, other)


def degree_sequence(generator: np.random.Generator, nodes: int, leaves: int) -> Array:
    """Degrees of a connected graph with as many edges as nodes: ``leaves`` ones, all others 2, 3 or 4.

    The degrees sum to twice the number of nodes, so every leaf is paid for by one unit above 2 somewhere else.

    >>> degree_sequence(np.random.default_rng(0), nodes=8, leaves=2).tolist()
    [2, 3, 2, 2, 3, 2, 1, 1]
    """
    inner = nodes - leaves
    if not 0 <= leaves <= 2 * inner:
        raise ValueError(f"{nodes} nodes cannot have {leaves} leaves and no degree above 4; take fewer leaves")
    units = generator.permutation(2 * inner)[:leaves] // 2  # two units at most for each inner node
    return np.append(2 + np.bincount(units, minlength=inner), np.ones(leaves, dtype=np.int64))


def unicyclic(generator: np.random.Generator, degrees: Array, length: int) -> Array:
    """A random connected graph with these degrees whose only cycle has ``length`` nodes.

    The nodes of the cycle are a uniform choice among those of degree 2 or more, in uniform order; what hangs on the
    cycle is a uniform random forest with the remaining degrees. (That is not the uniform distribution over all
    such graphs, which does not matter here: what matters is that only ``length`` differs.)

    Args:
        generator: source of randomness.
        degrees: ``[n]``, summing to ``2n``.
        length: of the cycle, at least 3.

    Returns: ``[n, 2]`` edges; the first ``length`` of them are the cycle, in order.

    >>> unicyclic(np.random.default_rng(0), np.array([3, 2, 2, 1]), length=3)[3:].tolist()
    [[3, 0]]
    """
    nodes = len(degrees)
    inner = np.flatnonzero(degrees >= 2)
    if degrees.sum() != 2 * nodes or degrees.min() < 1:
        raise ValueError(f"degrees must be positive and sum to {2 * nodes}, got a sum of {degrees.sum()}")
    branching = degrees[inner].max() > 2 if len(inner) else False
    if not 3 <= length <= len(inner) or (length < nodes and not branching):
        raise ValueError(
            f"cannot put a cycle of {length} nodes through the {len(inner)} nodes of degree 2 or more: "
            f"choose a length from 3 to {len(inner)}"
        )
    while True:
        ring = generator.permutation(inner)[:length]
        children = degrees - 1
        children[ring] -= 1
        if length == nodes or children[ring].any():
            break  # else nothing could hang on this cycle, and the graph would not be connected
    cycle = np.stack([ring, np.roll(ring, -1)], axis=1)
    if length == nodes:
        return cycle
    return np.concatenate([cycle, _forest(generator, ring, children)])


def _forest(generator: np.random.Generator, roots: Array, children: Array) -> Array:
    """A uniform random forest with given roots and given numbers of children.

    Such forests correspond one to one to the sequences that name every node as often as it has children and end
    with a root (Prüfer's code): the t-th removed leaf hangs on the t-th entry.
    """
    last = generator.choice(np.repeat(roots, children[roots]))
    others = children.copy()
    others[last] -= 1
    code = np.append(generator.permutation(np.repeat(np.arange(len(children)), others)), last)
    is_root = np.zeros(len(children), dtype=bool)
    is_root[roots] = True
    waiting = children.tolist()
    leaves = np.flatnonzero((children == 0) & ~is_root).tolist()  # sorted, hence a heap
    edges = []
    for parent in code.tolist():
        edges.append((heapq.heappop(leaves), parent))
        waiting[parent] -= 1
        if waiting[parent] == 0 and not is_root[parent]:
            heapq.heappush(leaves, parent)
    return np.array(edges)
