"""Datasets by name: one interface, cached results, errors that list the names and options."""

from pathlib import Path

import numpy as np
import pytest
import torch

from gape.data import check, load, names, options

SMALL: dict[str, dict[str, object]] = {
    "csl": {},
    "cycles": {"train": 4, "val": 2, "test": 2},
    "cycles-v": {"train": 4, "val": 2, "test": 2},
    "pattern": {"train": 1, "val": 1, "test": 1, "patterns": 2},
    "cluster": {"train": 2, "val": 1, "test": 1},
    "planar": {"train": 4, "val": 2, "test": 2, "smallest": 12, "largest": 12, "processes": 1, "show": False},
}


@pytest.mark.parametrize("name", SMALL)
def test_generated_datasets_share_one_interface(name: str) -> None:
    dataset = load(name, **SMALL[name])
    assert dataset.name == name
    assert dataset.provenance.startswith("generated")
    everything = dataset.batch()
    assert int(everything.y.max()) < dataset.num_classes == dataset.num_outputs
    assert len(everything.y) == (everything.num_nodes if dataset.level == "node" else len(dataset))
    if dataset.node_categories:
        assert (everything.x.max(dim=0).values < torch.tensor(dataset.node_categories)).all()
    else:
        assert torch.equal(everything.x, torch.ones(everything.num_nodes, 1))
    for split in dataset.splits:
        assert sum(len(part) for part in split.parts) == len(dataset)


@pytest.mark.parametrize("name", [name for name in SMALL if name != "csl"])
def test_second_load_comes_from_the_cache_and_is_equal(name: str, own_cache: Path) -> None:
    first = load(name, **SMALL[name]).batch()
    (kept,) = (own_cache / "data").glob("*.npz")
    written = kept.stat().st_mtime_ns
    second = load(name, **SMALL[name]).batch()
    assert kept.stat().st_mtime_ns == written
    for key in ("x", "edge_index", "y"):
        assert torch.equal(first[key], second[key])
        assert first[key].dtype == second[key].dtype
    assert not list((own_cache / "data").glob("*.part"))


@pytest.mark.parametrize("name", SMALL)
def test_generators_leave_global_randomness_alone(name: str) -> None:
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # type: ignore[index, union-attr] # noqa: NPY002
    load(name, **SMALL[name])
    assert np.array_equal(before[0], np.random.get_state()[1])  # type: ignore[index, arg-type] # noqa: NPY002
    assert torch.equal(before[1], torch.get_rng_state())


def test_unknown_names_and_options_list_what_there_is() -> None:
    with pytest.raises(
        ValueError, match=r"there is no dataset 'zink'; there are zinc, csl, cycles.* brec; did you mean 'zinc'\?"
    ):
        load("zink")
    with pytest.raises(
        ValueError,
        match=r"'cycles' has no option 'sede'; it has variant, train, val, test, seed, ca.*; did you mean 'seed'\?",
    ):
        load("cycles", sede=1)
    with pytest.raises(ValueError, match="'csl' has no option 'colour'; it has order, seed"):
        check("csl", colour="red")
    with pytest.raises(ValueError, match="no dataset 'zink'"):
        check("zink", colour="red")
    assert all(isinstance(options(name), dict) for name in names())
