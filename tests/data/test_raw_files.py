"""Raw files: datasets read with PyG's classes, and errors if there are no files and no network.

Tests run offline: PyG's classes are replaced by fakes that return graphs in the form of PyG's documentation. The form
of the real downloads is not tested here.
"""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from gape.data import load

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_zinc_in_pyg_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Fake:
        def __new__(cls, root: str, subset: bool, split: str) -> list[Data]:  # type: ignore[misc]
            assert subset
            count = {"train": 3, "val": 2, "test": 1}[split]
            x = torch.tensor([[0], [5], [27]])
            return [Data(x=x, edge_index=PATH, edge_attr=torch.tensor([1, 1, 2, 2]), y=torch.tensor([0.5]))] * count

    monkeypatch.setattr("torch_geometric.datasets.ZINC", Fake)
    dataset = load("zinc", tmp_path)
    assert repr(dataset.splits[0]) == "Split(train=3, val=2, test=1)"
    assert dataset[0].x.tolist() == [[0], [5], [27]]
    assert dataset[0].edge_attr.tolist() == [1, 1, 2, 2]
    assert "PyG" in dataset.provenance


@pytest.mark.parametrize(("name", "features"), [("pattern", 3), ("cluster", 7)])
def test_block_models_in_pyg_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, features: int) -> None:
    one_hot = torch.eye(features)[torch.tensor([0, features - 1, 1])]

    def fake(root: str, key: str, split: str) -> list[Data]:
        assert key == name.upper()
        return [Data(x=one_hot, edge_index=PATH, y=torch.tensor([0, 1, 1]))] * 2

    monkeypatch.setattr("torch_geometric.datasets.GNNBenchmarkDataset", fake)
    dataset = load(name, tmp_path, source="pyg")
    assert dataset[5].x.tolist() == [[0], [features - 1], [1]]
    assert dataset[5].y.tolist() == [0, 1, 1]


def test_csl_in_pyg_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fake(root: str, key: str) -> list[Data]:
        return [Data(edge_index=PATH, y=number // 15, num_nodes=41) for number in range(150)]

    monkeypatch.setattr("torch_geometric.datasets.GNNBenchmarkDataset", fake)
    dataset = load("csl", tmp_path, order="published")
    assert len(dataset) == 150
    assert dataset[16].y.tolist() == [1]
    assert dataset[16].num_nodes == 41
    # PyG has no folds: ours are drawn from the seed.
    assert "our folds" in dataset.provenance
    again, other = (load("csl", tmp_path, order="published", seed=seed) for seed in (0, 1))
    assert torch.equal(dataset.splits[0].test, again.splits[0].test)
    assert not torch.equal(dataset.splits[0].test, other.splits[0].test)


def test_one_way_edges_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fake(root: str, key: str) -> list[Data]:
        return [Data(edge_index=PATH[:, :3], y=0, num_nodes=3)]

    monkeypatch.setattr("torch_geometric.datasets.GNNBenchmarkDataset", fake)
    with pytest.raises(ValueError, match="graph 0 of 'csl' has 3 directed edges"):
        load("csl", tmp_path, order="published")


TRIED = "A download was tried and failed: no network"


def offline(*args: object, **options: object) -> None:
    raise OSError("no network")


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("zinc", {}, ["zinc12k/zinc12k.npz", "molecules.zip", TRIED]),
        ("csl", {"order": "published"}, ["csl/csl.npz", "CSL.zip", "order='random'", TRIED]),
        ("pattern", {"source": "pyg"}, ["PATTERN_v2.zip", "source='generate'", TRIED]),
        ("cluster", {"source": "pyg"}, ["CLUSTER_v2.zip", "source='generate'", TRIED]),
        ("pcqm4mv2", {}, ["pcqm4m-v2/raw/data.csv.gz", "pcqm4m-v2.zip", TRIED]),
        ("qm9-20k", {}, ["qm9-20k/qm9_20k.npz"]),
    ],
)
def test_offline_and_nothing_there_says_which_file_to_put_where(
    name: str, options: dict[str, object], expected: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for target in ("datasets.ZINC", "datasets.GNNBenchmarkDataset", "data.download_url"):
        monkeypatch.setattr(f"torch_geometric.{target}", offline)
    with pytest.raises(FileNotFoundError) as caught:
        load(name, tmp_path, **options)
    message = str(caught.value)
    assert str(tmp_path) in message
    assert all(part in message for part in expected), message


def test_without_any_folder_the_message_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAPE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"set data_dir \(--data-dir\) or the variable GAPE_DATA"):
        load("zinc", source="file")
