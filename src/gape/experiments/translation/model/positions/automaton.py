"""The table of an automaton that walks a sentence from its first token."""

from __future__ import annotations

from torch import Tensor

from gape.automaton import Automaton
from gape.encodings.sequence import sequence_graph
from gape.solvers import solve


def path_table(automaton: Automaton, positions: int) -> Tensor:
    """Encodings of a sentence's tokens: the automaton on a directed path, whose first node has label 0, the others 1.

    Row *i* is α₁ᵀμⁱ. The path's adjacency matrix is nilpotent, so the sum over all runs is finite whatever μ is, and
    γ = 1 is safe. Node *i* does not depend on the nodes after it: one table serves sentences of every length.

    Returns:
        ``[positions, states]`` in float64.

    Example:
        >>> path_table(Automaton.sinusoidal(2), 2)
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403]], dtype=torch.float64)
    """
    path = sequence_graph("path", positions, directed=True).with_labels([0] + [1] * (positions - 1))
    return solve(automaton, path).weights


def gape_table(states: int, positions: int, seed: int = 0) -> Tensor:
    """The GAPE of §4.1: orthogonal μ without damping, runs that start on the first token, normal α."""
    automaton = Automaton.random(states, damping=1.0, labels=2, initial_labels=(0,), seed=seed)
    return path_table(automaton, positions)
