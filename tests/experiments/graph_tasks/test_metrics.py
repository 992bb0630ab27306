"""Metrics against their definitions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gape.data import Task
from gape.experiments.graph_tasks.network import metrics_for


def macro_recall(predicted: torch.Tensor, target: torch.Tensor, classes: int) -> float:
    recalls = [(predicted[target == c] == c).float().mean() for c in range(classes) if (target == c).any()]
    return float(torch.stack(recalls).mean())


@given(st.integers(0, 1000), st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_macro_recall_over_all_and_per_batch(seed: int, classes: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    # Every class in every batch, as in PATTERN and CLUSTER.
    batches = [torch.cat([torch.arange(classes), torch.randint(classes, (9,), generator=generator)]) for _ in range(3)]
    scores = [torch.randn(len(target), classes, generator=generator) for target in batches]
    metrics = metrics_for(Task("cluster", "node", "macro-recall", num_classes=classes))
    for score, target in zip(scores, batches, strict=True):
        metrics.update(score, target)
    result = metrics.compute()
    guesses = [score.argmax(1) for score in scores]
    whole = macro_recall(torch.cat(guesses), torch.cat(batches), classes)
    each = [macro_recall(guess, target, classes) for guess, target in zip(guesses, batches, strict=True)]
    assert float(result["macro_recall"]) == pytest.approx(whole, abs=1e-6)
    assert float(result["macro_recall_per_batch"]) == pytest.approx(sum(each) / 3, abs=1e-6)


def test_mae_over_all_and_per_batch() -> None:
    metrics = metrics_for(Task("zinc", "graph", "mae", num_classes=0))
    metrics.update(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0]))
    metrics.update(torch.tensor([5.0]), torch.tensor([0.0]))
    result = metrics.compute()
    assert float(result["mae"]) == pytest.approx(3.0)
    assert float(result["mae_per_batch"]) == pytest.approx(3.5)


def test_reset_forgets() -> None:
    metrics = metrics_for(Task("zinc", "graph", "mae", num_classes=0))
    metrics.update(torch.tensor([9.0]), torch.tensor([0.0]))
    metrics.reset()
    metrics.update(torch.tensor([1.0]), torch.tensor([0.0]))
    assert float(metrics.compute()["mae_per_batch"]) == 1.0


def test_accuracy_counts_graphs_not_classes() -> None:
    metrics = metrics_for(Task("cycles", "graph", "accuracy", num_classes=2))
    metrics.update(torch.tensor([[1.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))
    assert float(metrics.compute()["accuracy"]) == pytest.approx(0.75)
