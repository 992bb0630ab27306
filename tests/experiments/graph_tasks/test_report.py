"""The page of a comparison."""

from gape._internal.files import page_style
from gape.experiments.graph_tasks.settings import protocol_settings
from gape.experiments.report.plots import render_page
from gape.experiments.report.render import encodings_to_show
from gape.explorer import explore


def test_encodings_are_shown_with_the_settings_of_their_runs():
    chosen = [
        protocol_settings("cycles", "none"),
        protocol_settings("cycles", "gape", overrides={"encoding.damping": "0.1"}),
    ]
    (shown,) = encodings_to_show(chosen).values()
    assert shown.damping == 0.1


def test_reports_and_figures_have_the_style_of_the_explorer():
    style = page_style()
    assert style in render_page("figure.html", title="", svg="", notes=[])
    assert style in explore("cycle").html
