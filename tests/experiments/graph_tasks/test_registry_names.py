"""In the comparison, "gape" is the paper's setting, whatever the default of the library is."""

import pytest

from gape.encodings import make
from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.registry import encoding_settings, make_encoding, row_names


def test_gape_is_the_papers_setting():
    assert make_encoding("gape") == make("gape-paper")
    assert make_encoding("gape", damping=0.8, relative=True) == make("gape-paper", damping=0.8, relative=True)
    assert make_encoding("rw+gape", **{"gape.states": 8, "rw.length": 4}) == make(
        "rw+gape-paper", **{"gape-paper.states": 8, "rw.length": 4}
    )


def test_settings_have_the_names_of_rows():
    assert {"rw.length", "gape.damping"} <= {setting.name for setting in encoding_settings("rw+gape")}
    assert encoding_settings("none") == []


def test_the_papers_damping_is_no_override_and_the_librarys_is_one():
    assert Cell("zinc", "gape", overrides={"encoding.damping": "0.02", "encoding.relative": "false"}).overrides == {}
    changed = {"encoding.damping": "0.9", "encoding.relative": "true"}
    assert Cell("zinc", "gape", overrides=changed).overrides == changed


def test_the_name_of_the_library_is_refused_with_that_of_the_row():
    assert "gape-paper" not in row_names()
    with pytest.raises(ValueError, match="the row of 'gape-paper' is named 'gape'"):
        Cell("zinc", "gape-paper")
