"""Order of graphs, losses, evaluation, time left."""

import math

import pytest
import torch

from gape.data import Task
from gape.experiments.graph_tasks.checkpoint import copy_weights
from gape.experiments.graph_tasks.data import FixedBatches, TrainingBatches, encoded_dataset
from gape.experiments.graph_tasks.network import build_network, class_weights, evaluate, loss
from gape.experiments.graph_tasks.settings import Settings, epochs_left, minutes_left, protocol_settings
from gape.experiments.graph_tasks.training import TrainingModule


@pytest.fixture(scope="module")
def csl():
    return encoded_dataset(protocol_settings("csl", "rw"))


def order(batches):
    return [tuple(batch.y.tolist()) for batch in batches]


def test_the_order_of_an_epoch_depends_on_seed_and_epoch_alone(csl):
    graphs = csl.dataset.splits[0].train
    one, again = TrainingBatches(csl, graphs, 20, seed=1), TrainingBatches(csl, graphs, 20, seed=1)
    one.epoch = 3
    list(one)
    again.epoch = 3
    assert order(one) == order(again)
    again.epoch = 4
    assert order(one) != order(again)
    assert order(one) != order(TrainingBatches(csl, graphs, 20, seed=2))
    assert sorted(sum(order(one), ())) == sorted(csl.dataset.batch(graphs).y.tolist())


def test_processes_share_each_batch_and_their_weights_make_up_for_unequal_shares(csl):
    graphs = csl.dataset.splits[0].train[:45]
    whole = TrainingBatches(csl, graphs, 15, seed=1)
    parts = []
    for rank in range(2):
        part = TrainingBatches(csl, graphs, 15, seed=1)
        part.rank, part.world = rank, 2
        parts.append(list(part))
    for batch, first, second in zip(whole, *parts, strict=True):
        assert sorted([*first.y.tolist(), *second.y.tolist()]) == sorted(batch.y.tolist())
        mean = (first.weight * first.y.double().mean() + second.weight * second.y.double().mean()) / 2
        assert mean == pytest.approx(batch.y.double().mean())


def test_evaluation_batches_are_kept_and_always_the_same(csl):
    batches = FixedBatches(csl, csl.dataset.splits[0].val, 8)
    first, second = list(batches), list(batches)
    assert [batch.num_graphs for batch in first] == [8, 8, 8, 6]
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_losses_against_the_definitions():
    torch.manual_seed(0)
    scores, targets = torch.randn(7, 3), torch.tensor([0, 0, 2, 0, 2, 0, 0])
    assert class_weights(targets, 3).tolist() == pytest.approx([2 / 7, 0, 5 / 7])
    log = scores.log_softmax(1)[range(7), targets]
    w = torch.where(targets == 0, 2 / 7, 5 / 7)
    node = Task("cluster", "node", "macro-recall", num_classes=3, node_categories=(7,))
    assert loss(node, scores, targets) == pytest.approx(float(-(w * log).sum() / w.sum()), rel=1e-6)
    graph = Task("cycles", "graph", "accuracy", num_classes=3)
    assert loss(graph, scores, targets) == pytest.approx(float(-log.mean()), rel=1e-6)


def test_evaluation_is_the_share_of_right_answers(csl):
    cell = protocol_settings("csl", "rw", overrides={"layers": "1"})
    torch.manual_seed(0)
    network = build_network(cell, csl)
    graphs = csl.dataset.splits[0].test
    found = evaluate(network, copy_weights(network), FixedBatches(csl, graphs, 7), csl.dataset.task)
    network.eval()
    whole = csl.dataset.batch(graphs)
    right = network(whole.x, whole.edge_index, whole.batch, whole.pe).argmax(1) == whole.y
    assert found["accuracy"] == pytest.approx(float(right.float().mean()), abs=1e-6)


def test_time_left_counts_the_halvings_that_are_due():
    cycles = Settings("cycles", "none")
    # 5e-4 → 9.8e-7 takes nine halvings of at least eleven epochs.
    assert epochs_left(cycles, {"epoch": 1, "lr": 5e-4}) == 99
    assert epochs_left(cycles, {"epoch": 990, "lr": 5e-4}) == 10
    assert minutes_left(cycles, 0, 1, {"epoch": 10, "lr": 5e-4, "minutes": 1.0}, None) == pytest.approx(9.9)
    assert minutes_left(cycles, 0, 1, {"epoch": 10, "lr": 5e-4, "minutes": 1.0}, 4.0) == pytest.approx(3.0)
    assert minutes_left(cycles, 3, 5, {"epoch": 10, "lr": 5e-4, "minutes": 1.0}, None) == pytest.approx(9.9 + 9.9)


def training(encoded, **overrides):
    cell = protocol_settings(encoded.dataset.task.name, "none", overrides={"layers": "1", "hidden": "16", **overrides})
    split = encoded.dataset.splits[0]
    batches = TrainingBatches(encoded, split.train, 20, seed=1), FixedBatches(encoded, split.val, 20)
    return TrainingModule(build_network(cell, encoded), cell, encoded.dataset.task, *batches)


@pytest.mark.filterwarnings("error")
def test_a_loss_that_is_not_a_number_is_not_left_out_of_the_mean(csl):
    module = training(csl)
    for metric in (module.train_loss, module.val_loss):
        metric.update(torch.tensor(2.0))
        assert float(metric.compute()) == 2.0
        metric.update(torch.tensor(float("nan")))
        assert math.isnan(float(metric.compute()))
