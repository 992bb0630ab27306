"""Learnable encodings by name: from a dataset to a trained step."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, InMemoryDataset

from gape.data import FlatGraphs, GraphDataset, Split, Task
from gape.experiments.graph_tasks.registry import LEARNED, learned
from gape.nn import GraphTransformer

# Transitions by edge type need data whose edges have types: tests/experiments/graph_tasks/test_learned.py.
UNTYPED = [name for name in LEARNED if name != "gape-learned-edge-typed"]


def dataset(categories: int) -> GraphDataset:
    sizes, edges = (
        [3, 4, 5],
        [[(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]],
    )
    x = np.arange(12)[:, None] % max(categories, 1)
    graphs = FlatGraphs.from_edges(sizes, edges, y=np.array([0.0, 1.0, 2.0]), x=x if categories else None)
    task = Task("toy", level="graph", metric="mae", num_classes=0, node_categories=(categories,) if categories else ())
    return GraphDataset(graphs, task, [Split([0, 1, 2], [], [])], provenance="drawn by hand")


@pytest.mark.parametrize("name", UNTYPED)
@pytest.mark.parametrize("categories", [0, 3])
def test_every_name_trains_on_a_prepared_dataset_as_on_the_fly(name, categories):
    plain, encoding = dataset(categories), learned(name)
    torch.manual_seed(0)
    encoder = encoding.encoder(16, plain.node_categories, heads=2)
    inputs = categories or "constant"
    model = GraphTransformer(inputs=inputs, out_channels=1, layers=1, hidden=16, heads=2, encoding=encoder)
    batch = encoding.prepare(plain, plain.node_categories).batch()
    given = encoding.encoder_input(batch)
    assert given.basis is not None
    encoder.fit_scaling([(given, model.pattern(batch.edge_index, batch.batch, batch.num_graphs))])
    out = model(batch.x, batch.edge_index, batch.batch, given)
    out.square().sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())
    model.eval()
    fly = type(given)(labels=given.labels, fixed=given.fixed)
    found, expected = (model(batch.x, batch.edge_index, batch.batch, one) for one in (given, fly))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", UNTYPED)
def test_every_name_passes_edge_weights_on(name):
    edges = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    weights = torch.tensor([[1.0], [1.0], [0.5], [0.5], [0.25], [0.25]])
    weighted = [Data(x=torch.tensor([0, 1, 2]), edge_index=edges, edge_weight=factor * weights) for factor in (1, 2)]

    class Stored(InMemoryDataset):
        def __init__(self):
            super().__init__()
            self.data, self.slices = self.collate(weighted)

    encoding = learned(name, scaling="batch")
    encoder = encoding.encoder(16, (3,), heads=2)
    batch = Batch.from_data_list(list(encoding.prepare(Stored(), (3,))))
    given = encoding.encoder_input(batch)
    model = GraphTransformer(inputs=3, out_channels=1, layers=1, hidden=16, heads=2, encoding=encoder).eval()
    fly = type(given)(labels=given.labels, edge_weight=batch.edge_weight.flatten(), fixed=given.fixed)
    found, expected = (model(batch.x, batch.edge_index, batch.batch, one) for one in (given, fly))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_preparing_leaves_the_random_numbers_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    learned("gape-learned-closed").prepare(dataset(3), (3,))
    assert torch.equal(torch.rand(3), expected)


def test_options_reach_the_automata_and_unknown_names_are_refused():
    encoding = learned("gape-learned-typed", learn=False, states=4, walks=0)
    encoder = encoding.encoder(8, (3,))
    assert encoder.extra_encoder is None
    assert not encoder.layers[0].machine.initial.requires_grad
    with pytest.raises(ValueError, match="'gape-learned-closed' has no setting foo; it has states, readout"):
        learned("gape-learned-closed", foo=3)
    with pytest.raises(ValueError, match="gape-learned-node"):
        learned("gape-learned-edge")
