"""Cross-entropy in blocks is cross-entropy."""

import pytest
import torch
import torch.nn.functional as F

from gape.experiments.translation.transformer import BLOCK_ROWS, cross_entropy


@pytest.mark.parametrize("rows", [1, BLOCK_ROWS - 1, BLOCK_ROWS, 2 * BLOCK_ROWS + 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_and_gradients_are_those_of_pytorch(rows, smoothing):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 6, dtype=torch.float64, generator=generator, requires_grad=True)
    weight = torch.randn(9, 6, dtype=torch.float64, generator=generator, requires_grad=True)
    expected = torch.randint(9, (rows,), generator=generator)
    found = cross_entropy(x, weight, expected, smoothing)
    wanted = F.cross_entropy(x @ weight.T, expected, label_smoothing=smoothing)
    torch.testing.assert_close(found, wanted)
    for mine, theirs in zip(
        torch.autograd.grad(3 * found, (x, weight)), torch.autograd.grad(3 * wanted, (x, weight)), strict=True
    ):
        torch.testing.assert_close(mine, theirs)


def test_large_scores_stay_finite():
    x, weight = torch.tensor([[1e4, 0.0]], requires_grad=True), torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    loss = cross_entropy(x, weight, torch.tensor([1]))
    assert loss.item() == pytest.approx(2e4)
    loss.backward()
    assert x.grad.tolist() == [[2.0, 0.0]]


def test_without_gradients_there_is_still_a_loss():
    with torch.no_grad():
        loss = cross_entropy(torch.ones(2, 3), torch.ones(4, 3), torch.tensor([0, 1]))
    assert loss.item() == pytest.approx(torch.tensor(4.0).log().item())
