"""Progress bars show title, amount and note on a terminal, and nothing elsewhere."""

import io

import pytest
from rich.console import Console

from gape._internal.progress import ProgressDisplay, progress_bars


def shown(terminal: bool, show: bool = True, amount: str = "count") -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100, color_system=None)
    with progress_bars(amount=amount, show=show, console=console) as bars:
        task = bars.add_task("drawing graphs", total=8, note="3 per second")
        bars.advance(task, 2)
        bars.refresh()
    return console.file.getvalue()


def test_a_terminal_gets_a_count_or_a_share_with_a_note():
    assert "drawing graphs" in shown(True)
    assert "2/8" in shown(True)
    assert " 25 %" in shown(True, amount="percent")
    assert "3 per second" in shown(True, amount="percent")
    assert "3 per second" in shown(True, amount="note")
    assert "%" not in shown(True, amount="note")


@pytest.mark.parametrize(("terminal", "show"), [(False, True), (True, False)])
def test_files_and_quiet_commands_get_nothing(terminal, show):
    assert shown(terminal, show) == ""


def test_counts_of_named_things_have_a_bar_each():
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    with ProgressDisplay(amount="count", console=console) as display:
        display.update("translating tst2013", 4, 10)
        display.update("translating heldout", 1, 3)
    text = console.file.getvalue()
    assert "translating tst2013" in text
    assert "translating heldout" in text


def test_without_a_terminal_there_are_lines_with_share_note_and_time_left():
    console = Console(file=io.StringIO(), width=30)
    with ProgressDisplay(console=console, line_every_seconds=0) as display:
        display.start("shards")
        display.update("shards", 5, None, note="2 shards")
        display.restart("shards", 10, 100, note="3 shards")
        display.update("shards", 40, 100, note="4 shards")
        display.update("shards", 41, 100, note="5 shards")
        display.remove("shards")
        display.remove("never started")
    first, *_, last = console.file.getvalue().splitlines()
    assert first == "gape: shards: 5, 2 shards"
    assert last.startswith("gape: shards: 41 %, 5 shards, about ")
    assert last.endswith(" left")


@pytest.mark.parametrize("options", [{"show": False, "line_every_seconds": 0}, {"line_every_seconds": 60}])
def test_lines_are_rare_and_quiet_displays_have_none(options):
    console = Console(file=io.StringIO())
    with ProgressDisplay(console=console, **options) as display:
        display.update("sorting edges", 1, 2)
        display.update("sorting edges", 2, 2)
    assert console.file.getvalue() == ""
