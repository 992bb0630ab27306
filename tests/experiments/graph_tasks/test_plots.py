"""A drawn table shows what the printed one says."""

import re
from pathlib import Path

import pytest

from gape.experiments.graph_tasks.cell import read_results
from gape.experiments.report.layouts import table_names
from gape.experiments.report.numbers import Summary, paper_results
from gape.experiments.report.plots import dot_plot, draw_table
from gape.experiments.report.table import LOGS, Entry, Table, comparison

OURS, LAST, PAPER = "best validation", "last epoch", "paper"
RESULTS = Path(__file__).parents[3] / "results"


def ours(*values: float) -> Entry:
    return Entry("", summary=Summary(values, 2))


def theirs(value: float) -> Entry:
    return Entry("", value=value)


@pytest.fixture
def table():
    lines = (
        ("RW", OURS, (Entry("80.00 ± 1.41 [2]", summary=Summary((79.0, 81.0), 2)), ours(0.25))),
        ("RW", LAST, (ours(70.0), ours(0.30))),
        ("RW", PAPER, (theirs(99.95), Entry("OOM"))),
        ("RW", LOGS, (theirs(99.89), Entry("–"))),
        ("LAPE", OURS, (Entry("missing"), Entry("missing"))),
        ("GAPE*", OURS, (ours(float("nan")), Entry("–"))),
        ("GAPE*", PAPER, (theirs(81.39), theirs(2.863))),
        ("GAPE**", OURS, (Entry("missing"), Entry("missing"))),
    )
    return Table("t", "A table", ("CYCLES ↑", "ZINC ↓"), lines, ("A note.",))


def plotted(table):
    return dot_plot(table)[0]


def row_labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def drawn(figure):
    """Panel, kind, row and number of every dot."""
    rows = row_labels(figure.axes[0])
    return sorted(
        (panel, dots.get_label(), rows[round(y)], x)
        for panel, axes in enumerate(figure.axes)
        for dots in axes.containers
        for x, y in zip(*dots.lines[0].get_data(), strict=True)
    )


def test_every_finite_figure_has_a_dot_and_nothing_else_has(table):
    figure, tooltips = dot_plot(table)
    assert drawn(figure) == [
        (0, LOGS, "RW", 99.89),
        (0, "ours, best validation", "RW", 80.0),
        (0, "ours, last epoch", "RW", 70.0),
        (0, "paper", "GAPE*", 81.39),
        (0, "paper", "RW", 99.95),
        (1, "ours, best validation", "RW", 0.25),
        (1, "ours, last epoch", "RW", 0.30),
        (1, "paper", "GAPE*", 2.863),
    ]
    first = figure.axes[0].containers[0]
    assert tooltips[first.lines[0].get_gid()] == ["RW, ours, best validation: 80.00 ± 1.41 [2]"]
    (bar,) = first.lines[2][0].get_segments()
    assert (bar[1] - bar[0])[0] / 2 == pytest.approx(2**0.5)


def test_rows_without_a_figure_have_a_line(table):
    left, _ = plotted(table).axes
    assert row_labels(left) == ["RW", "LAPE", "GAPE*", "GAPE**"]
    assert left.get_ylim() == (3.5, -0.5)


def test_our_dots_do_not_cover_the_papers(table):
    at = {dots.get_label(): dots.lines[0].get_ydata()[0] for dots in plotted(table).axes[0].containers}
    assert at["ours, best validation"] < 0 < at["paper"]


def test_every_dot_on_the_page_says_its_figure(table, tmp_path):
    draw_table(table, tmp_path / "table.html")
    page = (tmp_path / "table.html").read_text()
    shown = re.findall(r"<use[^>]*><title>(.*?)</title></use>", page)
    figure, tooltips = dot_plot(table)
    assert sorted(shown) == sorted(text for texts in tooltips.values() for text in texts)
    assert len(shown) == len(drawn(figure))


def test_what_the_paper_prints_is_drawn_where_it_belongs():
    cells = {
        (row, column): 10.0 if (row, column) == ("Baseline", "CSL") else value  # printed as 0.10
        for row, columns in paper_results()["table:graph-performance"]["rows"].items()
        for column, value in columns.items()
        if column != "MT" and isinstance(value, float | int)
    }
    own_table = paper_results()["table:rw-ppr-graph"]["rows"]["PPRP"]
    cells |= {("PPRP", column): value for column, value in own_table.items()}
    table = comparison("graph-performance", [])
    figure = plotted(table)
    headings = [name[:-2] for name in table.columns]
    shown = {(row, headings[panel]): x for panel, kind, row, x in drawn(figure) if kind == PAPER}
    assert shown == {cell: value for cell, value in cells.items() if cell[0] in row_labels(figure.axes[0])}
    logged = {(row, headings[panel]): x for panel, kind, row, x in drawn(figure) if kind == LOGS}
    assert logged["RW", "ZINC"] == 0.203


@pytest.mark.parametrize("name", table_names())
def test_every_panel_of_the_committed_results_can_be_read(name):
    figure = plotted(comparison(name, read_results(RESULTS)))
    figure.canvas.draw()
    for axes in (axes for axes in figure.axes if axes.get_visible() and axes.lines):
        low, high = axes.get_xlim()
        assert sum(low <= tick <= high for tick in axes.get_xticks()) >= 2, axes.get_title()


def test_errors_are_drawn_by_their_logarithm_only_if_all_bars_can_be():
    def scale(*entries: Entry) -> str:
        lines = tuple((f"row {place}", OURS, (entry,)) for place, entry in enumerate(entries))
        (axes,) = plotted(Table("t", "", ("ZINC ↓",), lines, ())).axes
        return axes.get_xscale()

    assert scale(ours(0.2), ours(2.0)) == "log"
    assert scale(ours(0.2), ours(0.3)) == "linear"
    assert scale(ours(0.0), ours(2.0)) == "linear"
    assert scale(ours(0.01, 0.9, 0.01), ours(9.0)) == "linear"


def test_columns_beyond_the_fourth_go_below():
    wide = Table("t", "", tuple(f"T{i} ↑" for i in range(5)), (("RW", PAPER, (theirs(1.0),) * 5),), ())
    shown = [axes.get_title() for axes in plotted(wide).axes if axes.get_visible()]
    assert shown == ["T0 ↑", "T1 ↑", "T2 ↑", "T3 ↑", "T4 ↑"]
    assert sum(len(axes.containers) for axes in plotted(wide).axes) == 5


def test_a_table_without_figures_is_refused(tmp_path):
    empty = Table("learned", "", ("CSL ↑",), (("RW", OURS, (Entry("missing"),)),), ())
    with pytest.raises(ValueError, match="the table learned has no figure to draw: train with `gape bench`"):
        draw_table(empty, tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


def test_files_for_print_and_for_the_browser(table, tmp_path):
    for suffix, begin in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".html", b"<!doctype html>")):
        draw_table(table, tmp_path / f"table{suffix}")
        assert (tmp_path / f"table{suffix}").read_bytes().startswith(begin)
    assert "A note.</p></body>" in (tmp_path / "table.html").read_text()
