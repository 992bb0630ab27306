"""Progress bars show title, amount and note on a terminal, and nothing elsewhere."""

import io

import pytest
from rich.console import Console

from gape._internal.progress import progress_bars
from gape.experiments.runs.progress import counting_bar


def shown(terminal: bool, show: bool = True, percent: bool = False) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100, color_system=None)
    with progress_bars(percent=percent, show=show, console=console) as bars:
        task = bars.add_task("drawing graphs", total=8, note="3 per second")
        bars.advance(task, 2)
        bars.refresh()
    return console.file.getvalue()


def test_a_terminal_gets_a_count_or_a_share_with_a_note():
    assert "drawing graphs" in shown(True)
    assert "2/8" in shown(True)
    assert " 25 %" in shown(True, percent=True)
    assert "3 per second" in shown(True, percent=True)


@pytest.mark.parametrize(("terminal", "show"), [(False, True), (True, False)])
def test_files_and_quiet_commands_get_nothing(terminal, show):
    assert shown(terminal, show) == ""


def test_counts_of_named_things_have_a_bar_each():
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    with counting_bar(console, "translating") as show:
        show("tst2013", 4, 10)
        show("heldout", 1, 3)
    text = console.file.getvalue()
    assert "translating tst2013" in text
    assert "translating heldout" in text
