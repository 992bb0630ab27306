"""Dropout: as many zeros as asked for, means stay, nothing but the seed decides."""

import math

import pytest
import torch

from gape.experiments.translation.model.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_entries_are_zeroed_with_their_probability_and_the_mean_stays(p):
    torch.manual_seed(0)
    count = 400_001  # not a multiple of the entries that share a number
    found = Dropout(p)(torch.ones(count))
    deviation = math.sqrt(p * (1 - p) / count)
    assert abs((found == 0).double().mean().item() - p) < 5 * deviation + 2**-16
    assert abs(found.double().mean().item() - 1) < 5 * deviation / (1 - p)
    assert len(found.unique()) == 2


def test_neighbours_are_dropped_independently():
    torch.manual_seed(0)
    dropped = (Dropout(0.5)(torch.ones(100_000, 4)) == 0).double()
    correlation = torch.corrcoef(torch.cat([dropped, dropped.roll(1, 0)], 1).T)
    assert (correlation - torch.eye(8)).abs().max() < 5 / math.sqrt(100_000)


def test_the_gradient_passes_where_the_entry_did():
    torch.manual_seed(0)
    x = torch.randn(7, 9, requires_grad=True)
    found = Dropout(0.4)(x)
    found.sum().backward()
    torch.testing.assert_close(x.grad * x, found)


def test_the_seed_decides_and_evaluation_changes_nothing():
    drop, x = Dropout(0.5), torch.randn(50)
    torch.manual_seed(1)
    once = drop(x)
    torch.manual_seed(1)
    assert torch.equal(once, drop(x))
    assert not torch.equal(once, drop(x))
    assert drop.eval()(x) is x
    assert Dropout(0.0)(x) is x
    with pytest.raises(ValueError, match=r"p must be at least 0 and less than 1, got 1.0"):
        Dropout(1.0)
