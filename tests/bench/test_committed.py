"""The results that are kept with the code are of the protocol as it is."""

from pathlib import Path

import pytest

from gape.bench.cell import Cell
from gape.bench.collect import read_results

RESULTS = read_results(Path(__file__).parents[2] / "results")


def test_there_are_results():
    assert RESULTS


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: f"{result['task']}-{result['encoding']}")
def test_a_kept_result_is_of_the_settings_of_its_cell(result):
    cell = Cell(result["task"], result["encoding"], result["seed"], result["overrides"])
    assert dict(cell.overrides) == result["overrides"]
    assert not cell.changed_since(result["settings"])
