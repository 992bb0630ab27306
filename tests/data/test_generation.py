"""Generated graphs: cached by settings, made once, resumed after an interruption, in several processes."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from gape.data import Cycles, FlatGraphs, Planar
from gape.data.generation import cached, map_pieces
from gape.data.planar import _sample


def test_broken_cache_file_is_named(own_cache: Path) -> None:
    settings = Cycles(train=2, val=2, test=2)
    settings.build()
    (kept,) = (own_cache / "data").glob("cycles-*.npz")
    kept.write_bytes(b"half a file")
    with pytest.raises(ValueError, match="Delete the file; it is then generated again"):
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


def test_interrupted_sampling_resumes_from_finished_pieces(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
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
        "from gape.data.generation import map_pieces\n"
        "print(map_pieces(abs, [-1, 2], title='absolute', processes=2, show=False))\n"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 1
    assert "put the call under `if __name__ == '__main__':`, or pass processes=1" in ran.stderr
