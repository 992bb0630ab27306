"""Position tables equal the library's solvers and encodings on paths and cycles."""

import pytest
import torch

import gape
from gape.encodings import CycleSpectrum, Laplacian, RandomWalk, ShortestPath
from gape.encodings.sequence import sequence_graph
from gape.experiments.translation.positions import gape_table, make_positions, path_table

PLACE = {"width": 32, "heads": 4, "max_positions": 24}


def test_gape_is_powers_of_an_orthogonal_matrix_from_the_first_token():
    table = gape_table(16, 30, seed=5)
    machine = gape.Automaton.random(16, damping=1.0, labels=2, initial_labels=(0,), seed=5)
    row = machine.initial[:, 0]
    for i in range(30):
        torch.testing.assert_close(table[i], row)
        row = machine.transition.T @ row
    norms = table.norm(dim=1)
    torch.testing.assert_close(norms, norms[:1].expand(30))  # rotations only


def test_gape_enters_without_scaling_or_linear_layer():
    positions = make_positions("gape", seed=3, **PLACE)
    assert not list(positions.parameters())
    embedded = torch.randn(2, 5, 32)
    torch.testing.assert_close(positions(embedded) - embedded, gape_table(32, 24, 3)[:5].float().expand(2, 5, 32))


def test_sinusoidal_automaton_is_the_sinusoids():
    for width in (2, 32, 256):
        table = path_table(gape.Automaton.sinusoidal(width), 1024)
        expected = gape.encodings.Sinusoidal(width).table(1024)
        torch.testing.assert_close(table, expected, rtol=0, atol=1e-12)


def test_one_table_serves_all_lengths():
    machine = gape.Automaton.random(8, damping=1.0, labels=2, initial_labels=(0,))
    torch.testing.assert_close(path_table(machine, 40)[:7], path_table(machine, 7))


@pytest.mark.parametrize(("name", "shape"), [("lape-p", "path"), ("lape-c", "cycle")])
def test_the_encoder_sees_the_sentences_own_graph(name, shape):
    positions = make_positions(name, **PLACE)
    with torch.no_grad():
        positions.linear.weight.copy_(torch.eye(32, 20))
        positions.linear.bias.zero_()
        found = positions(torch.zeros(2, 9, 32), torch.tensor([9, 6]))[:, :, :20]
    for row, length in zip(found, (9, 6), strict=True):
        reference = Laplacian(vectors=20)(sequence_graph(shape, length))
        # Equal up to a choice of basis in each eigenspace, so compare the Gram matrices of the rows.
        torch.testing.assert_close(row[:length] @ row[:length].T, reference @ reference.T, rtol=1e-4, atol=1e-5)
        assert not row[length:].any()


@pytest.mark.parametrize("name", ["lape-p", "lape-c", "sa"])
def test_the_decoder_sees_one_graph_for_all_lengths(name):
    positions = make_positions(name, **PLACE).eval()
    embedded = torch.randn(1, 9, 32)
    torch.testing.assert_close(positions(embedded)[:, :4], positions(embedded[:, :4]))
    torch.testing.assert_close(positions(embedded)[:, 4:6], positions(embedded[:, 4:6], None, 4))


def test_spectral_attention_is_a_post_norm_transformer_over_the_eigenpairs():
    """Compare with the layers written out: 16 channels, two layers, four heads, feed-forward width 16."""
    positions = make_positions("sa", **PLACE).eval()
    F = torch.nn.functional
    length = 9
    encoded = positions(torch.zeros(1, 12, 32), torch.tensor([length]))[0, :, 16:]
    pairs = CycleSpectrum(pairs=20)(sequence_graph("cycle", length))[:, :length]  # of twenty, nine exist
    x = F.linear(pairs, positions.pair.weight, positions.pair.bias)
    assert len(positions.attention.layers) == 2
    for layer in positions.attention.layers:
        weights, biases = layer.self_attn.in_proj_weight.chunk(3), layer.self_attn.in_proj_bias.chunk(3)
        q, k, v = (F.linear(x, w, b).unflatten(2, (4, 4)).transpose(1, 2) for w, b in zip(weights, biases, strict=True))
        seen = (q @ k.mT / 2).softmax(-1) @ v
        x = layer.norm1(x + layer.self_attn.out_proj(seen.transpose(1, 2).flatten(2)))
        assert layer.linear1.out_features == 16
        x = layer.norm2(x + layer.linear2(layer.linear1(x).relu()))
    torch.testing.assert_close(encoded[:length], x.sum(1), rtol=1e-4, atol=1e-5)
    assert not encoded[length:].any()


def test_random_walks_are_those_of_the_path():
    positions = make_positions("rw", **PLACE)
    torch.testing.assert_close(positions.table, RandomWalk(length=20)(sequence_graph("path", 24)), rtol=1e-4, atol=1e-5)


def test_bias_follows_the_distances_of_the_path():
    positions = make_positions("spd+c", **PLACE)
    distances = ShortestPath()(sequence_graph("path", 10)).matrices()[0].long()
    expected = positions.distance.weight[distances].permute(2, 0, 1)
    torch.testing.assert_close(positions.bias(10, 10), expected)
    torch.testing.assert_close(positions.bias(1, 10), expected[:, 9:])
    degrees = positions(torch.zeros(1, 24, 32))[0]
    assert torch.equal(degrees[0], degrees[23])
    assert torch.equal(degrees[1], degrees[12])
    assert not torch.equal(degrees[0], degrees[1])


def test_bias_learns():
    positions = make_positions("spd+c", **PLACE)
    query = torch.randn(1, 4, 6, 8)
    torch.nn.functional.scaled_dot_product_attention(query, query, query, positions.bias(6, 6)).sum().backward()
    assert positions.distance.weight.grad[:6].abs().sum() > 0
    assert not positions.distance.weight.grad[6:].any()
