"""Slow, obvious answers: written with NumPy on dense matrices, sharing nothing with the library's solvers."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

import gape


def dense_adjacency(graph: gape.Graph) -> np.ndarray:
    """A[u, v], parallel edges added up."""
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    weights = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight.detach().double().numpy()
    for (u, v), w in zip(graph.edge_index.T.tolist(), weights, strict=True):
        matrix[u, v] += w
    return matrix


def node_labels(graph: gape.Graph) -> np.ndarray:
    return np.zeros(graph.num_nodes, dtype=int) if graph.labels is None else graph.labels.numpy()


def kronecker_system(automaton: gape.Automaton, matrix: np.ndarray) -> np.ndarray:
    """I - Aᵀ ⊗ μᵀ acting on the rows of X = Pᵀ laid end to end."""
    mu = automaton.transition.detach().numpy()
    return np.eye(len(matrix) * len(mu)) - np.kron(matrix.T, mu.T)


def kronecker_weights(automaton: gape.Automaton, graph: gape.Graph, matrix: np.ndarray | None = None) -> np.ndarray:
    """P ∘ τℓ, transposed, by one dense solve."""
    matrix = dense_adjacency(graph) if matrix is None else matrix
    labels = node_labels(graph) if automaton.labels > 1 else np.zeros(graph.num_nodes, dtype=int)
    source = automaton.initial.detach().numpy()[:, labels].T
    x = np.linalg.solve(kronecker_system(automaton, matrix), source.reshape(-1)).reshape(source.shape)
    final = np.ones_like(x) if automaton.final is None else automaton.final.detach().numpy()[:, labels].T
    return x * final


def typed_weights(automaton: gape.Automaton, graph: gape.Graph) -> np.ndarray:
    """The same with a transition per node label or edge type, entry by entry."""
    k, n = automaton.states, graph.num_nodes
    labels = node_labels(graph)
    system = np.eye(n * k)
    weights = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight.detach().double().numpy()
    for e, (u, v) in enumerate(graph.edge_index.T.tolist()):
        kind = labels[u] if automaton.transition_by == "node" else int(graph.edge_type[e])
        mu = automaton.transition[kind].detach().numpy()
        system[v * k : (v + 1) * k, u * k : (u + 1) * k] -= weights[e] * mu.T
    source = automaton.initial.detach().numpy()[:, labels if automaton.labels > 1 else np.zeros(n, dtype=int)].T
    return np.linalg.solve(system, source.reshape(-1)).reshape(n, k)


def enumerate_runs(automaton: gape.Automaton, graph: gape.Graph, longest: int) -> np.ndarray:
    """Σ of the weights of all runs of at most ``longest`` steps, each run written out (Definition 3)."""
    matrix, labels = dense_adjacency(graph), node_labels(graph)
    if automaton.labels == 1:
        labels = np.zeros(graph.num_nodes, dtype=int)
    alpha, mu = automaton.initial.numpy(), automaton.transition.numpy()
    tau = np.ones_like(alpha) if automaton.final is None else automaton.final.numpy()
    total = np.zeros((graph.num_nodes, automaton.states))
    configurations = list(itertools.product(range(automaton.states), range(graph.num_nodes)))
    for length in range(longest + 1):
        for run in itertools.product(configurations, repeat=length + 1):
            weight = alpha[run[0][0], labels[run[0][1]]]
            for (q, u), (r, v) in itertools.pairwise(run):
                step = mu[q, r] if mu.ndim == 2 else mu[labels[u]][q, r]
                weight *= step * matrix[u, v]
                if weight == 0:
                    break
            r, v = run[-1]
            total[v, r] += weight * tau[r, labels[v]]
    return total


@st.composite
def graphs(draw: st.DrawFn, *, symmetric: bool | None = None, max_nodes: int = 7, labels: int = 1) -> gape.Graph:
    """Directed or undirected, weighted or not, with loops, parallel edges and isolated nodes."""
    n = draw(st.integers(1, max_nodes))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3 * n))
    undirected = draw(st.booleans()) if symmetric is None else symmetric
    weight = None
    if draw(st.booleans()):
        weight = draw(
            st.lists(st.sampled_from([-1.5, -0.5, 0.25, 0.5, 1.0, 2.0]), min_size=len(pairs), max_size=len(pairs))
        )
    node_label = draw(st.lists(st.integers(0, labels - 1), min_size=n, max_size=n))
    return gape.Graph.from_edges(
        pairs, num_nodes=n, undirected=undirected, edge_weight=weight if pairs else None, labels=node_label
    )


@st.composite
def automata(draw: st.DrawFn, *, max_states: int = 4, labels: int = 1, final: bool = False) -> gape.Automaton:
    """Normal and far from normal transitions, from strongly damped to far outside the convergent range."""
    k = draw(st.integers(1, max_states))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    damping = draw(st.sampled_from([0.02, 0.3, 0.9, 1.7]))
    if draw(st.booleans()):
        transition = np.linalg.qr(rng.standard_normal((k, k)))[0] * damping
    else:
        transition = rng.standard_normal((k, k)) * damping
    return gape.Automaton(
        initial=rng.standard_normal((k, labels)),
        transition=transition,
        final=rng.standard_normal((k, labels)) if final else None,
    )
