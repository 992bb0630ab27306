"""The results that are kept with the code are of the protocol as it is."""

from pathlib import Path

import pytest

from gape.experiments.graph_tasks.cell import REQUIRED_KEYS, Cell, read_results
from gape.experiments.graph_tasks.settings import current_names
from gape.experiments.runs.folder import read_lines

RESULTS = Path(__file__).parents[3] / "results"


def test_there_are_results():
    assert read_results(RESULTS)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_kept_results_are_of_the_settings_of_their_cells(path):
    for where, result in read_lines(path):
        if "task" not in result:  # a runtime or a translation
            continue
        assert set(REQUIRED_KEYS) <= set(result), where
        cell = Cell(result["task"], result["encoding"], result["seed"], result["overrides"])
        assert dict(cell.overrides) == current_names(result["overrides"]), where
        assert not cell.changes_since(result["settings"]), where
