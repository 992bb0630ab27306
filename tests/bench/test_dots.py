"""A drawn table shows what the printed one says."""

import pytest

from gape.bench.report.dots import interactive, printed
from gape.bench.tables.summary import Summary
from gape.bench.tables.table import Entry, Table

OURS, PAPER = "best validation", "paper"


@pytest.fixture
def table():
    two = Entry("80.00 ± 1.41 [2]", summary=Summary((79.0, 81.0), 2))
    error = Entry("0.250 [1]", summary=Summary((0.25,), 3))
    lost = Entry("not finite [1]", summary=Summary((float("nan"),), 2))
    lines = (
        ("RW", OURS, (two, error)),
        ("RW", PAPER, (Entry("99.95", value=99.95), Entry("OOM"))),
        ("LAPE", OURS, (Entry("missing"), Entry("missing"))),
        ("GAPE*", OURS, (lost, Entry("–"))),
        ("GAPE*", PAPER, (Entry("81.39", value=81.39), Entry("2.863", value=2.863))),
    )
    return Table("t", "A table", ("CYCLES ↑", "ZINC ↓"), lines, ())


def test_every_finite_figure_has_a_dot_and_nothing_else_has(table):
    figure = interactive(table)
    drawn = [
        (trace.xaxis, trace.name, row, x) for trace in figure.data for row, x in zip(trace.y, trace.x, strict=True)
    ]
    assert sorted(drawn) == [
        ("x", "ours, best validation", "RW", 80.0),
        ("x", "paper", "GAPE*", 81.39),
        ("x", "paper", "RW", 99.95),
        ("x2", "ours, best validation", "RW", 0.25),
        ("x2", "paper", "GAPE*", 2.863),
    ]
    assert figure.data[0].text == ("RW, ours, best validation: 80.00 ± 1.41 [2]",)
    assert figure.data[0].error_x.array == pytest.approx((2**0.5,))


def test_in_print_the_same_dots_stand_near_the_line_of_their_row(table):
    left, right = printed(table).axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["RW", "LAPE", "GAPE*"]
    dots = [(line.get_xdata(), line.get_ydata()) for line in left.lines]
    assert [list(x) for x, _ in dots] == [[80.0], [99.95, 81.39]]
    assert [[round(y) for y in at] for _, at in dots] == [[0], [0, 2]]
    assert (left.get_xscale(), right.get_xscale()) == ("linear", "log")


def test_columns_beyond_the_fourth_go_below(table):
    wide = Table("t", "", tuple(f"T{i} ↑" for i in range(5)), (("RW", PAPER, (Entry("1", value=1.0),) * 5),), ())
    shown = [axes.get_title() for axes in printed(wide).axes if axes.get_visible()]
    assert shown == ["T0 ↑", "T1 ↑", "T2 ↑", "T3 ↑", "T4 ↑"]
    assert len(interactive(wide).data) == 5
