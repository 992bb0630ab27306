"""Random graphs that hold a 6-cycle if and only if two random sets have a common element."""

import numpy as np

from gape.data.flat import Array

LENGTH = 6  # nodes of the cycle that is looked for; all other cycles of these graphs have eight or more
SIDE = 9  # rows, and columns, of the grid whose cells are the elements
PROBABILITY = 0.5**0.5 / SIDE  # of an element to be in a set: both sets then have half a common element on average
SMALLEST, LARGEST = 37, 65  # nodes; one draw in ten thousand has fewer or more, and is left out


def graph_of_sets(upper: Array, lower: Array) -> tuple[int, Array]:
    """Number of nodes and edges of the graph that asks whether two sets of cells of a square grid are disjoint.

    Rows and columns of the grid have a node for the upper set and a node for the lower set, joined by an edge. A cell
    of a set is a path of two edges, over a node of its own, from the node of its row to that of its column. A common
    cell is a cycle: row, cell, column above, then column, cell, row below. So there are 4 s nodes and one per element
    for a grid of side s, 2 s edges and two per element, and no node is isolated.

    Args:
        upper, lower: ``[s, s]``, true where a cell is in the set.

    Example:
        >>> both = np.array([[True, False], [False, False]])
        >>> nodes, edges = graph_of_sets(both, both)
        >>> nodes, edges.tolist()
        (10, [[0, 4], [1, 5], [2, 6], [3, 7], [0, 8], [8, 2], [4, 9], [9, 6]])
    """
    side = len(upper)
    above = np.arange(2 * side)  # rows, then columns; those below are numbered 2 s higher
    blocks, nodes = [np.stack([above, above + 2 * side], axis=1)], 4 * side
    for first, cells in ((0, upper), (2 * side, lower)):
        rows, columns = np.nonzero(cells)
        new = nodes + np.arange(len(rows))
        blocks.append(np.stack([first + rows, new, new, first + side + columns], axis=1).reshape(-1, 2))
        nodes += len(rows)
    return nodes, np.concatenate(blocks)


def edges_of_common_cell(upper: Array, lower: Array) -> Array:
    """Positions, among the edges of :func:`graph_of_sets`, of the 6-cycle of the first common cell.

    >>> both = np.array([[True, False], [False, False]])
    >>> edges_of_common_cell(both, both).tolist()
    [0, 2, 4, 5, 6, 7]
    """
    side = len(upper)
    cell = int(np.flatnonzero(upper & lower)[0])
    above = 2 * side + 2 * int(upper.ravel()[:cell].sum())
    below = 2 * side + 2 * int(upper.sum() + lower.ravel()[:cell].sum())
    return np.array([cell // side, side + cell % side, above, above + 1, below, below + 1])


def draw_pair(generator: np.random.Generator) -> tuple[tuple[int, Array], tuple[int, Array]]:
    """Draw a graph with a 6-cycle and one without, as (number of nodes, edges), each by rejection.

    Every cell is in each set with :data:`PROBABILITY`, independently; which class a draw is of is left to chance, and
    the first draw of either class is taken. The first six edges of the first graph are a 6-cycle. Node numbers tell
    rows from columns; shuffle them before use.
    """
    found: dict[bool, tuple[int, Array]] = {}
    while len(found) < 2:
        upper, lower = generator.random((2, SIDE, SIDE)) < PROBABILITY
        common = bool((upper & lower).any())
        nodes, edges = graph_of_sets(upper, lower)
        if common in found or not SMALLEST <= nodes <= LARGEST:
            continue
        if common:
            cycle = edges_of_common_cell(upper, lower)
            edges = np.concatenate([edges[cycle], np.delete(edges, cycle, axis=0)])
        found[common] = nodes, edges
    return found[True], found[False]
