"""ZINC, PCQM4Mv2 and QM9: real files compared with published statistics, SMILES conversion with PyG's."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.utils import from_smiles
from torch_geometric.utils.smiles import x_map

from gape.data import ATOM_CATEGORIES, PCQM4Mv2, load
from gape.data.pcqm4mv2 import molecule, read_table
from gape.nn import NodeInput

SMILES = [
    "Cc1ccc([C@H]2Cc3cnccc3NC2=O)cc1",
    "COc1ccc(/C=C/N(C)C(C)=O)c(OC)c1",
    "C[N+](C)(C)CC(=O)[O-]",
    "O=S(=O)(c1ccccc1)N1CC1",
    "[CH3]",
    "C",
    "FS(F)(F)(F)(F)F",
    "C1CC1.Cl",
]


@pytest.mark.parametrize("smiles", SMILES)
def test_molecules_are_read_as_pyg_reads_them(smiles: str) -> None:
    atoms, bonds, kinds = molecule(smiles)
    theirs = from_smiles(smiles)
    assert np.array_equal(atoms, theirs.x.numpy())
    ours = {(u, v): kind for (u, v), kind in zip(bonds.tolist(), kinds.tolist(), strict=True)}
    once = theirs.edge_index[0] < theirs.edge_index[1]
    expected = zip(theirs.edge_index[:, once].t().tolist(), theirs.edge_attr[once].tolist(), strict=True)
    assert {tuple(sorted(edge)): kind for edge, kind in ours.items()} == {tuple(e): kind for e, kind in expected}


def test_atom_categories_are_those_of_pyg_and_take_every_molecule() -> None:
    assert tuple(len(categories) for categories in x_map.values()) == ATOM_CATEGORIES
    assert PCQM4Mv2.TASK.node_categories == ATOM_CATEGORIES
    embed = NodeInput(ATOM_CATEGORIES, width=4)
    for smiles in SMILES:
        atoms = torch.from_numpy(molecule(smiles)[0])
        assert embed(atoms).shape == (len(atoms), 4)


def test_bad_smiles_is_quoted() -> None:
    with pytest.raises(ValueError, match="cannot read the SMILES 'C1CC'"):
        molecule("C1CC")


def write_table(folder: Path, rows: list[str]) -> Path:
    path = folder / "pcqm4m-v2" / "raw" / "data.csv.gz"
    path.parent.mkdir(parents=True)
    with gzip.open(path, "wt") as file:
        file.write("\n".join(["idx,smiles,homolumogap", *rows]) + "\n")
    return path


def test_official_layout_with_its_split(tmp_path: Path) -> None:
    rows = [f"{i},{'C' * (i + 1)},{i}.5" for i in range(20)]
    write_table(tmp_path, [*rows, "20,CO,", "21,CN,"])
    parts = {
        "train": np.arange(14),
        "valid": np.arange(14, 20),
        "test-dev": np.array([20]),
        "test-challenge": np.array([21]),
    }
    torch.save(parts, tmp_path / "pcqm4m-v2" / "split_dict.pt")
    dataset = PCQM4Mv2(val_fraction=0.2).build(tmp_path, processes=1, show=False)
    assert len(dataset) == 20
    assert dataset.splits[0].test.tolist() == list(range(14, 20))
    assert len(dataset.splits[0].val) == 3
    assert len(dataset.splits[0].train) == 11
    assert dataset.node_counts.tolist() == list(range(1, 21))
    assert dataset[4].y.tolist() == [4.5]
    assert dataset[4].edge_attr.shape == (8, 3)
    again = PCQM4Mv2(val_fraction=0.2).build(tmp_path, processes=1, show=False)
    assert torch.equal(again.batch().edge_index, dataset.batch().edge_index)
    with pytest.raises(ValueError, match=r"limit=9 leaves no row of the official validation part .* begins at row 14"):
        PCQM4Mv2(limit=9).build(tmp_path, processes=1, show=False)


@pytest.mark.slow
def test_processes_do_not_change_the_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gape.data.pcqm4mv2._MOLECULES_PER_PIECE", 3)
    write_table(tmp_path, [f"{i},{smiles},1.0" for i, smiles in enumerate(SMILES)])
    one, two = (PCQM4Mv2().build(tmp_path, cache=False, processes=count, show=False).batch() for count in (1, 2))
    assert torch.equal(one.x, two.x)
    assert torch.equal(one.edge_index, two.edge_index)


def test_odd_tables_are_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path, ["0,C,", "1,CC,2.0"])
    with pytest.raises(ValueError, match="'CC' has a gap, 'C' before it has none"):
        read_table(path)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="expected idx, smiles, homolumogap"):
        read_table(tmp_path / "other.csv")


def test_zinc_counts_and_targets(real_data: Path) -> None:
    dataset = load("zinc", real_data)
    train, val, test = dataset.split()
    assert (len(train), len(val), len(test)) == (10_000, 1_000, 1_000)
    for part, nodes, edges, mean, deviation in (
        (train, 23.166, 49.86, 0.01526, 2.01091),
        (val, 23.083, 49.69, 0.03145, 1.98562),
        (test, 23.117, 49.72, 0.01241, 2.01801),
    ):
        assert float(part.node_counts.float().mean()) == pytest.approx(nodes, abs=1e-3)
        assert float(part.edge_counts.float().mean()) == pytest.approx(edges, abs=1e-2)
        assert float(part.targets.mean()) == pytest.approx(mean, abs=1e-4)
        assert float(part.targets.double().std()) == pytest.approx(deviation, abs=1e-4)
    median = train.targets.median()
    assert float((test.targets - median).abs().mean()) == pytest.approx(1.547, abs=1e-3)
    assert int(dataset.batch().x.max()) == 20
    assert dataset.node_categories == (28,)


def test_pcqm_head_counts_and_targets(real_data: Path) -> None:
    dataset = load("pcqm4mv2", real_data, processes=1, show=False, cache=False)
    assert len(dataset) == 1_999
    assert float(dataset.targets.mean()) == pytest.approx(5.162, abs=1e-3)
    assert float(dataset.node_counts.float().mean()) == pytest.approx(14.9, abs=0.05)
    assert (dataset.batch().x.max(dim=0).values < torch.tensor(ATOM_CATEGORIES)).all()
    for index in (0, 7, 1_998):
        atoms = dataset[index].x
        assert atoms.dtype == torch.int64
        assert atoms.shape[1] == 9


def test_qm9_counts(real_data: Path) -> None:
    dataset = load("qm9-20k", real_data)
    assert repr(dataset) == "GraphDataset('qm9-20k', graphs=20000, nodes=361505, edges=373970)"
    assert 4 < float(dataset.targets.mean()) < 10  # eV
