"""``gape explore`` writes one page, and lists its examples."""

import pytest

from gape.cli import main
from gape.explorer import GALLERY


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


def test_the_list_names_every_example(capsys):
    assert run("explore", "--list") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(GALLERY)


def test_errors_name_the_input(tmp_path, capsys):
    assert run("explore") == 2
    assert "expected a file or an example, one of karate, path" in capsys.readouterr().err
    assert run("explore", "karate", "-o", str(tmp_path / "no" / "page.html")) == 2
    assert "there is no folder" in capsys.readouterr().err
