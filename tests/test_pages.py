"""The pages show what the results say, and their code runs."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from pyarrow import parquet
from torch_geometric.data import Batch
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader

import gape
from gape.cli import main

ROOT = Path(__file__).resolve().parent.parent
if not (ROOT / "docs" / "tables.py").exists():
    pytest.skip("the pages are not in the source archive", allow_module_level=True)
pages = runpy.run_path(str(ROOT / "docs" / "tables.py"))


@pytest.mark.parametrize("page", pages["PAGES"], ids=lambda page: page.name)
def test_committed_tables_are_what_the_committed_results_give(page):
    text = page.read_text(encoding="utf-8")
    assert pages["MARKED"].search(text)
    assert pages["filled"](text) == text, f"{page.name} is older than results/: run `make results`"


def test_filling_keeps_what_stands_around_the_tables(tmp_path):
    page = "before\n<!-- gape table damping --task zinc -->\nout of date\n<!-- end of table -->\nafter\n"
    new = pages["filled"](page, tmp_path)
    assert new.startswith("before\n<!-- gape table damping --task zinc -->\n**GAPE by damping")
    assert new.endswith("\n<!-- end of table -->\nafter\n")
    assert "out of date" not in new
    assert new.count("missing") == 8
    assert pages["filled"](new, tmp_path) == new


def test_a_note_stands_under_the_first_table_that_has_it(tmp_path):
    page = "<!-- gape table damping -->\n<!-- end of table -->\n" * 2
    new = pages["filled"](page, tmp_path)
    assert new.count("[n]: number of seeds") == 1
    assert new.count("| γ = 0.1 | best validation | missing | missing |") == 2
    assert pages["filled"](new, tmp_path) == new


def test_a_table_that_cannot_be_made_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="gape table speed: there is no table 'speed'"):
        pages["filled"]("<!-- gape table speed -->\n<!-- end of table -->\n", tmp_path)
    twice = "<!-- gape table damping -->\n<!-- gape table k-study -->\n<!-- end of table -->\n"
    with pytest.raises(ValueError, match="<!-- gape table damping --> has no <!-- end of table --> after it"):
        pages["filled"](twice, tmp_path)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < 700


def test_images_of_the_pages_are_there():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} refers to {target}"


# Pages whose code runs from top to bottom as it stands.
RUNNING = [
    "index",
    "start",
    "pyg",
    "networkx",
    "own-model",
    "relational",
    "mini-batches",
    "certificates",
    "theory",
    "extending",
]


def blocks(page, language):
    """Return the code blocks of a page in one language."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", RUNNING)
def test_code_of_a_page_runs(page):
    script = "\n".join(blocks(page, "python"))
    assert "gape" in script
    exec(compile(script, f"{page}.md", "exec"), {"__name__": page})


@pytest.mark.parametrize("page", ["learnable", "encodings", "explorer", "ablations"])
def test_code_of_a_page_runs_in_a_model(page, tmp_path, monkeypatch):
    """These pages show lines of a user's program; here are the names that it has."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    dataset = FakeDataset(num_graphs=8, avg_num_nodes=10)
    batch = Batch.from_data_list(list(dataset))
    program = {
        "gape": gape,
        "dataset": dataset,
        "graphs": list(dataset),
        "graph": dataset[0],
        "DataLoader": DataLoader,
        "training_loader": DataLoader(dataset, 4),
        "edge_index": batch.edge_index,
        "batch": batch.batch,
        "x": dataset[0].x if page == "explorer" else torch.randint(28, (batch.num_nodes,)),
        "embedding": torch.nn.Embedding(28, 80),
        "random_walks": gape.encode(batch, "rw"),
        "pe_of_training_nodes": gape.encode(batch, "rw", length=20),
        "pe": gape.encode(dataset[0], "rw", length=20),
        "linear": torch.nn.Linear(20, 80),
    }
    names = {}
    for block in blocks(page, "python"):
        names |= program  # what the block before has changed
        exec(compile(block, f"{page}.md", "exec"), names)


def commands(page, first="gape encode"):
    """Return the commands of a page as lists of words, without comments."""
    lines = "\n".join(blocks(page, "")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith(first)]


def run(words):
    with pytest.raises(SystemExit) as exit_:
        main(words)
    assert not exit_.value.code, words


def test_code_of_the_page_on_one_large_graph_runs(tmp_path, monkeypatch):
    """On a small graph. ``torchrun`` is left out: tests/scale/test_ranks.py starts several processes."""
    monkeypatch.chdir(tmp_path)
    edges = np.random.default_rng(0).integers(0, 200, (1000, 2))
    np.savetxt("web.txt", np.concatenate([edges, [[17, 4096], [4096, 17]]]), fmt="%d", delimiter="\t")
    found = commands("large-graphs")
    assert len(found) == 4
    for words in found:
        run([word.replace("/scratch/", f"{tmp_path}/disk-") for word in words])
    assert np.load("ppr.npy").shape == (len(np.load("pe.npy")), 2)
    assert np.load("rw.npy").shape == np.load("rw.error.npy").shape == (len(np.load("pe.npy")), 16)
    (script,) = blocks("large-graphs", "python")
    exec(compile(script.replace("/scratch/", f"{tmp_path}/python-"), "large-graphs.md", "exec"), {})


@pytest.fixture
def molecules(tmp_path, monkeypatch):
    """The folder that docs/scale.md encodes, and what the first of its scripts writes, in this process."""
    monkeypatch.chdir(tmp_path)
    Path("molecules").mkdir()
    Path("molecules", "some.csv").write_text("smiles\nCCO\nc1ccccc1\nCC(=O)O\n")
    names = {"__name__": "__main__"}
    script = blocks("scale", "python")[0].replace("workers=2", "workers=0")
    exec(compile(script, "scale.md", "exec"), names)
    return names


def rows_in(folder):
    return list(parquet.read_table(next(Path(folder).glob("*.parquet"))).to_pydict().values())


def test_code_of_the_page_on_scale_runs(molecules):
    """Left out are torchrun, DDP, SLURM and schedulers, which need processes and machines: see tests/scale."""
    (local,) = (words for words in commands("scale") if "--workers" in words)
    run([*local, "--workers", "0", "-o", "command/"])
    assert rows_in("command") == rows_in("encodings")


def test_code_of_the_page_on_scale_runs_on_dask(molecules):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: gape[scale]")
    with distributed.LocalCluster(1, processes=False, dashboard_address=None, protocol="tcp://") as cluster:
        script = blocks("scale", "python")[1].replace("tcp://127.0.0.1:8786", cluster.scheduler_address)
        exec(compile(script.replace("encodings/", "dask/"), "scale.md", "exec"), molecules)
    assert rows_in("dask") == rows_in("encodings")


def test_shell_commands_of_the_start_page_run(tmp_path):
    script = "\n".join(blocks("start", "sh"))
    assert "gape encode" in script
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GAPE_CACHE": str(tmp_path / "cache")}
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert (tmp_path / "pe.csv").read_text().startswith('node,gape_0,gape_1,gape_2,gape_3\n"ann",')
    assert (tmp_path / "karate.html").exists()


def test_every_page_is_in_the_table_of_contents():
    listed = set()
    for page in ("index", "api"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        for toctree in re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL):
            listed |= {line for line in toctree.splitlines() if line and not line.startswith(":")}
    pages = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in (ROOT / "docs").glob("**/*.md")}
    assert pages - listed == {"index"}, "add new pages to docs/index.md"
    assert listed - pages == {"gallery_built/index"}


def test_links_that_lead_nowhere_are_found(tmp_path):
    broken = runpy.run_path(str(ROOT / "docs" / "links.py"))["broken"]
    (tmp_path / "other.html").write_text('<p id="here">x</p>')
    good = '<a id="top" href="other.html#here">1</a> <a href="#top">2</a> <a href="https://example.org/x">3</a>'
    (tmp_path / "index.html").write_text(good)
    assert list(broken(tmp_path)) == []
    (tmp_path / "index.html").write_text(good + '<a href="other.html#there">4</a> <img src="none.png">')
    assert list(broken(tmp_path)) == [
        "index.html: other.html#there has no anchor 'there'",
        "index.html: there is no none.png",
    ]


def test_the_proofs_of_the_theory_page_name_tests_that_exist():
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(?:[\w/]+\.py::)?(test_\w+)`", text))
    assert len(names) > 10
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert names <= defined, f"no such test: {sorted(names - defined)}"
