"""A drawn table shows what the printed one says."""

from pathlib import Path

import pytest

from gape.experiments.graph_tasks.results import read_results
from gape.experiments.report.dots import draw_table, interactive, printed
from gape.experiments.report.layouts import names
from gape.experiments.report.paper import paper_results
from gape.experiments.report.summary import Summary
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


def drawn(figure):
    """Panel, kind, row and number of every dot."""
    rows = figure.layout.yaxis.ticktext
    return sorted(
        (trace.xaxis, trace.name, rows[round(y)], x)
        for trace in figure.data
        for x, y in zip(trace.x, trace.y, strict=True)
    )


def test_every_finite_figure_has_a_dot_and_nothing_else_has(table):
    figure = interactive(table)
    assert drawn(figure) == [
        ("x", LOGS, "RW", 99.89),
        ("x", "ours, best validation", "RW", 80.0),
        ("x", "ours, last epoch", "RW", 70.0),
        ("x", "paper", "GAPE*", 81.39),
        ("x", "paper", "RW", 99.95),
        ("x2", "ours, best validation", "RW", 0.25),
        ("x2", "ours, last epoch", "RW", 0.30),
        ("x2", "paper", "GAPE*", 2.863),
    ]
    first = figure.data[0]
    assert first.text == ("RW, ours, best validation: 80.00 ± 1.41 [2]",)
    assert first.error_x.array == pytest.approx((2**0.5,))


def test_rows_without_a_figure_have_a_line(table):
    assert interactive(table).layout.yaxis.ticktext == ("RW", "LAPE", "GAPE*", "GAPE**")
    assert interactive(table).layout.yaxis.range == (3.5, -0.5)
    left, _ = printed(table).axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["RW", "LAPE", "GAPE*", "GAPE**"]
    assert left.get_ylim() == (3.5, -0.5)


def test_print_and_browser_show_the_same(table):
    """Number by number and place by place; ours do not lie on the paper's."""
    for name, axes in zip(("x", "x2"), printed(table).axes, strict=True):
        dots = sorted((x, y) for line in axes.lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True))
        traces = [trace for trace in interactive(table).data if trace.xaxis == name]
        assert dots == sorted((x, y) for trace in traces for x, y in zip(trace.x, trace.y, strict=True))
    at = {trace.name: trace.y[0] for trace in interactive(table).data if trace.xaxis == "x"}
    assert at["ours, best validation"] < 0 < at["paper"]


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
    figure = interactive(table)
    headings = {"x" + (str(place) if place > 1 else ""): name[:-2] for place, name in enumerate(table.columns, start=1)}
    shown = {(row, headings[axis]): x for axis, kind, row, x in drawn(figure) if kind == PAPER}
    assert shown == {cell: value for cell, value in cells.items() if cell[0] in figure.layout.yaxis.ticktext}
    logged = {(row, headings[axis]): x for axis, kind, row, x in drawn(figure) if kind == LOGS}
    assert logged["RW", "ZINC"] == 0.203


@pytest.mark.parametrize("name", names())
def test_every_panel_of_the_committed_results_can_be_read(name):
    figure = printed(comparison(name, read_results(RESULTS)))
    figure.canvas.draw()
    for axes in (axes for axes in figure.axes if axes.get_visible() and axes.lines):
        low, high = axes.get_xlim()
        assert sum(low <= tick <= high for tick in axes.get_xticks()) >= 2, axes.get_title()


def test_errors_are_drawn_by_their_logarithm_only_if_all_bars_can_be():
    def scale(*entries: Entry) -> str:
        lines = tuple((f"row {place}", OURS, (entry,)) for place, entry in enumerate(entries))
        (axes,) = printed(Table("t", "", ("ZINC ↓",), lines, ())).axes
        return axes.get_xscale()

    assert scale(ours(0.2), ours(2.0)) == "log"
    assert scale(ours(0.2), ours(0.3)) == "linear"
    assert scale(ours(0.0), ours(2.0)) == "linear"
    assert scale(ours(0.01, 0.9, 0.01), ours(9.0)) == "linear"


def test_columns_beyond_the_fourth_go_below():
    wide = Table("t", "", tuple(f"T{i} ↑" for i in range(5)), (("RW", PAPER, (theirs(1.0),) * 5),), ())
    shown = [axes.get_title() for axes in printed(wide).axes if axes.get_visible()]
    assert shown == ["T0 ↑", "T1 ↑", "T2 ↑", "T3 ↑", "T4 ↑"]
    assert len(interactive(wide).data) == 5


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
