"""Loading by name, and the cache of generated sets."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from gape.data import Cycles, FlatGraphs, check, load, names, options
from gape.data.cache import cached
from gape.data.parallel import map_pieces

SMALL: dict[str, dict[str, object]] = {
    "csl": {},
    "cycles": {"train": 4, "val": 2, "test": 2},
    "cycles-v": {"train": 4, "val": 2, "test": 2},
    "pattern": {"train": 1, "val": 1, "test": 1, "patterns": 2},
    "cluster": {"train": 2, "val": 1, "test": 1},
    "planar": {"train": 4, "val": 2, "test": 2, "smallest": 12, "largest": 12, "processes": 1, "show": False},
}


@pytest.mark.parametrize("name", SMALL)
def test_generated_sets_share_one_interface(name: str) -> None:
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
    with pytest.raises(ValueError, match="no data set 'zink'; there are zinc, csl, cycles"):
        load("zink")
    with pytest.raises(ValueError, match="'cycles' has no option 'sede'; it has variant, train, val, test, seed, ca"):
        load("cycles", sede=1)
    with pytest.raises(ValueError, match="'csl' has no option 'colour'; it has order, seed"):
        check("csl", colour="red")
    with pytest.raises(ValueError, match="no data set 'zink'"):
        check("zink", colour="red")
    assert all(isinstance(options(name), dict) for name in names())


def test_broken_cache_file_is_named(own_cache: Path) -> None:
    settings = Cycles(train=2, val=2, test=2)
    settings.build()
    (kept,) = (own_cache / "data").glob("cycles-*.npz")
    kept.write_bytes(b"half a file")
    with pytest.raises(ValueError, match="Delete the file to make it anew"):
        settings.build()


def test_different_settings_have_different_files(own_cache: Path) -> None:
    for seed in (0, 1):
        Cycles(train=2, val=2, test=2, seed=seed).build()
    assert len(list((own_cache / "data").glob("cycles-*.npz"))) == 2


@dataclass(frozen=True)
class Failing:
    number: int = 0


def test_failure_leaves_no_file(own_cache: Path) -> None:
    def fail() -> FlatGraphs:
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        cached(Failing(), fail)
    assert {path.suffix for path in own_cache.rglob("*") if path.is_file()} == {".lock"}


def test_after_a_failure_still_only_one_makes_the_graphs(own_cache: Path) -> None:
    failing, release, begun, twice = (threading.Event() for _ in range(4))

    def fail() -> FlatGraphs:
        failing.set()
        assert release.wait(20)
        raise RuntimeError("interrupted")

    def make() -> FlatGraphs:
        (twice if begun.is_set() else begun).set()
        assert not twice.wait(0.3)
        return FlatGraphs.from_edges([2], [[(0, 1)]], y=np.array([1]))

    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(cached, Failing(), fail)
        assert failing.wait(20)
        second = threads.submit(cached, Failing(), make)
        assert not begun.wait(0.2)  # it waits for the first one
        release.set()
        assert begun.wait(20)
        third = threads.submit(cached, Failing(), make)
    assert isinstance(first.exception(), RuntimeError)
    assert second.result().num_graphs == third.result().num_graphs == 1
    assert sorted(path.suffix for path in (own_cache / "data").iterdir()) == [".lock", ".npz"]


def test_pieces_come_back_in_order_from_two_processes(capfd: pytest.CaptureFixture[str]) -> None:
    assert map_pieces(abs, [-3, 1, -2], title="sizes", processes=2) == [3, 1, 2]
    assert "sizes" in capfd.readouterr().err


def test_interrupted_sampling_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    from gape.data import Planar
    from gape.data.planar import _sample

    settings = Planar(train=120, val=20, test=20, smallest=12, largest=12)
    calls: list[object] = []

    def two_pieces_only(piece: object) -> FlatGraphs:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(piece)
        return _sample(piece)  # type: ignore[arg-type]

    def counted(piece: object) -> FlatGraphs:
        calls.append(piece)
        return _sample(piece)  # type: ignore[arg-type]

    undisturbed = settings.build(cache=False, processes=1, show=False).batch()
    monkeypatch.setattr("gape.data.planar._sample", two_pieces_only)
    with pytest.raises(KeyboardInterrupt):
        settings.build(processes=1, show=False)
    monkeypatch.setattr("gape.data.planar._sample", counted)
    resumed = settings.build(processes=1, show=False).batch()
    assert len(calls) == 4  # 80 pairs in pieces of 20, none twice
    assert torch.equal(resumed.edge_index, undisturbed.edge_index)
    assert sorted(path.suffix for path in (own_cache / "data").iterdir()) == [".lock", ".npz"]


def test_a_script_that_processes_cannot_import_again_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from gape.data.parallel import map_pieces\n"
        "print(map_pieces(abs, [-1, 2], title='absolute', processes=2, show=False))\n"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 1
    assert "put the call under `if __name__ == '__main__':`, or pass processes=1" in ran.stderr
