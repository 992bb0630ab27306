"""The encoder does not see signs of eigenvectors, and does see everything else."""

import pytest
import torch
from tests.encodings.samples import permuted, random_graph

from gape import Graph
from gape.encodings import Laplacian, random_flips
from gape.nn import AttentionPattern, GraphTransformer, SignInvariantEncoder


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return SignInvariantEncoder(vectors=3, hidden=12)


def graphs():
    return Graph.union([random_graph(9, 0.4, 1, weighted=True), random_graph(6, 0.6, 1, weighted=True)])


def test_signs_of_any_vector_of_any_graph_change_nothing(encoder):
    graph = graphs()
    vectors = Laplacian(3)(graph)
    expected = encoder(vectors, graph.edge_index)
    generator = torch.Generator().manual_seed(0)
    for _ in range(8):
        flipped = random_flips(vectors, generator=generator, batch=graph.batch)
        assert torch.equal(encoder(flipped, graph.edge_index), expected)
    # Signs node by node are not a symmetry of eigenvectors.
    torn = vectors * torch.where(torch.arange(len(vectors)) % 2 == 0, 1.0, -1.0).unsqueeze(1)
    assert not torch.allclose(encoder(torn, graph.edge_index), expected, atol=1e-4)


def test_neighbours_of_opposite_sign_are_told_from_neighbours_of_equal_sign():
    # Entries of the same size at all nodes of a square: alternating signs, and signs in pairs.
    square = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], undirected=True)
    torch.manual_seed(0)
    for layers, told_apart in ((2, True), (0, False)):
        encoder = SignInvariantEncoder(vectors=1, hidden=4, layers=layers)
        first, second = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]]), torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])
        same = torch.allclose(encoder(first, square.edge_index), encoder(second, square.edge_index), atol=1e-5)
        assert same is not told_apart


def test_order_of_nodes_and_batching_do_not_matter(encoder):
    first, second = random_graph(9, 0.4, 1), random_graph(6, 0.6, 1)
    vectors = [torch.randn(9, 3), torch.randn(6, 3)]
    alone = [encoder(v, g.edge_index) for v, g in zip(vectors, (first, second), strict=True)]
    together = encoder(torch.cat(vectors), Graph.union([first, second]).edge_index)
    torch.testing.assert_close(together, torch.cat(alone))
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(encoder(vectors[0][order], permuted(first, order).edge_index), alone[0][order])


def test_it_is_an_encoder_of_the_graph_transformer():
    graph = graphs()
    model = GraphTransformer(
        "constant", 1, encoding=SignInvariantEncoder(8, hidden=80), pooling="mean", layers=1, hidden=80, heads=8
    )
    vectors = Laplacian(8)(graph)
    output = model.eval()(None, graph.edge_index, graph.batch, encoding=vectors)
    flipped = random_flips(vectors, generator=torch.Generator().manual_seed(1), batch=graph.batch)
    torch.testing.assert_close(model(None, graph.edge_index, graph.batch, encoding=flipped), output)
    output.sum().backward()
    assert all(parameter.grad is not None for parameter in model.encoding.parameters())


@pytest.mark.parametrize("encoding", [None, torch.ones(4, 2), torch.ones(4)])
def test_wrong_shapes_are_quoted(encoder, encoding):
    with pytest.raises(ValueError, match=r"encoding must have shape \[num_nodes, 3\], one column per vector, got"):
        encoder(encoding, AttentionPattern(torch.empty(2, 0, dtype=torch.long), num_nodes=4, heads=1))
    with pytest.raises(ValueError, match="vectors must be at least 1, got 0"):
        SignInvariantEncoder(0)
