"""The paper's settings are the paper's settings, and changing them is typed."""

from pathlib import Path

import pytest

from gape.experiments.graph_tasks.cell import Cell, parse_cells, read_cells
from gape.experiments.graph_tasks.data import encoded_dataset
from gape.experiments.graph_tasks.network import build_network
from gape.experiments.graph_tasks.protocol import SEEDS, TASKS
from gape.experiments.graph_tasks.registry import ROWS, find_row
from gape.experiments.graph_tasks.settings import Settings, override, protocol_settings

# task: layers, batch size, learning rate, patience, pooling; from the configuration files of the authors' runs.
PUBLISHED = {
    "zinc": (10, 128, 7e-4, 15, "mean"),
    "csl": (6, 5, 5e-4, 10, "sum"),
    "cycles": (10, 25, 5e-4, 10, "sum"),
    "cycles-v": (10, 25, 5e-4, 10, "sum"),
    "planar": (10, 32, 5e-4, 10, "mean"),
    "pattern": (10, 26, 5e-4, 10, "node"),
    "cluster": (10, 32, 5e-4, 10, "node"),
    "pcqm4mv2": (10, 1024, 7e-4, 15, "mean"),
}
# Number of features as used: LAPE, SA, RW.
FEATURES = {
    "zinc": (8, 10, 20),
    "csl": (20, 20, 20),
    "cycles": (20, 20, 20),
    "cycles-v": (20, 20, 9),
    "planar": (20, 10, 20),
    "pattern": (2, 10, 20),
    "cluster": (10, 10, 20),
    "pcqm4mv2": (20, 10, 20),
}


@pytest.mark.parametrize("task", PUBLISHED)
def test_settings_are_those_of_the_authors_runs_for_all_encodings(task):
    for row in ROWS:
        s = protocol_settings(task, row.name)
        assert (s.layers, s.batch_size, s.lr, s.patience, s.pooling) == PUBLISHED[task]
        assert (s.hidden, s.heads, s.factor, s.min_lr, s.max_epochs) == (80, 8, 0.5, 1e-6, 1000)
        assert (s.dropout, s.norm, s.attention, s.train_fraction) == (0.0, "batch", "neighbours", 1.0)


@pytest.mark.parametrize("task", PUBLISHED)
def test_numbers_of_features_are_those_used_not_those_stated(task):
    lape, sa, rw = FEATURES[task]
    assert protocol_settings(task, "lape").encoding_options == {"vectors": lape}
    assert protocol_settings(task, "sa").encoding_options == {"pairs": sa}
    assert protocol_settings(task, "rw").encoding_options == {"length": rw}
    assert protocol_settings(task, "pprp").encoding_options == {"powers": 20}
    for row in ROWS:
        if row.name.startswith("gape"):
            assert protocol_settings(task, row.name).encoding_options["states"] == 32


def test_seeds_and_the_encodings_take_them():
    assert SEEDS == (41, 95, 22, 35)
    for seed in SEEDS:
        assert protocol_settings("cycles", "gape-star-20", seed).encoding_options["seed"] == seed
        assert protocol_settings("cycles", "gape", seed, {"encoding.seed": "7"}).encoding_options["seed"] == 7


@pytest.mark.parametrize(
    ("task", "encoding", "parameters"),
    [("cycles", "none", 522_662), ("cycles", "rw", 524_342), ("cycles", "gape", 525_302), ("csl", "none", 315_390)],
)
def test_networks_have_the_published_numbers_of_parameters(task, encoding, parameters):
    small = {} if task == "csl" else {"data.train": "2", "data.val": "2", "data.test": "2"}
    cell = protocol_settings(task, encoding, overrides=small)
    network = build_network(cell, encoded_dataset(cell))
    assert sum(p.numel() for p in network.parameters()) == parameters


@pytest.mark.parametrize("encoding", [row.name for row in ROWS])
def test_every_row_encodes_and_computes(encoding):
    import torch

    cell = protocol_settings("cycles", encoding, overrides={"data.train": "2", "data.val": "2", "data.test": "2"})
    encoded = encoded_dataset(cell)
    batch = encoded.batch(torch.arange(4))
    network = build_network(cell, encoded)
    out = network(batch.x, batch.edge_index, batch.batch, batch.encoding, num_graphs=4)
    assert out.shape == (4, 2)
    assert bool(out.isfinite().all())
    if encoding.startswith("gape"):
        assert sum(encoded.certificates.values()) == 6
    else:
        assert encoded.certificates is None


def test_distances_reach_full_attention():
    import torch

    small = {"data.train": "2", "data.val": "2", "data.test": "2", "attention": "full"}
    cell = protocol_settings("cycles", "spd", overrides=small)
    encoded = encoded_dataset(cell)
    few, graphs = encoded.batch(torch.tensor([3, 0])), encoded.dataset
    distances = few.encoding[1][: graphs[0].num_nodes, : graphs[0].num_nodes]
    near = torch.zeros_like(distances, dtype=torch.bool)
    near[tuple(graphs[0].edge_index)] = True
    assert torch.equal(distances == 1, near)
    network = build_network(cell, encoded)
    assert network(few.x, few.edge_index, few.batch, few.encoding, num_graphs=2).shape == (2, 2)


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("layers", "2.5", "layers must be a whole number, got '2.5'"),
        ("lr", "fast", "lr must be a number, got 'fast'"),
        ("lr", "3", "lr must lie between 0 and 1, got 3"),
        ("norm", "group", "norm must be one of batch, layer, got 'group'"),
        ("seed", "3", "there is no setting 'seed'; there are layers"),
        ("data.tset", "3", "no option 'tset'; it has variant, train, val, test"),
        ("data.test", "3.5", "data.test must be a whole number"),
        ("data.cache", "false", "no option 'cache'; it has variant, train, val, test, seed"),
        ("encoding.length", "3", "gape has no setting 'length'; it has"),
        ("encoding.states", "x", "states must be a whole number, got 'x'"),
        ("model.layers", "3", "there is no setting 'model.layers'"),
    ],
)
def test_wrong_overrides_are_refused_with_what_was_given(key, text, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        override(protocol_settings("cycles", "gape"), {key: text})


def test_overrides_have_the_types_of_what_they_replace():
    changed = override(
        protocol_settings("csl", "gape"), {"data.order": "published", "encoding.relative": "true", "lr": "1e-2"}
    )
    assert changed.data == {"order": "published"}
    assert changed.encoding_options["relative"] is True
    assert changed.lr == 0.01


def test_an_override_to_what_the_protocol_says_is_the_same_cell():
    assert Cell("cycles", "gape", overrides={"encoding.states": "32", "lr": "5e-4"}) == Cell("cycles", "gape")
    assert Cell("cycles", "rw", overrides={"lr": "1e-3", "layers": "2"}).variant == "layers=2,lr=0.001"


def test_two_spellings_of_a_value_are_one_cell():
    changed = {"lr": "2e-5", "encoding.damping": "0.5", "encoding.length": "none", "encoding.learn": "false"}
    spelled = {"lr": "0.00002", "encoding.damping": ".50", "encoding.length": "None", "encoding.learn": "False"}
    cells = [Cell("cycles", "gape-learned-node", overrides=pairs) for pairs in (changed, spelled)]
    assert cells[0] == cells[1]
    assert cells[0].folder(Path("runs")) == cells[1].folder(Path("runs"))
    assert cells[0].settings == cells[1].settings
    assert Cell("cycles", "none", overrides={"data.test": "50"}) == Cell(
        "cycles", "none", overrides={"data.test": "050"}
    )


def test_settings_that_belong_together_are_set_together():
    cell = Cell("cycles", "gape", overrides={"encoding.labels": "20", "encoding.labelling": "random"})
    assert cell.variant == "encoding.labelling=random,encoding.labels=20"
    assert Cell("cycles", "none", overrides={"hidden": "60", "heads": "6"}).settings.heads == 6


@pytest.mark.parametrize(
    ("task", "encoding", "overrides", "message"),
    [
        ("csl", "none", {"data.order": "bogus"}, "data.order must be one of random, near-canonical, published"),
        ("cycles", "none", {"data.train": "3"}, "train must be an even number of graphs .* got 3"),
        ("pcqm4mv2", "none", {"data.val_fraction": "0.9"}, "val_fraction must lie between 0 and 0.5, got 0.9"),
        ("cycles", "none", {"heads": "7"}, "heads must divide hidden, got heads=7 and hidden=80"),
        ("cycles", "lape", {"scaling": "whitened"}, "scaling=whitened is for .* linear layer, got lape"),
        ("cycles", "gape-learned-node", {"scaling": "fixed"}, "got gape-learned-node; set encoding.scaling"),
        (
            "cycles",
            "none",
            {"pooling": "node"},
            "pooling=node is for targets of nodes, .* use pooling=sum or mean",
        ),
        ("pattern", "none", {"pooling": "sum"}, "pooling=sum is for targets of graphs, .* use pooling=node"),
        ("cycles", "gape", {"encoding.labels": "20"}, "labels=20"),
        ("cycles", "ppr", {}, "'ppr' encodes pairs of nodes"),
    ],
)
def test_what_no_run_can_have_is_refused_before_anything_runs(task, encoding, overrides, message):
    with pytest.raises(ValueError, match=message):
        Cell(task, encoding, overrides=overrides)


@pytest.mark.parametrize("row", [row.name for row in ROWS if row.name.startswith("gape-2star")])
def test_the_softmax_of_two_stars_is_that_of_the_authors_runs(row):
    assert protocol_settings("cycles", row).encoding_options["initial"] == "softmax_nodes"


def test_unknown_names_are_refused_with_what_exists():
    with pytest.raises(ValueError, match="there is no task 'cycle'; there are zinc, csl, cycles"):
        Cell("cycle", "none")
    with pytest.raises(ValueError, match=r"there is no encoding 'lap'; there are none, lape"):
        find_row("lap")
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        Settings("cycles", "none", batch_size=0)
    assert set(PUBLISHED) <= set(TASKS)


def test_a_default_that_is_spelled_out_makes_no_other_cell():
    spelled = {"data.order": "random", "encoding.damping": "0.02", "lr": "5e-4"}
    assert Cell("csl", "gape", overrides=spelled) == Cell("csl", "gape")
    assert dict(Cell("csl", "gape", overrides={**spelled, "data.seed": "1"}).overrides) == {"data.seed": "1"}


def test_a_queue_is_read_line_by_line(tmp_path):
    path = tmp_path / "queue"
    path.write_text("# first\n\ncycles none,rw seed=41,95 # two by two\ncsl gape minutes=3 data.order=published\n")
    cells = read_cells(path, max_minutes=40)
    assert [(c.task, c.encoding, c.seed, c.max_minutes) for c in cells] == [
        ("cycles", "none", 41, 40),
        ("cycles", "rw", 41, 40),
        ("cycles", "none", 95, 40),
        ("cycles", "rw", 95, 40),
        ("csl", "gape", 41, 3.0),
    ]
    assert read_cells(path, max_minutes=2)[-1].max_minutes == 2
    path.write_text("csl none\ncsl nonesuch\n")
    with pytest.raises(ValueError, match="line 2: there is no encoding 'nonesuch'"):
        read_cells(path)
    with pytest.raises(ValueError, match="seed must be a whole number, got 'all'"):
        parse_cells("csl none seed=all")
