"""Both kernels against a slow per-node attention, against each other, and against PyG's softmax."""

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import softmax

from gape.nn import AttentionPattern, MultiHeadAttention, attend
from gape.nn.attention import DENSE_FROM_DENSITY, fit_bias

HEADS, CHANNELS = 4, 3
WIDTH = HEADS * CHANNELS
SIZES = [1, 7, 3, 12, 1]
KERNELS = ["edge", "dense"]
CLAMPS = [5.0, 0.3, None]


def slow_attention(qkv: Tensor, pairs: Tensor, clamp: float | None, bias: Tensor | None = None) -> Tensor:
    """Node by node and head by head, straight from the definition."""
    query, key, value = qkv.view(len(qkv), 3, HEADS, CHANNELS).unbind(1)
    rows = []
    for v in range(len(qkv)):
        arriving = (pairs[1] == v).nonzero().flatten()
        for h in range(HEADS):
            if len(arriving) == 0:
                rows.append(torch.zeros(CHANNELS, dtype=qkv.dtype))
                continue
            scores = [query[v, h] @ key[pairs[0, e], h] / CHANNELS**0.5 for e in arriving]
            score = torch.stack(scores)
            if bias is not None:
                score = score + bias[arriving, h]
            if clamp is not None:
                score = score.clamp(-clamp, clamp)
            rows.append(score.softmax(0) @ value[pairs[0, arriving], h])
    return torch.stack(rows).view(len(qkv), WIDTH)


def make_qkv(num_nodes: int, scale: float = 1.0, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(num_nodes, 3 * WIDTH, generator=generator, dtype=dtype) * scale).requires_grad_()


def gradients(output: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(2)
    weights = torch.randn(output.shape, generator=generator, dtype=output.dtype)
    return torch.autograd.grad((output * weights).sum(), inputs)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clamp", CLAMPS)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("density", [0.0, 0.2, 0.9])
def test_kernel_is_attention_by_definition(random_batch, kernel, clamp, full, density):
    edge_index, batch = random_batch(SIZES, density)
    pattern = AttentionPattern(edge_index, batch, heads=HEADS, kernel=kernel, full=full)
    qkv = make_qkv(len(batch), scale=2.0)
    output, expected = attend(qkv, pattern, clamp=clamp), slow_attention(qkv, pattern.pairs, clamp)
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)
    if density or full:
        torch.testing.assert_close(*gradients(output, qkv), *gradients(expected, qkv), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clamp", CLAMPS)
@pytest.mark.parametrize("shape", ["pairs", "cells"])
def test_bias_in_either_shape_enters_before_the_clamp(random_batch, kernel, clamp, shape):
    edge_index, batch = random_batch(SIZES, 0.3)
    pattern = AttentionPattern(edge_index, batch, heads=HEADS, kernel=kernel)
    qkv = make_qkv(len(batch))
    generator = torch.Generator().manual_seed(3)
    given = [pattern.num_pairs, HEADS] if shape == "pairs" else [len(SIZES), HEADS, 14, 14]
    bias = torch.randn(given, generator=generator).requires_grad_()
    on_pairs = fit_bias(bias, AttentionPattern(edge_index, batch, heads=HEADS, kernel="edge"))
    output = attend(qkv, pattern, clamp=clamp, bias=bias)
    expected = slow_attention(qkv, edge_index, clamp, on_pairs)
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(gradients(output, qkv, bias), gradients(expected, qkv, bias), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("clamp", [5.0, None])
def test_kernels_agree_at_the_size_of_the_benchmark(random_batch, clamp):
    edge_index, batch = random_batch([90, 140, 41, 2, 119], 0.4)
    generator = torch.Generator().manual_seed(4)
    qkv = (torch.randn(len(batch), 240, generator=generator) * 1.5).requires_grad_()
    outputs = [
        attend(qkv, AttentionPattern(edge_index, batch, heads=8, kernel=kernel), clamp=clamp) for kernel in KERNELS
    ]
    torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(*(gradients(o, qkv)[0] for o in outputs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clamp", [0.5, None])
def test_written_out_gradient_is_the_numerical_one(random_batch, kernel, clamp):
    edge_index, batch = random_batch([1, 4, 3], 0.5)
    pattern = AttentionPattern(edge_index, batch, heads=2, kernel=kernel)
    generator = torch.Generator().manual_seed(5)
    qkv = torch.randn(8, 12, generator=generator, dtype=torch.float64).requires_grad_()
    bias = torch.randn(pattern.num_pairs, 2, generator=generator, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda q, b: attend(q, pattern, clamp=clamp, bias=b), (qkv, bias))


@pytest.mark.parametrize("kernel", KERNELS)
def test_second_derivatives_are_refused_rather_than_wrong(random_batch, kernel):
    edge_index, batch = random_batch([5], 0.5)
    qkv = make_qkv(5)
    output = attend(qkv, AttentionPattern(edge_index, batch, heads=HEADS, kernel=kernel))
    (gradient,) = torch.autograd.grad(output.square().sum(), qkv, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_edge_kernel_uses_the_softmax_of_pyg(random_batch):
    edge_index, batch = random_batch(SIZES, 0.3)
    qkv = make_qkv(len(batch), scale=3.0)
    query, key, value = qkv.view(-1, 3, HEADS, CHANNELS).unbind(1)
    scores = (query[edge_index[1]] * key[edge_index[0]]).sum(-1) / CHANNELS**0.5
    weights = softmax(scores, edge_index[1], num_nodes=len(batch))
    messages = (weights[:, :, None] * value[edge_index[0]]).flatten(1)
    expected = torch.zeros(len(batch), WIDTH).index_add(0, edge_index[1], messages)
    pattern = AttentionPattern(edge_index, batch, heads=HEADS, kernel="edge")
    torch.testing.assert_close(attend(qkv, pattern, clamp=None), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clamp", [5.0, 40.0, None])
def test_huge_scores_do_not_overflow(random_batch, kernel, clamp):
    edge_index, batch = random_batch([9, 5], 0.4)
    qkv = make_qkv(len(batch), scale=100.0)
    output = attend(qkv, AttentionPattern(edge_index, batch, heads=HEADS, kernel=kernel), clamp=clamp)
    assert output.isfinite().all()
    assert gradients(output, qkv)[0].isfinite().all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clamp", [5.0, None])
def test_nodes_without_in_neighbours_get_zero_and_give_no_gradient(kernel, clamp):
    edge_index = torch.tensor([[0, 1], [1, 0]])
    pattern = AttentionPattern(edge_index, num_nodes=4, heads=HEADS, kernel=kernel)
    qkv = make_qkv(4)
    output = attend(qkv, pattern, clamp=clamp)
    assert (output[2:] == 0).all()
    assert (output[:2] != 0).any()
    (gradient,) = gradients(output, qkv)
    assert gradient.isfinite().all()
    assert (gradient[2:] == 0).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clamp", [5.0, None])
def test_no_edges_and_no_nodes(kernel, clamp):
    for n in (3, 0):
        pattern = AttentionPattern(torch.empty(2, 0, dtype=torch.long), num_nodes=n, heads=HEADS, kernel=kernel)
        qkv = make_qkv(n)
        output = attend(qkv, pattern, clamp=clamp)
        assert output.shape == (n, WIDTH)
        assert (output == 0).all()
        output.sum().backward()
        assert qkv.grad is not None
        assert (qkv.grad == 0).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clamp", [5.0, None])
def test_parallel_edges_count_as_often_as_they_occur(kernel, clamp):
    edge_index = torch.tensor([[0, 0, 1], [2, 2, 2]])
    pattern = AttentionPattern(edge_index, num_nodes=3, heads=HEADS, kernel=kernel)
    qkv = make_qkv(3)
    expected = slow_attention(qkv, edge_index, clamp)
    torch.testing.assert_close(attend(qkv, pattern, clamp=clamp), expected, rtol=1e-5, atol=1e-5)


def test_self_loop_lets_a_node_attend_to_itself():
    pattern = AttentionPattern(torch.tensor([[0], [0]]), num_nodes=1, heads=HEADS)
    qkv = make_qkv(1)
    torch.testing.assert_close(attend(qkv, pattern), qkv[:, 2 * WIDTH :])


def test_edge_points_from_the_attended_to_the_attending():
    pattern = AttentionPattern(torch.tensor([[0], [1]]), num_nodes=2, heads=HEADS)
    qkv = make_qkv(2)
    output = attend(qkv, pattern)
    torch.testing.assert_close(output[1], qkv[0, 2 * WIDTH :])
    assert (output[0] == 0).all()


def test_dense_kernel_is_taken_from_its_documented_density_on(random_batch):
    for density in (0.05, 0.15, 0.25, 0.9):
        pattern = AttentionPattern(*random_batch([40, 40], density), heads=8)
        assert pattern.kernel == ("dense" if pattern.density >= DENSE_FROM_DENSITY else "edge")
    sparse = random_batch([40, 40], 0.05)
    assert AttentionPattern(*sparse, heads=8, full=True).kernel == "dense"
    assert AttentionPattern(*sparse, heads=8, full=True, kernel="edge").kernel == "edge"


def test_pairs_of_full_attention_are_all_pairs_within_graphs():
    pattern = AttentionPattern(torch.empty(2, 0, dtype=torch.long), torch.tensor([0, 0, 2]), heads=1, full=True)
    assert sorted(map(tuple, pattern.pairs.T.tolist())) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)]
    assert pattern.num_pairs == 5
    assert pattern.num_graphs == 3


def test_attention_layer_has_the_published_number_of_parameters():
    assert sum(p.numel() for p in MultiHeadAttention(80, 8).parameters()) == 3 * 80 * 80 + 80 * 80 + 80


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"edge_index": torch.zeros(3, 2, dtype=torch.long)}, r"shape \[2, num_edges\].*\[3, 2\]"),
        ({"edge_index": torch.zeros(2, 2)}, "integers.*float32"),
        ({"edge_index": torch.tensor([[0], [5]])}, "has nodes 0 to 5, but there are 2"),
        ({"batch": torch.tensor([1, 0])}, "ascending: node 1 belongs to graph 0, the node before it to graph 1"),
        ({"batch": torch.tensor([-1, 0])}, "graph numbers from 0, got -1"),
        ({"batch": torch.zeros(2)}, r"integer tensor .* graph number of every node, got torch.float32 of shape \[2\]"),
        ({"batch": [0, 0]}, "batch must be an integer tensor.* got list"),
        ({"num_graphs": 1, "batch": torch.tensor([0, 1])}, "num_graphs is 1 but batch has 2"),
        ({"num_nodes": 3}, "num_nodes is 3 but batch has 2"),
        ({"batch": None}, "num_nodes for a single graph"),
        ({"kernel": "fast"}, "'auto', 'edge' or 'dense', got 'fast'"),
    ],
)
def test_pattern_refuses_what_it_cannot_mean(settings, message):
    given = {"edge_index": torch.tensor([[0], [1]]), "batch": torch.tensor([0, 0]), "heads": 2, **settings}
    with pytest.raises(ValueError, match=message):
        AttentionPattern(**given)


@pytest.mark.parametrize("kernel", ["auto", "edge", "dense"])
def test_edges_between_graphs_are_refused(kernel):
    with pytest.raises(ValueError, match=r"edge 1, \[2, 1\], joins nodes of different graphs, \[1, 0\]"):
        AttentionPattern(torch.tensor([[0, 2], [1, 1]]), torch.tensor([0, 0, 1]), heads=HEADS, kernel=kernel)


def test_misshapen_biases_are_refused():
    pattern = AttentionPattern(torch.tensor([[0, 0], [1, 1]]), num_nodes=2, heads=HEADS, kernel="dense")
    with pytest.raises(ValueError, match=r"got \[3, 4\]"):
        attend(make_qkv(2), pattern, bias=torch.zeros(3, HEADS))
    with pytest.raises(ValueError, match="parallel"):
        attend(make_qkv(2), pattern, bias=torch.zeros(2, HEADS))
    with pytest.raises(ValueError, match=r"\[2, 3 · channels\].*got \[3, 36\]"):
        attend(make_qkv(3), pattern)
    with pytest.raises(ValueError, match="heads=3 and hidden=80"):
        MultiHeadAttention(80, 3)
    with pytest.raises(ValueError, match=r"clamp must be positive.*-1"):
        MultiHeadAttention(80, 8, clamp=-1)
    with pytest.raises(ValueError, match="at most 40, or None for no clamp; got 100"):
        attend(make_qkv(2), pattern, clamp=100)
