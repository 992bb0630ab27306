"""Every example runs as it stands."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
# What each prints when it does what it is there to show.
SHOWN = {
    "networkx_three_lines.py": "torch.Size([34, 32])",
    "certificates.py": "{'RUN_SUM': 2}",
    "pyg_dataset.py": ", random_walk=[",
    "pyg_gps_model.py": "accuracy 1.00",
    "pyg_zinc_gps.py": "with GAPE: test MAE ",
    "pyg_learnable.py": "transition_by='node': accuracy 1.00",
    "pyg_large_graph.py": "whole graph: (20000, 16)",
    "relational_tables.py": "with relations: 0.9",
    "loaders.py": "RandomNodeLoader: 8 mini-batches with the rows of the whole graph",
    "rrwp.py": "(10, 10, 5)",
    "store.py": "found: (3200, 64)",
    "translate_own_text.py": "positions matter: True",
}


def test_no_example_is_left_out():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == {*SHOWN, "shell.sh"}


@pytest.mark.parametrize("path", sorted(filter(Path.is_file, EXAMPLES.iterdir())), ids=lambda path: path.name)
def test_every_example_says_at_its_top_what_it_needs(path):
    top = path.read_text().split("import ")[0]
    assert re.search(r"[Nn]eeds? .*pip install 'gape\[\w+\]'", top)


@pytest.mark.parametrize("loader", ["NeighborLoader", "ClusterLoader"])
def test_loaders_that_need_compiled_packages_slice_the_rows_of_the_whole_graph(loader, capsys):
    torch_sparse = pytest.importorskip(
        "torch_sparse", reason="needs torch-sparse; for ClusterLoader built WITH_METIS=1"
    )
    assert torch_sparse
    runpy.run_path(str(EXAMPLES / "loaders.py"), run_name="__main__")
    assert re.search(rf"{loader}: \d+ mini-batches with the rows of the whole graph", capsys.readouterr().out)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", list(SHOWN))
def test_example_runs(name, capsys, monkeypatch, request):
    if name == "pyg_zinc_gps.py":
        request.getfixturevalue("real_data")
        monkeypatch.setattr(sys, "argv", [name, "--graphs", "128", "--epochs", "1"])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert SHOWN[name] in capsys.readouterr().out


def test_shell_example_runs(tmp_path):
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GAPE_CACHE": str(tmp_path / "cache"),
    }
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        ["sh", str(EXAMPLES / "shell.sh")], cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "graph,node,gape_0,gape_1,gape_2,gape_3" in done.stdout
    assert "molecules.parquet: rw, 2 graphs, 9 nodes" in done.stdout
    assert sorted(path.name for path in work.iterdir()) == [
        "friends.csv",
        "molecules.csv",
        "molecules.parquet",
        "pe.csv",
    ]
