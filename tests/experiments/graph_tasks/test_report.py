"""Drawings on the page of a comparison."""

import torch
from torch_geometric.data import Data

from gape._internal.files import page_style
from gape.experiments.graph_tasks.protocol import settings
from gape.experiments.report.page import draw_encodings
from gape.experiments.report.plots import render_page
from gape.explorer import explore


def test_isolated_nodes_and_edges_in_one_direction_are_drawn():
    graph = Data(edge_index=torch.tensor([[0, 3, 3], [1, 0, 1]]), num_nodes=5)
    lines, nodes = draw_encodings(graph, [settings("directed-cycles", "rw")]).data
    assert len(nodes.x) == 5
    assert sum(x is None for x in lines.x) == 3


def test_an_encoding_is_drawn_with_the_settings_of_its_run():
    ring = Data(edge_index=torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]]), num_nodes=3)
    drawn = draw_encodings(ring, [settings("cycles", "gape", overrides={"encoding.damping": "0.1"})])
    assert len(set(drawn.data[1].marker.color)) == 1
    plain = draw_encodings(ring, [settings("cycles", "gape")])
    assert drawn.data[1].marker.color != plain.data[1].marker.color
    # Six steps back are shown; where there are fewer, nothing is.
    assert not draw_encodings(ring, [settings("cycles", "rw", overrides={"encoding.length": "3"})]).data


def test_reports_and_figures_have_the_style_of_the_explorer():
    style = page_style()
    assert style in render_page("figure.html", title="", svg="", notes=[])
    assert style in explore("cycle").html
