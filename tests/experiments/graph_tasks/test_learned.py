"""Automata that are learned in the comparison: as rows, with settings of their own, resumed to the same numbers."""

import json

import pytest
import torch

from gape.data import task_of
from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.data import encoded_dataset, mix_seeds
from gape.experiments.graph_tasks.network import build_network
from gape.experiments.graph_tasks.registry import LEARNED, find_row, learned, row_names
from gape.experiments.graph_tasks.run import RunOptions, run_cell
from gape.experiments.graph_tasks.settings import protocol_settings, settings_record
from gape.experiments.graph_tasks.training import train_fold
from gape.experiments.report.layouts import layout, table_names
from gape.graph.convert import as_graph


@pytest.mark.parametrize("name", LEARNED)
def test_every_learnable_encoding_is_a_row(name):
    assert name in row_names()
    assert find_row(name).encoder == "learned"


@pytest.mark.parametrize("name", LEARNED)
def test_its_automaton_gets_gradients_from_the_loss(name, tiny):
    chosen = protocol_settings("typed-walks" if "edge" in name else "cycles", name, overrides={**tiny, "hidden": "32"})
    encoded = encoded_dataset(chosen)
    torch.manual_seed(0)
    network = build_network(chosen, encoded)
    batch = encoded.batch(torch.arange(4))
    pattern = network.pattern(batch.edge_index, batch.batch, batch.num_graphs)
    network.encoding.fit_scaling([(batch.encoding, pattern)])
    network(batch.x, batch.edge_index, batch.batch, batch.encoding).square().sum().backward()
    weights = dict(network.encoding.layers[0].machine.named_parameters())
    assert set(weights) in ({"transition.weight", "initial"}, {"weight"})
    for weight in weights.values():
        assert weight.grad.abs().max() > 0


def test_random_walks_beside_learned_automata_are_whitened(tiny):
    chosen = protocol_settings("cycles", "gape-learned-typed", overrides={**tiny, "scaling": "whitened"})
    network = build_network(chosen, encoded_dataset(chosen))
    assert network.encoding.extra_encoder.scaling.kind == "whitened"
    assert network.encoding.layers[0].scaling.kind == "batch"


def test_pairs_are_a_bias_of_the_models_heads(tiny):
    chosen = protocol_settings("cycles", "gape-learned-node", overrides={**tiny, "encoding.readout": "pair"})
    encoded = encoded_dataset(chosen)
    network, batch = build_network(chosen, encoded), encoded.batch(torch.arange(4))
    network(batch.x, batch.edge_index, batch.batch, batch.encoding).sum().backward()
    assert network.encoding.layers[0].out_channels == chosen.heads
    assert network.encoding.layers[0].machine.initial.grad.any()


def test_a_pair_bias_between_neighbours_depends_on_the_pair(tiny):
    chosen = protocol_settings("cycles", "gape-learned-pair-rw", overrides=tiny)
    encoded = encoded_dataset(chosen)
    network, batch = build_network(chosen, encoded), encoded.batch(torch.arange(4))
    pattern = network.pattern(batch.edge_index, batch.batch, batch.num_graphs)
    bias = network.encoding.bias(batch.encoding, pattern)
    assert bias.shape == (batch.edge_index.shape[1], chosen.heads)  # neighbours only
    # Against powers of the walk matrix, computed here.
    degree = torch.bincount(batch.edge_index[0], minlength=len(batch.x))
    walk = torch.zeros(len(degree), len(degree)).index_put(tuple(batch.edge_index), 1 / degree[batch.edge_index[0]])
    layer = network.encoding.layers[0]
    automaton, weight = layer.machine.automaton, layer.linear.weight.double().reshape(chosen.heads, layer.length, -1)
    run, power, expected = automaton.initial.T, torch.eye(len(walk)), torch.zeros(len(walk), len(walk), chosen.heads)
    for t in range(layer.length):
        run, power = run @ automaton.transition, power @ walk
        expected = expected + power[..., None] * (run @ weight[:, t].T)
    source, target = pattern.pairs
    torch.testing.assert_close(bias, expected[source, target].to(bias.dtype), rtol=1e-3, atol=1e-5)


def test_transitions_by_edge_type_need_edge_types():
    with pytest.raises(ValueError, match="need a task whose edges have types, such as typed-walks"):
        Cell("cycles", "gape-learned-edge-typed")


def test_a_fixed_automaton_is_the_ablation_of_learning(tiny):
    cell = protocol_settings("cycles", "gape-learned-closed", overrides={**tiny, "encoding.learn": "false"})
    network = build_network(cell, encoded_dataset(cell))
    assert not any(weight.requires_grad for weight in network.encoding.layers[0].machine.parameters())


@pytest.mark.parametrize(
    ("key", "text", "value"), [("states", "8", 8), ("length", "none", None), ("length", "12", 12), ("walks", "20", 20)]
)
def test_settings_are_typed(key, text, value):
    options = protocol_settings("zinc", "gape-learned-closed", overrides={f"encoding.{key}": text}).encoding_options
    assert options[key] == value
    assert type(options[key]) is type(value)


def test_settings_that_do_not_go_together_are_refused_before_training():
    with pytest.raises(ValueError, match="damping must be above 0"):
        Cell("cycles", "gape-learned-closed", overrides={"encoding.length": "none"})


def test_a_cell_says_what_the_name_of_a_learned_row_stands_for():
    plain = Cell("cycles", "gape-learned-closed")
    assert Cell("cycles", "gape-learned-closed", overrides={"encoding.scaling": "fixed"}) == plain
    (layer,) = settings_record(plain.settings)["encoding_options"]["layers"]
    assert (layer["states"], layer["length"], layer["scaling"], layer["transition"]) == (4, 20, "fixed", "dense")


def test_an_unknown_setting_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="gape-learned-node has no setting 'sates'; it has states, readout"):
        protocol_settings("zinc", "gape-learned-node", overrides={"encoding.sates": "8"})


def test_a_run_stopped_by_time_goes_on_to_the_same_numbers(tmp_path, tiny):
    whole = run_cell(Cell("cycles", "gape-learned-closed", overrides=tiny), RunOptions(runs=tmp_path / "whole"))
    short = Cell("cycles", "gape-learned-closed", overrides=tiny, max_minutes=1e-6)
    assert run_cell(short, RunOptions(runs=tmp_path / "parts"))["stopped"] == "time"
    resumed = run_cell(Cell("cycles", "gape-learned-closed", overrides=tiny), RunOptions(runs=tmp_path / "parts"))
    assert resumed["epochs"] == whole["epochs"]
    assert json.dumps(resumed["folds"]) == json.dumps(whole["folds"])


def test_fixed_scales_are_those_of_the_training_graphs(tmp_path, tiny):
    cell = Cell("cycles", "gape-learned-closed", overrides={**tiny, "encoding.scaling": "fixed", "max_epochs": "1"})
    encoded = encoded_dataset(cell.settings)
    weights = train_fold(cell.settings, encoded, 0, tmp_path).weights
    torch.manual_seed(mix_seeds(cell.settings.seed, 0))
    layer = build_network(cell.settings, encoded).encoding.layers[0]  # as it was before training
    features = layer.read(as_graph(encoded.dataset.batch(encoded.dataset.splits[0].train)))
    name = "encoding.automata.0.scaling."
    assert weights[name + "fitted"]
    torch.testing.assert_close(weights[name + "mean"].float(), features.mean(0), rtol=1e-4, atol=1e-5)
    deviation = features.std(0, correction=0)
    deviation[deviation == 0] = 1.0  # there are no closed runs of odd length: only shifted
    torch.testing.assert_close(weights[name + "factor"].float(), 1 / deviation, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("encoding", "dtype"), [("rw", "float32"), ("gape", "float64")])
def test_fixed_encodings_are_whitened_by_the_training_graphs(encoding, dtype, tmp_path, tiny):
    changes = {**tiny, "encoding.dtype": dtype, "scaling": "whitened", "max_epochs": "1"}
    cell = Cell("cycles", encoding, overrides=changes)
    encoded = encoded_dataset(cell.settings)
    network = build_network(cell.settings, encoded)
    network.load_state_dict(train_fold(cell.settings, encoded, 0, tmp_path).weights)
    train = encoded.batch(torch.as_tensor(encoded.dataset.splits[0].train)).encoding
    assert train.dtype == getattr(torch, dtype)
    white = network.encoding.scaling(train).double()
    gram = white.T @ white / len(white)
    kept = int(gram.diagonal().round().sum())
    assert 2 < kept <= train.shape[1]
    expected = torch.diag((torch.arange(train.shape[1]) < kept).double())
    torch.testing.assert_close(gram, expected, atol=1e-2, rtol=0)


def test_scaling_is_for_encodings_that_enter_by_a_linear_layer(tiny):
    for encoding, more in (("lape", ""), ("none", ""), ("gape-learned-node", "set encoding.scaling")):
        with pytest.raises(ValueError, match=f"scaling=whitened is for fixed encodings.* got {encoding}.*{more}"):
            Cell("cycles", encoding, overrides={**tiny, "scaling": "whitened"})


def test_copies_are_for_encodings_that_enter_by_a_linear_layer(tiny):
    chosen = protocol_settings("cycles", "rw", overrides={**tiny, "width": "68"})
    assert build_network(chosen, encoded_dataset(chosen)).encoding.linear.in_features == 68
    with pytest.raises(ValueError, match="width=68 is for fixed encodings that enter by a linear layer, got lape"):
        Cell("cycles", "lape", overrides={**tiny, "width": "68"})


@pytest.mark.parametrize("name", table_names())
def test_every_learned_row_of_a_table_is_a_model_that_can_be_built(name):
    whole = layout(name)
    for row in whole.rows:
        for column in whole.columns:
            cell = Cell(column.task, row.encoding, overrides={**column.overrides, **row.overrides})
            if find_row(row.encoding).encoder == "learned":
                categories = (28,) if column.task == "zinc" else ()
                automata = learned(row.encoding, **cell.settings.encoding_options)
                assert automata.encoder(80, categories, edge_categories=task_of(column.task).edge_categories).layers
