"""``gape explore`` writes one page, and lists its examples."""

import json
import re
import subprocess
import sys

import pytest
import typer

from gape.cli import app, main
from gape.explorer import GALLERY, explore


def run(*words):
    with pytest.raises(SystemExit) as exit_:
        main(words)
    return exit_.value.code or 0


def test_a_file_becomes_a_page_beside_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "friends.csv").write_text("source,target\nann,bob\nbob,cid\ncid,ann\n")
    assert run("explore", "friends.csv", "--undirected", "-e", "rw") == 0
    assert "friends.html: 0." in capsys.readouterr().out
    text = (tmp_path / "friends.html").read_text(encoding="utf-8")
    assert '"ann"' in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["friends.csv", "friends.html"]


def shown_in(path):
    """The description that a page holds."""
    return json.loads(re.search(r'id="content">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)[1])


def test_files_are_read_as_by_encode(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = typer.main.get_command(app).commands
    options = {name: {p.name: (p.opts, p.help) for p in commands[name].params} for name in ("encode", "explore")}
    reading = [
        "undirected",
        "unweighted",
        "no_header",
        *(f"{x}_column" for x in ("source", "target", "weight", "graph")),
    ]
    assert [options["explore"][name] for name in reading] == [options["encode"][name] for name in reading]
    (tmp_path / "trips.csv").write_text("km,to_city,from_city,day\n5,b,a,mon\n7,c,b,mon\n9,a,c,tue\n")
    words = ["--source", "from_city", "--target", "to_city", "--weight", "km", "--graph", "day"]
    assert run("explore", "trips.csv", *words) == 0
    found = shown_in(tmp_path / "trips.html")
    assert (found["title"], found["weighted"], found["names"]) == ("trips.csv", True, ["a", "b", "c", "c", "a"])
    assert [graph["name"] for graph in found["graphs"]] == ["mon", "tue"]
    assert run("explore", "trips.csv", *words, "--unweighted", "--undirected", "--only", "tue", "-o", "one.html") == 0
    found = shown_in(tmp_path / "one.html")
    assert (found["weighted"], found["directed"], found["nodes"]) == (False, False, 2)
    (tmp_path / "bare.csv").write_text("x,y\ny,z\n")
    assert run("explore", "bare.csv", "--no-header") == 0
    assert shown_in(tmp_path / "bare.html")["edges"] == 2


def test_a_graph_may_come_from_standard_input(tmp_path):
    command = [sys.executable, "-m", "gape", "explore", "-", "--undirected"]
    subprocess.run(command, input="source,target\nx,y\ny,z\n", text=True, check=True, cwd=tmp_path)
    assert shown_in(tmp_path / "graph.html")["names"] == ["x", "y", "z"]


def test_a_page_may_go_to_standard_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("explore", "cycle", "-o", "-") == 0
    assert capsys.readouterr().out == explore("cycle").html
    assert not list(tmp_path.iterdir())


def test_the_list_names_every_example(capsys):
    assert run("explore", "--list") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(GALLERY)


def test_errors_name_the_input(tmp_path, capsys):
    assert run("explore") == 2
    assert "expected a file or an example, one of karate, path" in capsys.readouterr().err
    assert run("explore", "karate", "-o", str(tmp_path / "no" / "page.html")) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert run("explore", "karate", "--no-header", "-o", str(tmp_path / "page.html")) == 2
    assert "are for files, got the example 'karate'" in capsys.readouterr().err
