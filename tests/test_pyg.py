"""Transforms give the numbers of the encodings, wherever PyG takes a transform."""

import copy
import pickle
import random
import subprocess
import sys
import warnings

import pytest
import torch
from torch_geometric.data import Batch, Data, Dataset, InMemoryDataset
from torch_geometric.datasets import FakeDataset, FakeHeteroDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops, Compose

from gape import as_graph, encodings, pyg
from gape.encodings import Pairs

TRANSFORMS = {
    "add_gape": (pyg.AddGAPE, {"states": 5, "damping": 0.01}, {"states": 6}),
    "add_rooted_gape": (pyg.AddRootedGAPE, {"machines": 2, "layers": 1}, {"radius": 1}),
    "add_random_walk": (pyg.AddRandomWalk, {"length": 4}, {"length": 5}),
    "add_laplacian": (pyg.AddLaplacian, {"vectors": 3}, {"laplacian": "combinatorial"}),
    "add_spectrum": (pyg.AddSpectrum, {"pairs": 4}, {"unit_rows": False}),
    "add_shortest_path": (pyg.AddShortestPath, {"cap": 20}, {"cap": 21}),
    "add_degree": (pyg.AddDegree, {}, {"cap": 3}),
    "add_pagerank": (pyg.AddPageRank, {"beta": 0.2}, {"beta": 0.3}),
    "add_pprp": (pyg.AddPPRP, {"powers": 5}, {"scale": False}),
    "add_heat_kernel": (pyg.AddHeatKernel, {"times": (1, 3)}, {"times": (1, 4)}),
    "add_resistance": (pyg.AddResistance, {"commute": True}, {"commute": False}),
    "add_electrostatic": (pyg.AddElectrostatic, {}, {"readout": "pair"}),
    "add_communicability": (pyg.AddCommunicability, {"betas": (0.5,)}, {"series": "resolvent"}),
    "add_svd": (pyg.AddSVD, {"rank": 2}, {"rank": 3}),
    "add_magnetic_laplacian": (pyg.AddMagneticLaplacian, {"vectors": 2}, {"potentials": (0.1,)}),
    "add_walk_profile": (pyg.AddWalkProfile, {"length": 2}, {"readout": "closed"}),
}
every_transform = pytest.mark.parametrize(("kind", "settings"), [entry[:2] for entry in TRANSFORMS.values()])


@pytest.fixture(scope="module")
def dataset():
    """Undirected graphs of PyG's own making."""
    random.seed(0)
    torch.manual_seed(0)
    return FakeDataset(num_graphs=7, avg_num_nodes=9, avg_degree=3, num_channels=2)


def same(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)


def entries(found):
    return found.values if isinstance(found, Pairs) else found


@every_transform
def test_data_gets_what_the_encoding_gives_and_the_original_stays(kind, settings, dataset):
    transform, data = kind(**settings), dataset[0]
    before = data.to_dict()
    found = transform(data)
    same(found[transform.attr_name], entries(transform.encoding(as_graph(data))))
    assert set(found.keys()) == {*before, transform.attr_name}
    assert set(data.keys()) == set(before)


@every_transform
def test_a_batch_gets_what_its_graphs_get_and_comes_apart_again(kind, settings, dataset):
    transform = kind(**settings)
    one_by_one = [transform(data)[transform.attr_name] for data in dataset]
    batch = transform(Batch.from_data_list(list(dataset)))
    torch.testing.assert_close(batch[transform.attr_name], torch.cat(one_by_one), rtol=1e-4, atol=1e-5, equal_nan=True)
    for data, expected in zip(batch.to_data_list(), one_by_one, strict=True):
        torch.testing.assert_close(data[transform.attr_name], expected, rtol=1e-4, atol=1e-5, equal_nan=True)


@every_transform
def test_a_whole_data_set_gets_what_its_graphs_get(kind, settings, dataset):
    transform = kind(**settings)
    encoded = transform.over(dataset)
    assert transform.attr_name not in dataset._data
    for data, other in zip(dataset, encoded, strict=True):
        expected = transform(data)[transform.attr_name]
        torch.testing.assert_close(other[transform.attr_name], expected, rtol=1e-4, atol=1e-5, equal_nan=True)
        assert torch.equal(data.edge_index, other.edge_index)


@every_transform
def test_a_list_gets_what_its_graphs_get(kind, settings, dataset):
    transform, graphs = kind(**settings), list(dataset)
    for data, other in zip(graphs, transform.over(graphs), strict=True):
        expected = transform(data)[transform.attr_name]
        torch.testing.assert_close(other[transform.attr_name], expected, rtol=1e-4, atol=1e-5, equal_nan=True)
        assert transform.attr_name not in data
        assert torch.equal(data.x, other.x)


def test_features_of_a_list_join_the_encoding(dataset):
    joining, graphs = pyg.AddRandomWalk(length=3, attr_name=None), list(dataset)
    for data, other in zip(graphs, joining.over(graphs), strict=True):
        torch.testing.assert_close(other.x, joining(data).x)
    del graphs[1].x
    graphs[1].num_nodes = dataset[1].num_nodes
    with pytest.raises(ValueError, match="graph 1 of the list has no x"):
        joining.over(graphs)


@every_transform
def test_a_view_of_a_data_set_stays_the_same_view(kind, settings, dataset):
    transform = kind(**settings)
    view = transform.over(dataset[2:5].shuffle())
    whole = transform.over(dataset)
    assert len(view) == 3
    for i, place in enumerate(view.indices()):
        same(view[i][transform.attr_name], whole[place][transform.attr_name])


@every_transform
def test_loaders_with_workers_batch_the_encodings(kind, settings, dataset):
    transform = kind(**settings)
    lazily = copy.copy(dataset)
    lazily.transform = transform
    at_once = next(iter(DataLoader(transform.over(dataset), batch_size=len(dataset))))[transform.attr_name]
    loader = DataLoader(lazily, batch_size=3, num_workers=2)
    joined = torch.cat([batch[transform.attr_name] for batch in loader])
    torch.testing.assert_close(joined, at_once, rtol=1e-4, atol=1e-5, equal_nan=True)


class Rings(InMemoryDataset):
    """Directed in-memory dataset with a processed file, as PyG's own datasets have."""

    processed_file_names = "rings.pt"

    def __init__(self, root, pre_transform=None):
        super().__init__(root, pre_transform=pre_transform)
        self.load(self.processed_paths[0])

    def process(self):
        rings = []
        for n in (3, 4, 5):
            nodes = torch.arange(n)
            forth = torch.stack([nodes, (nodes + 1) % n])
            rings.append(Data(edge_index=torch.cat([forth, forth.flip(0)], 1), num_nodes=n))
        self.save(
            [self.pre_transform(ring) for ring in rings] if self.pre_transform else rings, self.processed_paths[0]
        )


@every_transform
def test_as_pre_transform_it_is_kept_in_the_processed_file(kind, settings, tmp_path):
    transform = kind(**settings)
    expected = [transform(ring)[transform.attr_name] for ring in Rings(str(tmp_path / "plain"))]
    for _ in range(2):  # made, then loaded
        rings = Rings(str(tmp_path / "encoded"), pre_transform=Compose([transform]))
        for ring, rows in zip(rings, expected, strict=True):
            same(ring[transform.attr_name], rows)


@pytest.mark.parametrize(("kind", "settings", "other"), TRANSFORMS.values())
def test_pyg_notices_a_changed_pre_transform_by_its_repr(kind, settings, other, tmp_path):
    assert repr(kind(**settings)) == repr(kind(**settings))
    Rings(str(tmp_path), pre_transform=kind(**settings))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Rings(str(tmp_path), pre_transform=kind(**settings))
    for changed in (kind(**{**settings, **other}), kind(**settings, attr_name="else")):
        with pytest.warns(UserWarning, match="pre_transform"):
            Rings(str(tmp_path), pre_transform=changed)


@every_transform
def test_without_a_name_it_joins_x(kind, settings, dataset):
    named = kind(**settings)
    if named.encoding.pairwise:
        with pytest.raises(ValueError, match="cannot be appended to x"):
            kind(**settings, attr_name=None)
        return
    data = dataset[1]
    rows = named(data)[named.attr_name]
    if rows.dim() != 2:
        with pytest.raises(ValueError, match="cannot be appended to x"):
            kind(**settings, attr_name=None)(data)
        return
    joining = kind(**settings, attr_name=None)
    assert torch.equal(joining(data).x, torch.cat([data.x, rows], 1))
    assert torch.equal(joining.over(dataset)[1].x[:, :2], data.x)
    whole_numbers = Data(x=torch.arange(data.num_nodes), edge_index=data.edge_index)
    assert torch.equal(joining(whole_numbers).x[:, 1:], rows)
    assert torch.equal(joining(Data(edge_index=data.edge_index, num_nodes=data.num_nodes)).x, rows)


@every_transform
def test_transforms_can_be_pickled(kind, settings, dataset):
    transform = kind(**settings)
    again = pickle.loads(pickle.dumps(transform))
    assert repr(again) == repr(transform)
    same(again(dataset[0])[transform.attr_name], transform(dataset[0])[transform.attr_name])


def test_without_pyg_the_extra_to_install_is_named():
    program = "import sys; sys.modules['torch_geometric'] = None; import gape.pyg"
    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'gape[pyg]'" in failed.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_the_functional_name_is_known_to_pyg(name):
    from torch.utils.data import IterDataPipe

    assert name in IterDataPipe.functions


def test_one_graph_in_a_data_set_is_encoded_as_well():
    single = FakeDataset(num_graphs=1, avg_num_nodes=9)
    encoded = pyg.AddRandomWalk(length=3).over(single)
    assert encoded[0].random_walk.shape == (single[0].num_nodes, 3)


@pytest.mark.parametrize("name", ["", "my_index", "edge_pe", "batch2", "num_nodes", "ptr"])
def test_names_that_pyg_would_misread_are_refused(name):
    with pytest.raises(ValueError, match=f"'{name}' is reserved"):
        pyg.AddGAPE(attr_name=name)


def test_pairs_have_no_name_by_which_pyg_counts_nodes(dataset):
    for name in ("x", "pos", "node_pairs"):
        with pytest.raises(ValueError, match="number of nodes"):
            pyg.AddShortestPath(attr_name=name)
    assert pyg.AddGAPE(attr_name="node_pe")(dataset[0]).num_nodes == dataset[0].num_nodes
    with pytest.raises(ValueError, match="must be a string, or None to append to x, got 3"):
        pyg.AddGAPE(attr_name=3)
    with pytest.raises(ValueError, match=r"such as gape.encodings.RandomWalk\(\), got 3"):
        pyg.AddEncoding(3)


class NotInMemory(Dataset):
    def len(self):
        return 0

    def get(self, i):
        raise IndexError(i)


@pytest.mark.parametrize("kind", [pyg.AddGAPE, pyg.AddWalkBasis])
def test_what_a_transform_cannot_take_comes_with_the_way_out(kind, dataset):
    several_types = FakeHeteroDataset(num_graphs=2)
    for call, message in [
        (lambda: kind()(dataset), r"got the dataset FakeDataset\(7\); use .over\(dataset\)"),
        (lambda: kind()(list(dataset)), r"got a list; use .over\(list\)"),
        (lambda: pyg.AddWalkBasis()(several_types[0]), "HeteroData, whose nodes have several types; call an encoding"),
        (lambda: kind()(as_graph(dataset)), "a PyG Data or Batch, got Graph; use gape.encode for graphs outside PyG"),
        (lambda: kind().over(dataset[0]), "list of Data, got Data; call the transform on it, without .over"),
        (
            lambda: kind().over([dataset[0], several_types[0]]),
            "HeteroData, whose nodes have several.* at place 1",
        ),
        (lambda: kind().over([Batch.from_data_list(list(dataset))]), "got a list with DataBatch.* at place 0"),
        (lambda: kind().over(several_types), "call an encoding's transform on its graphs, one by one"),
        (lambda: kind().over(NotInMemory()), r"got NotInMemory\(\), which .* as transform or pre_transform"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


@every_transform
def test_a_data_set_with_a_transform_is_encoded_as_stored_and_transformed_when_read(kind, settings, dataset):
    transform, turned = kind(**settings), copy.copy(dataset)
    turned.transform = AddSelfLoops()
    with pytest.warns(UserWarning, match=r"before the dataset's transform AddSelfLoops\(\)") as said:
        encoded = transform.over(turned)
    assert said[0].filename == __file__
    plain = transform.over(dataset)
    for data, other in zip(encoded, plain, strict=True):
        same(data[transform.attr_name], other[transform.attr_name])
        assert data.num_edges == other.num_edges + other.num_nodes


def test_a_setting_that_does_not_exist_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="gape has no setting 'state'; it has dtype, states"):
        pyg.AddGAPE(state=3)


def test_an_encoding_can_be_added_by_its_name(dataset):
    assert torch.equal(pyg.AddEncoding("rw")(dataset[0].clone()).pe, encodings.RandomWalk()(as_graph(dataset[0])))


def test_several_encodings_can_be_added_by_their_names(dataset):
    found = pyg.AddEncoding("rw+lape").over(dataset)
    expected = torch.cat([encodings.RandomWalk()(as_graph(dataset[2])), encodings.Laplacian()(as_graph(dataset[2]))], 1)
    torch.testing.assert_close(found[2].pe, expected, rtol=1e-5, atol=1e-6)
    pairs = pyg.AddEncoding("rrwp+spd")(dataset[0]).pe
    assert pairs.shape == (dataset[0].num_nodes ** 2, 22)


def test_any_encoding_can_be_added_under_any_name(dataset):
    transform = pyg.AddEncoding(encodings.GAPE(states=3, readout="closed"), attr_name="loops")
    assert transform(dataset[0]).loops.shape == (dataset[0].num_nodes, 3)
    assert "readout='closed'" in repr(transform)


def test_flat_pairs_of_a_batch_become_the_padded_attention_bias(dataset):
    transform = pyg.AddShortestPath(cap=20)
    batch = next(iter(DataLoader(transform.over(dataset), batch_size=3)))
    padded = Pairs(batch.shortest_path, batch.ptr.diff()).padded(fill=-1)
    for i in range(3):
        n = dataset[i].num_nodes
        assert torch.equal(padded[i, :n, :n].flatten(), transform(dataset[i]).shortest_path)


def grit_rrwp(data, length):
    """GRIT's published attributes of one graph: diagonal and nonzero pairs of [I, W, …, W^(length - 1)], W = D⁻¹A."""
    adjacency = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.float64)
    adjacency.index_put_(tuple(data.edge_index), torch.ones(data.num_edges, dtype=torch.float64), accumulate=True)
    degree = adjacency.sum(1)
    walk = torch.where(degree > 0, 1 / degree, 0.0).unsqueeze(1) * adjacency
    powers = torch.stack([torch.linalg.matrix_power(walk, t) for t in range(length)], -1)
    index = powers.abs().sum(-1).nonzero().T
    return {
        "rrwp": powers.diagonal().T.float(),
        "rrwp_index": index,
        "rrwp_val": powers[tuple(index)].float(),
        "deg": degree.long(),
        "log_deg": (degree + 1).log().float(),
    }


@pytest.mark.parametrize("way", ["data", "batch", "over", "loader"])
def test_rrwp_has_the_attributes_that_grit_reads(way, dataset):
    transform = pyg.AddRRWP(length=5)
    if way == "data":
        found = [transform(data) for data in dataset]
    elif way == "batch":
        found = transform(Batch.from_data_list(list(dataset))).to_data_list()
    elif way == "over":
        found = list(transform.over(dataset))
    else:
        batches = list(DataLoader(transform.over(dataset), batch_size=3))
        joined = Batch.from_data_list([transform(data) for data in dataset[:3]])
        assert torch.equal(batches[0].rrwp_index, joined.rrwp_index)
        assert torch.equal(batches[0].rrwp_index, transform(Batch.from_data_list(list(dataset[:3]))).rrwp_index)
        found = [data for batch in batches for data in batch.to_data_list()]
    for data, original in zip(found, dataset, strict=True):
        assert data.num_nodes == original.num_nodes
        for name, expected in grit_rrwp(original, 5).items():
            torch.testing.assert_close(data[name], expected, rtol=1e-6, atol=1e-7)


def test_rrwp_of_all_pairs_is_the_dense_form(dataset):
    transform = pyg.AddRRWP(length=3, full=True, attr_name="walks")
    data = transform(dataset[0])
    dense = torch.zeros(data.num_nodes, data.num_nodes, 3)
    dense[tuple(data.walks_index)] = data.walks_val
    assert len(data.walks_val) == data.num_nodes**2
    assert torch.equal(dense, transform.encoding(as_graph(data)).matrices()[0])
    assert repr(transform) != repr(pyg.AddRRWP(length=3, attr_name="walks"))
    again = pickle.loads(pickle.dumps(transform))
    assert torch.equal(again(dataset[0]).walks_val, data.walks_val)


def test_rrwp_refuses_what_it_cannot_write():
    with pytest.raises(ValueError, match="for nodes only use AddEncoding"):
        pyg.AddRRWP(readout="closed")
    with pytest.raises(ValueError, match="'my_index' is reserved"):
        pyg.AddRRWP(attr_name="my_index")
