"""Layers and encodings in compiled, exported and mixed-precision models, and in loaders with workers."""

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader

from gape.nn import GAPE, LinearEncoder
from gape.pyg import AddGAPE, AddLaplacian, AddRandomWalk, AddWalkBasis


def ring(n: int) -> Tensor:
    nodes = torch.arange(n)
    forth = torch.stack([nodes, (nodes + 1) % n])
    return torch.cat([forth, forth.flip(0)], 1)


class Learned(nn.Module):
    """A model that holds an automaton."""

    def __init__(self, **settings):
        super().__init__()
        self.position = GAPE(states=4, out_channels=8, seed=0, **settings)
        self.embed, self.out = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.out(torch.relu(self.embed(x) + self.position(edge_index, batch)))


class WithBasis(Learned):
    """The same with precomputed bases as input."""

    def forward(self, x: Tensor, vectors: Tensor, spectrum: Tensor, scale: Tensor, batch: Tensor) -> Tensor:
        return self.out(torch.relu(self.embed(x) + self.position.from_basis(vectors, spectrum, scale, batch)))


class Fixed(nn.Module):
    """A model that takes an encoding as input."""

    def __init__(self):
        super().__init__()
        self.position, self.embed, self.out = LinearEncoder(6, 8), nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor, encoding: Tensor) -> Tensor:
        return self.out(torch.relu(self.embed(x) + self.position.linear(encoding)))


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.manual_seed(0)
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("readout", ["node", "closed"])
def test_a_model_with_an_automaton_is_compiled_once_for_graphs_of_all_sizes(readout):
    model = Learned(readout=readout)
    compiled = torch.compile(model, backend="eager", dynamic=True)
    for n in (5, 6, 9, 14, 20, 31, 40):
        given = torch.randn(n, 8), ring(n), torch.zeros(n, dtype=torch.int64)
        model.zero_grad()
        found = compiled(*given)
        found.sum().backward()
        gradient = model.position.machine.initial.grad.clone()
        model.zero_grad()
        expected = model(*given)
        expected.sum().backward()
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(gradient, model.position.machine.initial.grad, rtol=1e-3, atol=1e-4)
    # The parts of the model before, between and after what is left to the layer.
    assert counters["stats"]["unique_graphs"] <= 4


def test_a_model_that_takes_encodings_compiles_as_one_graph():
    model = Fixed()
    compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=True)
    for n in (5, 9, 20):
        x, rows = torch.randn(n, 8), AddRandomWalk(6).encoding(ring(n))
        torch.testing.assert_close(compiled(x, rows), model(x, rows))
    assert counters["stats"]["unique_graphs"] == 1


def test_a_model_that_takes_encodings_can_be_exported():
    model, rows = Fixed(), AddRandomWalk(6).encoding(ring(9))
    nodes = torch.export.Dim("nodes", min=2)
    exported = torch.export.export(model, (torch.randn(9, 8), rows), dynamic_shapes=({0: nodes}, {0: nodes}))
    x, rows = torch.randn(14, 8), AddRandomWalk(6).encoding(ring(14))
    torch.testing.assert_close(exported.module()(x, rows), model(x, rows))


def with_basis(model: Learned, sizes: tuple[int, ...]) -> Batch:
    """Rings with a chord, and their bases."""
    graphs = [Data(edge_index=torch.cat([ring(n), torch.tensor([[0, 3], [3, 0]])], 1), num_nodes=n) for n in sizes]
    return Batch.from_data_list(AddWalkBasis(**model.position.basis_settings).over(graphs))


@pytest.mark.parametrize("matrix", ["adjacency", "random_walk"])
def test_a_model_with_an_automaton_and_bases_compiles_as_one_graph_and_can_be_exported(matrix):
    model = WithBasis(matrix=matrix).eval()
    compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=True)
    exported = None
    for sizes in ((5, 9), (7, 6, 12), (8, 20)):
        batch = with_basis(model, sizes)
        given = torch.randn(sum(sizes), 8), batch.walk_vectors, batch.walk_spectrum, batch.walk_scale, batch.batch
        expected = Learned.forward(model, given[0], batch.edge_index, batch.batch)
        if exported is None:
            nodes, graphs = torch.export.Dim("nodes", min=2), torch.export.Dim("graphs", min=2)
            exported = torch.export.export(
                model, given, dynamic_shapes=({0: nodes}, {0: nodes}, {0: graphs}, *[{0: nodes}] * 2)
            )
        for way in (model, compiled, exported.module()):
            torch.testing.assert_close(way(*given), expected, rtol=1e-4, atol=1e-5)
        model.zero_grad()
        expected.sum().backward()
        gradient = model.position.machine.transition.weight.grad.clone()
        model.zero_grad()
        compiled(*given).sum().backward()
        torch.testing.assert_close(model.position.machine.transition.weight.grad, gradient, rtol=1e-3, atol=1e-4)
    assert counters["stats"]["unique_graphs"] == 1


def test_a_layer_refuses_bases_for_readouts_that_need_more():
    tensors = torch.ones(3, 2), torch.ones(1, 2), torch.ones(3), torch.zeros(3, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"from_basis is for readout='node' without a length .*readout='closed'"):
        GAPE(states=2, readout="closed").from_basis(*tensors)
    with pytest.raises(ValueError, match="from_basis is for one label"):
        GAPE(states=2, labels=2).from_basis(*tensors)


@pytest.mark.parametrize("readout", ["node", "closed", "rooted"])
def test_mixed_precision_changes_an_automaton_by_no_more_than_its_rounding(readout):
    layer = GAPE(states=4, out_channels=8, readout=readout, scaling="none", seed=0)
    edges = torch.cat([ring(9), torch.tensor([[0, 4], [4, 0]])], 1)
    expected = layer(edges, num_nodes=9)
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(edges, num_nodes=9)
    assert found.dtype == torch.bfloat16  # of the linear layer; the runs themselves are summed in full precision
    torch.testing.assert_close(found.float(), expected, rtol=2e-2, atol=2e-2 * float(expected.detach().abs().max()))


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_workers_give_the_encodings_of_this_process(start):
    dataset = FakeDataset(num_graphs=6, avg_num_nodes=9, avg_degree=3)
    for transform in (AddGAPE(states=4), AddLaplacian(3)):
        dataset.transform = transform
        expected = torch.cat([data[transform.attr_name] for data in dataset])
        loader = DataLoader(dataset, batch_size=3, num_workers=2, multiprocessing_context=start)
        found = torch.cat([batch[transform.attr_name] for batch in loader])
        torch.testing.assert_close(found, expected)
