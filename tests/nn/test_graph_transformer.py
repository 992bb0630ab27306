"""The model: published parameter counts, batches, permutations, every way an encoding enters."""

import pytest
import torch
from torch import nn

from gape import Graph
from gape.encodings import ShortestPath
from gape.nn import (
    OGB_ATOM,
    AttentionPattern,
    DegreeAndDistance,
    GraphTransformer,
    GraphTransformerLayer,
    LinearEncoder,
    SpectralAttention,
)

SIZES = [6, 1, 9, 4]


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def settled(model: nn.Module) -> nn.Module:
    """In eval mode, with statistics and affine parameters of the norms away from their start."""
    generator = torch.Generator().manual_seed(7)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean = torch.randn(module.num_features, generator=generator)
            module.running_var = torch.rand(module.num_features, generator=generator) + 0.5
    return model.eval()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"inputs": "constant", "out_channels": 2}, 522_662),  # CYCLES
        ({"inputs": "constant", "out_channels": 2, "encoding": LinearEncoder(20)}, 522_662 + 1_680),  # RW-20
        ({"inputs": "constant", "out_channels": 2, "encoding": LinearEncoder(32)}, 522_662 + 2_640),  # GAPE-32
        ({"inputs": 28, "out_channels": 1}, 524_721),  # ZINC
        ({"inputs": 1, "out_channels": 10, "layers": 6}, 315_390),  # CSL
        ({"inputs": "constant", "out_channels": 2, "encoding": SpectralAttention()}, 557_814),  # "557.8 k"
        ({"inputs": "constant", "out_channels": 2, "encoding": DegreeAndDistance()}, 547_238),  # "547 k"
        # PATTERN and CYCLES-V with SPD+C: "568 k", "609 k"
        (
            {"inputs": 3, "out_channels": 2, "pooling": "node", "encoding": DegreeAndDistance(degrees=256)},
            567_798,
        ),
        ({"inputs": "constant", "out_channels": 2, "encoding": DegreeAndDistance(degrees=512)}, 608_678),
        # Without a published total: CLUSTER, PCQM4Mv2 (10 layers, 174 atom categories, one number out).
        ({"inputs": 7, "out_channels": 6, "pooling": "node"}, 518_400 + 7 * 80 + 4_060 + 126),
        ({"inputs": OGB_ATOM, "out_channels": 1}, 518_400 + 174 * 80 + 4_060 + 21),
    ],
)
def test_parameter_counts_are_the_published_ones(settings, expected):
    assert parameters(GraphTransformer(**settings)) == expected


def test_layer_is_its_definition(random_batch):
    edge_index, batch = random_batch([5, 3], 0.5)
    layer = settled(GraphTransformerLayer(80, 8))
    h = torch.randn(8, 80, generator=torch.Generator().manual_seed(0))
    pattern = GraphTransformer(1, 1, layers=0).pattern(edge_index, batch)
    query, key, value = (part.view(8, 8, 10) for part in layer.attention.qkv(h).chunk(3, 1))
    attended = torch.zeros(8, 8, 10)
    for v in range(8):
        sources = edge_index[0, edge_index[1] == v]
        if len(sources):
            scores = torch.einsum("hd,uhd->hu", query[v], key[sources]) / 10**0.5
            attended[v] = torch.einsum("hu,uhd->hd", scores.clamp(-5, 5).softmax(1), value[sources])
    first = layer.attention_norm(h + layer.attention.output(attended.flatten(1)))
    second = layer.feed_forward_norm(first + layer.narrow(layer.widen(first).relu()))
    torch.testing.assert_close(layer(h, pattern), second, rtol=1e-5, atol=1e-5)


def make_encoding(encoder, num_nodes: int, sizes: list[int]):
    """Something each encoder takes, per node or per graph."""
    generator = torch.Generator().manual_seed(8)
    if isinstance(encoder, LinearEncoder):
        return torch.randn(num_nodes, encoder.channels, generator=generator)
    if isinstance(encoder, SpectralAttention):
        spectrum = torch.randn(num_nodes, 5, 2, generator=generator)
        for n, part in zip(sizes, spectrum.split(sizes), strict=True):
            part[:, n:] = torch.nan
        return spectrum
    return torch.randint(-1, 4, (len(sizes), max(sizes), max(sizes)), generator=generator)


ENCODERS = [None, lambda: LinearEncoder(6, 16), SpectralAttention, lambda: DegreeAndDistance(16, 4)]


def build(make_encoder, **settings) -> GraphTransformer:
    torch.manual_seed(0)
    encoder = make_encoder and make_encoder()
    return GraphTransformer(5, 3, layers=3, hidden=16, heads=4, encoding=encoder, **settings)


@pytest.mark.parametrize("make_encoder", ENCODERS)
@pytest.mark.parametrize("attention", ["neighbours", "full"])
@pytest.mark.parametrize("pooling", ["sum", "mean", "node"])
@pytest.mark.parametrize("kernel", ["edge", "dense"])
def test_batch_gives_what_the_graphs_one_by_one_give(random_batch, make_encoder, attention, pooling, kernel):
    model = settled(build(make_encoder, attention=attention, pooling=pooling, kernel=kernel))
    edge_index, batch = random_batch(SIZES, 0.4)
    x = torch.randint(5, (len(batch),), generator=torch.Generator().manual_seed(1))
    encoding = None if make_encoder is None else make_encoding(model.encoding, len(batch), SIZES)
    together = model(x, edge_index, batch, encoding)
    alone, first = [], 0
    for graph, n in enumerate(SIZES):
        mine = batch[edge_index[1]] == graph
        part = encoding
        if encoding is not None:
            per_graph = isinstance(model.encoding, DegreeAndDistance)
            part = encoding[graph : graph + 1, :n, :n] if per_graph else encoding[first : first + n]
        alone.append(model(x[first : first + n], edge_index[:, mine] - first, encoding=part))
        first += n
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make_encoder", ENCODERS[:3])
@pytest.mark.parametrize("attention", ["neighbours", "full"])
def test_order_of_nodes_and_edges_does_not_matter(random_batch, make_encoder, attention):
    model = settled(build(make_encoder, attention=attention, pooling="node"))
    edge_index, batch = random_batch([11], 0.3)
    generator = torch.Generator().manual_seed(2)
    x = torch.randint(5, (11,), generator=generator)
    encoding = None if make_encoder is None else make_encoding(model.encoding, 11, [11])
    order = torch.randperm(11, generator=generator)  # new node i is old node order[i]
    shuffled = order.argsort()[edge_index][:, torch.randperm(edge_index.shape[1], generator=generator)]
    moved = model(x[order], shuffled, batch, None if encoding is None else encoding[order])
    torch.testing.assert_close(moved, model(x, edge_index, batch, encoding)[order], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("clamp", [5.0, None])
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_kernels_train_alike(random_batch, clamp, norm):
    edge_index, batch = random_batch(SIZES, 0.4)
    x = torch.randint(5, (len(batch),), generator=torch.Generator().manual_seed(1))
    weights = []
    for kernel in ("edge", "dense"):
        model = build(None, kernel=kernel, clamp=clamp, norm=norm)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(2):
            optimiser.zero_grad()
            model(x, edge_index, batch).square().mean().backward()
            optimiser.step()
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make_encoder", ENCODERS)
@pytest.mark.parametrize("attention", ["neighbours", "full"])
def test_every_parameter_learns(random_batch, make_encoder, attention):
    # LayerNorm, because BatchNorm subtracts the mean and so cancels every bias just before it.
    model = build(make_encoder, attention=attention, pooling="node", clamp=None, norm="layer").double()
    edge_index, batch = random_batch(SIZES, 0.4)
    x = torch.randint(5, (len(batch),), generator=torch.Generator().manual_seed(1))
    encoding = None if make_encoder is None else make_encoding(model.encoding, len(batch), SIZES)
    model(x, edge_index, batch, encoding).pow(3).sum().backward()
    still = {name for name, p in model.named_parameters() if p.grad is None or p.grad.abs().max() < 1e-9}
    # At distance 1 the bias is the same for all neighbours, and the softmax cancels it: SPD+C is degrees only.
    degrees_only = attention == "neighbours" and make_encoder is ENCODERS[3]
    assert still == ({"encoding.distance.weight"} if degrees_only else set())


def test_distances_matter_in_full_attention_only(random_batch):
    edge_index, batch = random_batch(SIZES, 0.4)
    x = torch.zeros(len(batch), dtype=torch.long)
    near, far = torch.ones(4, 9, 9, dtype=torch.long), torch.randint(1, 5, (4, 9, 9))
    for attention in ("neighbours", "full"):
        model = settled(build(ENCODERS[3], attention=attention))
        same = torch.allclose(model(x, edge_index, batch, near), model(x, edge_index, batch, far), atol=1e-4)
        assert same == (attention == "neighbours")


def test_degrees_and_distances_beyond_the_tables_share_the_last_row():
    star = torch.stack([torch.arange(1, 9), torch.zeros(8, dtype=torch.long)])
    model = GraphTransformer(1, 1, layers=0, attention="full")
    encoder = DegreeAndDistance(degrees=4, distances=3)
    pattern = model.pattern(star, torch.zeros(9, dtype=torch.long))
    code = encoder(None, pattern)
    torch.testing.assert_close(code[0], encoder.in_degree.weight[3])
    torch.testing.assert_close(code[1], encoder.out_degree.weight[1])
    bias = encoder.bias(torch.tensor([[[0, 1, 2, 3, -1]]]), pattern)
    torch.testing.assert_close(bias[0, :, 0].T, encoder.distance.weight[[0, 1, 2, 2, 2]])
    assert (encoder.distance.weight[0] == 0).all()


def test_pairs_without_a_path_have_a_row_of_their_own():
    edge = torch.tensor([[0], [1]])
    (distances,) = ShortestPath()(Graph(edge, 2)).matrices()
    encoder = DegreeAndDistance()
    bias = encoder.bias(distances.T[None], AttentionPattern(edge, num_nodes=2, heads=8, full=True))
    torch.testing.assert_close(bias[0].permute(1, 2, 0), encoder.distance.weight[torch.tensor([[0, 510], [1, 0]])])


def test_missing_eigenpairs_change_nothing_and_no_eigenpair_is_zero():
    encoder = SpectralAttention().eval()
    pattern = GraphTransformer(1, 1, layers=0).pattern(torch.empty(2, 0, dtype=torch.long), torch.zeros(3).long())
    spectrum = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(3))
    padded = torch.cat([spectrum, torch.full((3, 6, 2), torch.nan)], 1)
    torch.testing.assert_close(encoder(padded, pattern), encoder(spectrum, pattern))
    padded[1] = torch.nan
    code = encoder.train()(padded, pattern)
    assert (code[1] == 0).all()
    code.sum().backward()
    assert all(p.grad.isfinite().all() for p in encoder.parameters())


def test_signs_flip_per_column_in_training_only():
    encoder = LinearEncoder(64, flip_signs=True)
    pattern = GraphTransformer(1, 1, layers=0).pattern(torch.empty(2, 0, dtype=torch.long), torch.zeros(64).long())
    torch.nn.init.eye_(encoder.linear.weight)
    torch.nn.init.zeros_(encoder.linear.bias)
    ones = torch.ones(64, 64)
    flipped = encoder(ones, pattern)[:, :64]
    assert set(flipped.unique().tolist()) == {-1.0, 1.0}
    assert (flipped == flipped[0]).all()
    assert (encoder.eval()(ones, pattern)[:, :64] == 1).all()


def test_constant_features_may_be_left_out(random_batch):
    edge_index, batch = random_batch(SIZES, 0.4)
    for inputs, x in (("constant", torch.ones(len(batch))), (1, torch.zeros(len(batch), 1))):
        model = settled(GraphTransformer(inputs, 2, layers=1))
        torch.testing.assert_close(model(None, edge_index, batch), model(x, edge_index, batch))


def test_without_encoding_sum_pooling_of_equal_nodes_sees_size_only(random_batch):
    # Every node has the same state, so a graph's answer depends on its number of nodes alone (none isolated).
    model = settled(GraphTransformer("constant", 2, layers=2))
    ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
    triangles = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
    alone = torch.zeros(6, dtype=torch.long)
    torch.testing.assert_close(model(None, ring, alone), model(None, triangles, alone))


def test_pattern_can_be_kept_and_empty_graphs_counted(random_batch):
    model = settled(GraphTransformer(5, 3, layers=2))
    edge_index, batch = random_batch(SIZES, 0.4)
    x = torch.zeros(len(batch), dtype=torch.long)
    pattern = model.pattern(edge_index, batch, num_graphs=6)
    kept = model(x, edge_index, batch, pattern=pattern)
    torch.testing.assert_close(kept, model(x, edge_index, batch, num_graphs=6))
    assert kept.shape == (6, 3)
    torch.testing.assert_close(kept[4], kept[5])


def test_dropout_is_in_the_layers_and_on_the_inputs(random_batch):
    edge_index, batch = random_batch(SIZES, 0.4)
    x = torch.zeros(len(batch), dtype=torch.long)
    for settings in ({"dropout": 0.5}, {"input_dropout": 0.5}):
        model = GraphTransformer(5, 3, layers=1, norm="layer", **settings)
        assert not torch.allclose(model(x, edge_index, batch), model(x, edge_index, batch))
        model.eval()
        torch.testing.assert_close(model(x, edge_index, batch), model(x, edge_index, batch))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inputs": "ones"}, "'constant'.*got 'ones'"),
        ({"inputs": 0}, "positive number of categories.*got 0"),
        ({"pooling": "max"}, "'sum', 'mean' or 'node', got 'max'"),
        ({"attention": "global"}, "'neighbours' or 'full', got 'global'"),
        ({"norm": "none"}, "'batch' or 'layer', got 'none'"),
        (
            {"hidden": 8, "heads": 2, "encoding": SpectralAttention()},
            "concatenates 8 channels",
        ),
        ({"layers": -1}, "layers must not be negative, got -1"),
        ({"out_channels": 0}, "out_channels=0"),
    ],
)
def test_model_refuses_settings_it_cannot_mean(settings, message):
    with pytest.raises(ValueError, match=message):
        GraphTransformer(**{"inputs": 3, "out_channels": 2, **settings})


def test_whole_floats_are_categories():
    model = GraphTransformer(2, 1, layers=0)
    edge, x = torch.tensor([[0], [1]]), torch.tensor([0, 1])
    assert torch.equal(model(x.float(), edge), model(x, edge))


def test_model_refuses_inputs_it_cannot_read():
    edge, x = torch.tensor([[0], [1]]), torch.tensor([0, 1])
    plain, encoded = GraphTransformer(2, 1, layers=0), GraphTransformer(2, 1, layers=0, encoding=LinearEncoder(4))
    with pytest.raises(ValueError, match=r"got \[0\] to \[2\]"):
        plain(x + torch.tensor([0, 1]), edge)
    with pytest.raises(ValueError, match=r"whole numbers, got 0.9 at \[1, 0\] of x; number the categories from 0"):
        plain(torch.tensor([0.0, 0.9]), edge)
    with pytest.raises(ValueError, match=r"whole numbers, got inf at \[0, 0\]"):
        plain(torch.tensor([torch.inf, torch.nan]), edge)
    with pytest.raises(ValueError, match=r"\[num_nodes, 1\], got \[2, 2\]"):
        plain(torch.zeros(2, 2), edge)
    with pytest.raises(ValueError, match="x may be left out only"):
        plain(None, edge, torch.zeros(2, dtype=torch.long))
    with pytest.raises(ValueError, match="x has 2 nodes but batch has 3"):
        plain(x, edge, torch.zeros(3, dtype=torch.long))
    full, pattern = GraphTransformer(2, 1, layers=0, attention="full"), plain.pattern(edge, torch.zeros(2).long())
    with pytest.raises(ValueError, match=r"heads=8 and full=False, but.*'full'"):
        full(x, edge, pattern=pattern)
    with pytest.raises(ValueError, match="built without an encoding"):
        plain(x, edge, encoding=torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"shape \[2, 4\], got None"):
        encoded(x, edge)
    with pytest.raises(ValueError, match=r"shape \[2, 4\], got shape \[2, 5\]"):
        encoded(x, edge, encoding=torch.zeros(2, 5))
    with pytest.raises(ValueError, match="give x or batch"):
        GraphTransformer("constant", 1, layers=0)(None, edge)
    with pytest.raises(ValueError, match=r"\[2, k, 2\].*got shape \[2, 5\]"):
        GraphTransformer(2, 1, layers=0, encoding=SpectralAttention())(x, edge, encoding=torch.zeros(2, 5))
    with pytest.raises(ValueError, match="needs the shortest-path distances"):
        GraphTransformer(2, 1, layers=0, attention="full", encoding=DegreeAndDistance())(x, edge)


def test_copies_of_an_encoding_add_weights_but_no_features():
    encoding, pattern = torch.randn(4, 3), AttentionPattern(torch.tensor([[0, 1], [1, 0]]), num_nodes=4, heads=2)
    wide, plain = LinearEncoder(3, 8, width=7), LinearEncoder(3, 8)
    with torch.no_grad():
        plain.linear.bias.copy_(wide.linear.bias)
        plain.linear.weight.copy_(torch.stack([wide.linear.weight[:, i::3].sum(1) for i in range(3)], 1))
    torch.testing.assert_close(wide(encoding, pattern), plain(encoding, pattern))
    with pytest.raises(ValueError, match="width must be at least the 3 columns of the encoding, got width=2"):
        LinearEncoder(3, 8, width=2)
