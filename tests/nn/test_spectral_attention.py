"""Spectral attention against PyTorch's own transformer layer."""

import pytest
import torch
from torch import nn

from gape.nn import AttentionPattern, SpectralAttention
from gape.nn.feed_forward import WideFeedForward

NO_EDGES = torch.empty(2, 0, dtype=torch.long)


def test_is_the_transformer_of_pytorch():
    ours = SpectralAttention(dropout=0.0)
    layer = nn.TransformerEncoderLayer(8, 4, 2048, dropout=0.0, batch_first=True)
    theirs = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    # Both list attention, feed-forward and norms; only the place of the norms differs.
    names = {"self_attn": ours.attention, "linear1": ours.feed_forward.widen, "linear2": ours.feed_forward.narrow}
    for name, module in {**names, "norm1": ours.attention_norm, "norm2": ours.feed_forward_norm}.items():
        theirs.layers[0].get_submodule(name).load_state_dict(module.state_dict())
    spectrum = torch.randn(300, 7, 2, generator=torch.Generator().manual_seed(0))
    spectrum[:150, 4:] = torch.nan
    missing = spectrum.isnan().any(-1)
    states = theirs(ours.linear(spectrum.nan_to_num()), src_key_padding_mask=missing)
    expected = states.masked_fill(missing[..., None], 0).sum(1)
    output = ours(spectrum, AttentionPattern(NO_EDGES, num_nodes=300, heads=8))
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)

    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1))
    (gradient,) = torch.autograd.grad((output * weights).sum(), ours.linear.weight, retain_graph=True)
    (reference,) = torch.autograd.grad((expected * weights).sum(), ours.linear.weight, retain_graph=True)
    torch.testing.assert_close(gradient, reference, rtol=1e-3, atol=1e-3)
    (output * weights).sum().backward()
    (expected * weights).sum().backward()
    for name, module in names.items():
        for ours_, theirs_ in zip(module.parameters(), theirs.layers[0].get_submodule(name).parameters(), strict=True):
            torch.testing.assert_close(ours_.grad, theirs_.grad, rtol=1e-3, atol=1e-3)


def test_feed_forward_gradient_is_the_numerical_one():
    network = WideFeedForward(3, 7, dropout=0.0).double()
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, *_: network(x), (x, *network.parameters()))


def test_gradient_belongs_to_the_mask_that_was_drawn():
    network = WideFeedForward(3, 50, dropout=0.5).double()
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()

    def same_mask_every_time(x, *_):
        with torch.random.fork_rng():
            torch.manual_seed(3)
            return network(x)

    assert torch.autograd.gradcheck(same_mask_every_time, (x, *network.parameters()))


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_dropout_drops_its_share_and_keeps_the_mean(dropout):
    torch.manual_seed(0)
    network = WideFeedForward(1, 2048, dropout=dropout)
    for p in network.parameters():
        nn.init.ones_(p)
    nn.init.zeros_(network.narrow.bias)
    x = torch.zeros(3000, 1)  # every value in the middle is 1, so the output counts what is kept
    output = network(x).detach()
    assert abs(output.mean().item() / 2048 - 1) < 1e-3
    kept = output * (1 - dropout) / 2048
    deviation = (dropout * (1 - dropout) / 2048) ** 0.5  # of a binomial share
    assert abs(kept.std().item() / deviation - 1) < 0.1
    torch.testing.assert_close(network.eval()(x), torch.full((3000, 1), 2048.0))
    with pytest.raises(ValueError, match="less than 1, got 1"):
        WideFeedForward(1, 4, dropout=1)


def test_dropout_of_nearly_everything_keeps_the_scale_finite():
    network = WideFeedForward(4, 8, dropout=0.999999)
    assert bool(torch.isfinite(network(torch.randn(50, 4))).all())


@pytest.mark.parametrize("backward_within", [True, False])
def test_spectral_attention_trains_under_autocast(backward_within):
    torch.manual_seed(0)
    encoder = SpectralAttention(dropout=0.0)
    spectrum, pattern = torch.randn(40, 6, 2), AttentionPattern(NO_EDGES, num_nodes=40, heads=8)
    weights = torch.randn(40, 8)
    (encoder(spectrum, pattern) * weights).sum().backward()
    exact = {name: parameter.grad.clone() for name, parameter in encoder.named_parameters()}
    encoder.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        total = (encoder(spectrum, pattern) * weights).sum()
        if backward_within:
            total.backward()
    if not backward_within:
        total.backward()
    for name, parameter in encoder.named_parameters():
        assert (parameter.grad - exact[name]).norm() <= 0.05 * exact[name].norm()


def test_feed_forward_is_the_same_under_autocast():
    torch.manual_seed(0)
    network = WideFeedForward(4, 64, dropout=0.5)
    x = torch.randn(30, 4, requires_grad=True)

    def trained():
        torch.manual_seed(1)
        output = network(x)
        return output, *torch.autograd.grad(output.square().sum(), (x, *network.parameters()))

    plain = trained()
    with torch.autocast("cpu", torch.bfloat16):
        within = trained()
    assert all(torch.equal(one, other) for one, other in zip(plain, within, strict=True))
