"""Files of results that several processes add to lose nothing."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from gape._internal import files as atomic
from gape.experiments.graph_tasks.cell import collect
from gape.experiments.runs.folder import read_lines
from gape.experiments.runtime.measurement import FILE, store_line
from gape.experiments.translation.results import collect as collect_translations

COMMITTED = Path(__file__).parents[3] / "results"


def lines_of(name):
    """What we have committed ourselves."""
    return [record for _, record in read_lines(COMMITTED / name)]


def with_run(folder, record):
    """A folder of runs with one of this result."""
    path = folder / record["encoding"] / "one" / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record))
    return path.parents[1]


def graph_results(folder):
    runs = [with_run(folder, record) for record in lines_of("zinc.jsonl")[:2]]
    return [lambda run=run: collect(run, folder / "results") for run in runs], "zinc.jsonl"


def translations(folder):
    gape = next(record for record in lines_of("translation.jsonl") if record["encoding"] == "gape")
    runs = [with_run(folder, record) for record in (gape, {**gape, "encoding": "rw"})]
    file = folder / "results" / "translation.jsonl"
    return [lambda run=run: collect_translations(run, file) for run in runs], file.name


def runtimes(folder):
    return [lambda line=line: store_line(folder / "results", line) for line in lines_of(FILE)[:2]], FILE


@pytest.mark.parametrize("make", [graph_results, runtimes, translations])
def test_two_that_add_results_at_once_lose_none(tmp_path, monkeypatch, make):
    (first, second), file = make(tmp_path)
    about_to_write, through = Event(), Event()

    def replacing(path):
        if not about_to_write.is_set():
            about_to_write.set()
            through.wait(0.3)  # what nothing holds back is done by then
        return atomic.replacing(path)

    monkeypatch.setattr("gape.experiments.runs.folder.replacing", replacing)
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(first)
        assert about_to_write.wait(20)
        two = threads.submit(second)
        two.add_done_callback(lambda _: through.set())
    one.result()
    two.result()
    assert len(read_lines(tmp_path / "results" / file)) == 2
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [".lock", file]
