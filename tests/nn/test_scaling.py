"""Scaling of features in batches: BatchNorm where features vary, and no noise where they do not."""

import pytest
import torch

from gape import as_graph
from gape.data import load
from gape.encodings import RandomWalk
from gape.nn import GAPE, FeatureScaling


def test_features_that_vary_are_batch_normalised():
    # momentum=None: a plain mean over all batches, as ours is over the first ten.
    ours, theirs = FeatureScaling(4, "batch").double(), torch.nn.BatchNorm1d(4, eps=1e-20, momentum=None).double()
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        rows = torch.randn(50, 4, generator=generator, dtype=torch.float64) * 10.0 ** torch.arange(-6, 2, 2)
        rows -= rows.mean(0)  # without a mean there is nothing for the deviation to be small against
        torch.testing.assert_close(ours(rows), theirs(rows), rtol=1e-6, atol=1e-9)
    # Up to BatchNorm's correction of the running variance by 50/49.
    torch.testing.assert_close(ours.eval()(rows), theirs.eval()(rows), rtol=2e-2, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_feature_the_same_everywhere_stays_small_while_it_is_learned(dtype):
    """All nodes of a regular graph: each step moves the feature a little, and the mean over past batches lags."""
    scaling = FeatureScaling(1, "batch").to(dtype)
    for step in range(200):
        rows = torch.full((30, 1), 1.0 + 1e-3 * step, dtype=dtype)
        assert scaling(rows).abs().max() < 1e-4
    assert scaling.eval()(rows).abs().max() < 0.2  # BatchNorm: about 100


def test_small_features_are_scaled_in_evaluation_from_the_first_batch_on():
    scaling, rows = FeatureScaling(1, "batch"), torch.tensor([[1e-3], [-1e-3]])
    torch.testing.assert_close(scaling(rows), torch.tensor([[1.0], [-1.0]]), rtol=1e-2, atol=0)
    torch.testing.assert_close(scaling.eval()(rows), torch.tensor([[1.0], [-1.0]]), rtol=1e-2, atol=0)
    for _ in range(100):
        scaling.train()(10 * rows)
    # The first batches are forgotten, as BatchNorm forgets them.
    torch.testing.assert_close(scaling.eval()(10 * rows), torch.tensor([[1.0], [-1.0]]), rtol=1e-2, atol=0)


@pytest.mark.parametrize("size", [1e-7, 1e-5, 1.0])
def test_features_of_any_size_come_to_the_same_scale(size):
    scaling = FeatureScaling(1, "batch")
    assert float(scaling(torch.tensor([[size], [-size]]))[0]) == pytest.approx(1.0, rel=1e-4)
    assert torch.equal(scaling(torch.zeros(5, 1)), torch.zeros(5, 1))


@pytest.mark.parametrize("kind", ["batch", "fixed", "whitened"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_statistics_keep_their_precision_when_a_module_is_cast(kind, dtype):
    rows = torch.rand(50, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = torch.cat([rows, rows + 1e-4 * rows.square()], 1)  # told apart in the fourth digit
    scaling = FeatureScaling(2, kind)
    if kind == "batch":
        scaling(rows)
    else:
        scaling.fit(rows)
    scaling.eval()
    exact = scaling(rows)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(scaling(rows), exact)
    torch.testing.assert_close(scaling.to(dtype)(rows), exact)


def test_one_row_is_scaled_as_in_evaluation():
    scaling = FeatureScaling(2, "batch")
    scaling(torch.randn(20, 2, generator=torch.Generator().manual_seed(1)))
    row = torch.tensor([[0.3, -0.2]])
    assert torch.equal(scaling(row), scaling.eval()(row))


@pytest.mark.parametrize("kind", ["batch", "fixed", "whitened"])
def test_whole_numbers_are_scaled_as_the_same_floats(kind):
    degrees = torch.tensor([[4, 1], [1, 1], [1, 3], [2, 2]])
    one, other = FeatureScaling(2, kind), FeatureScaling(2, kind)
    if one.from_training_set:
        one.fit(degrees)
        other.fit(degrees.float())
    torch.testing.assert_close(one(degrees), other(degrees.float()))


def test_small_and_constant_features_survive_half_precision():
    rows = torch.tensor([[1e-4, 0.0], [2e-4, 0.0]])
    found = FeatureScaling(2).half()(rows.half())
    assert found.dtype == torch.float16
    torch.testing.assert_close(found.float(), FeatureScaling(2)(rows.half().float()), rtol=1e-2, atol=1e-3)


def test_fit_refuses_another_width_and_what_is_not_finite():
    with pytest.raises(ValueError, match="fit takes 3 features per node, got 1"):
        FeatureScaling(3, "fixed").fit(torch.tensor([[1.0], [3.0]]))
    with pytest.raises(ValueError, match=r"the features of the training nodes must be finite, got nan at \[1, 0\]"):
        FeatureScaling(1, "fixed").fit(torch.tensor([[1.0], [torch.nan]]))


def test_a_module_made_on_the_meta_device_gets_room_elsewhere():
    with torch.device("meta"):
        scaling = FeatureScaling(3, "fixed")
    assert scaling.to_empty(device="cpu").mean.device.type == "cpu"


def test_whitened_closed_runs_by_length_are_whitened_random_walks_turned():
    """With one label, closed runs of t steps are return probabilities times a number per state: whitened, the same."""
    graph = as_graph(load("cycles", train=40, val=2, test=2).batch())
    layer = GAPE(4, readout="closed", length=20, matrix="random_walk", damping=1.0, scaling="none", learn=False, seed=1)
    white = []
    for features in (RandomWalk(20, dtype=torch.float64)(graph), layer.double().read(graph)):
        scaling = FeatureScaling(features.shape[1], "whitened")
        scaling.fit(features)
        rows = scaling(features).double()
        white.append(rows[:, rows.std(0) > 0.5])
    walks, closed = white
    assert walks.shape == closed.shape
    turn = torch.linalg.lstsq(walks, closed).solution
    torch.testing.assert_close(walks @ turn, closed, rtol=0, atol=1e-5)
    torch.testing.assert_close(turn.T @ turn, torch.eye(len(turn), dtype=turn.dtype), rtol=0, atol=1e-5)
