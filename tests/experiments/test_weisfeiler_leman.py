"""Weisfeiler-Leman tests against NetworkX and against refinement by sorted tuples."""

import networkx as nx
import numpy as np
import pytest

from gape.experiments.invariants import pairs_differ, refine_nodes


def both_directions(graph):
    edges = np.array(graph.edges(), dtype=np.int64).reshape(-1, 2)
    return np.concatenate([edges, edges[:, ::-1]]).T


def by_tuples(graph):
    """Multisets of colours of 2-FWL after as many rounds as can matter, colours being nested tuples, hashed."""
    nodes = list(graph)
    colour = {(u, v): (u == v, graph.has_edge(u, v)) for u in nodes for v in nodes}
    for _ in range(len(nodes)):
        colour = {
            (u, v): hash((colour[u, v], tuple(sorted(hash((colour[u, w], colour[w, v])) for w in nodes))))
            for u, v in colour
        }
    return sorted(colour.values())


@pytest.mark.parametrize("seed", range(8))
def test_pairs_are_refined_as_by_definition(seed):
    generator = np.random.default_rng(seed)
    first = nx.gnp_random_graph(7, 0.4, seed=seed)
    if seed % 2:
        second = nx.relabel_nodes(first, dict(enumerate(generator.permutation(7).tolist())))
    else:
        second = nx.double_edge_swap(first.copy(), 1, max_tries=1000, seed=seed)
    expected = by_tuples(first) != by_tuples(second)
    matrices = [nx.to_numpy_array(graph, nodelist=range(7)) for graph in (first, second)]
    assert pairs_differ(*matrices) == expected
    assert pairs_differ(*matrices, seed=1) == expected


def test_three_wl_sees_cycles_and_not_strongly_regular_graphs():
    ring = nx.to_numpy_array(nx.cycle_graph(8))
    squares = nx.to_numpy_array(nx.disjoint_union(nx.cycle_graph(4), nx.cycle_graph(4)))
    assert pairs_differ(ring, squares)
    rook = nx.to_numpy_array(nx.line_graph(nx.complete_bipartite_graph(4, 4)))
    shift = [(1, 0), (0, 1), (1, 1), (3, 0), (0, 3), (3, 3)]
    shrikhande = nx.Graph(((a, b), ((a + x) % 4, (b + y) % 4)) for a in range(4) for b in range(4) for x, y in shift)
    assert not pairs_differ(rook, nx.to_numpy_array(shrikhande))
    assert pairs_differ(ring, rook)


@pytest.mark.parametrize("seed", range(6))
def test_nodes_are_refined_as_by_networkx(seed):
    first, second = nx.gnp_random_graph(12, 0.25, seed=seed), nx.random_regular_graph(3, 12, seed=seed)
    both = nx.disjoint_union(first, second)
    colours = refine_nodes(both_directions(both), 24)
    history = nx.weisfeiler_lehman_subgraph_hashes(both, iterations=24, digest_size=16)
    stable = [history[node][-1] for node in range(24)]
    assert len(set(zip(colours.tolist(), stable, strict=True))) == len(set(stable)) == len(set(colours.tolist()))


def test_colours_are_numbered_by_first_occurrence():
    assert refine_nodes(both_directions(nx.path_graph(5)), 5).tolist() == [0, 1, 2, 1, 0]
    assert refine_nodes(np.zeros((2, 0), np.int64), 3).tolist() == [0, 0, 0]
    assert refine_nodes(np.zeros((2, 0), np.int64), 0).tolist() == []


def test_graphs_too_large_for_exact_sums_are_refused():
    with pytest.raises(ValueError, match="at most 511 nodes, got 600"):
        pairs_differ(np.zeros((600, 600)), np.zeros((600, 600)))
