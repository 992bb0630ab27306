"""``gape bench``, ``gape table`` and ``gape figure`` from the outside."""

import json
from pathlib import Path

import pytest
from rich.text import Text

from gape.cli import main
from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.report.plots import FIGURES, heat_maps


def answer(capsys, *words):
    with pytest.raises(SystemExit) as exit_:
        main(words)
    out, err = capsys.readouterr()
    return exit_.value.code or 0, out, err


def test_bench_trains_side_by_side_reports_collects_and_skips(capsys, tmp_path, tiny):
    tiny |= {"max_epochs": "1"}
    words = ["bench", "cycles", "-e", "none,rw", "--jobs", "2", "--out", str(tmp_path / "runs"), "--collect"]
    words += ["--results", str(tmp_path / "results"), "--report", str(tmp_path / "page.html")]
    for key, text in tiny.items():
        words += ["--set", f"{key}={text}"]
    code, out, err = answer(capsys, *words)
    assert code == 0, err
    lines = (tmp_path / "results" / "cycles.jsonl").read_text().splitlines()
    assert [json.loads(line)["encoding"] for line in lines] == ["none", "rw"]
    assert json.loads(lines[0])["threads"] == 1
    page = (tmp_path / "page.html").read_text()
    assert "plotly.js v" in page
    assert "<iframe" in page
    assert "RandomWalk(" in page
    assert 'src="http' not in page
    assert "99.95" in page
    assert "missing" not in out
    code, out, _ = answer(capsys, *words)
    assert out.count("was finished before") == 2
    elsewhere = [word for word in words if word not in ("--report", str(tmp_path / "page.html"))]
    elsewhere[elsewhere.index(str(tmp_path / "runs"))] = str(tmp_path / "other")
    code, _, err = answer(capsys, *elsewhere, "--missing")
    assert code == 0
    assert "2 of 2 cells have a result in" in err
    assert not (tmp_path / "other").exists()


def test_bench_refuses_what_makes_no_sense(capsys, tmp_path):
    for words, message in (
        (("bench",), "a task is needed"),
        (("bench", "cycle"), "there is no task 'cycle'"),
        (("bench", "csl", "-e", "nope"), "there is no encoding 'nope'; there are none, lape"),
        (("bench", "csl", "--set", "lrr=1"), "there is no setting 'lrr'"),
        (("bench", "csl", "--short"), "--short is for the task cycles alone"),
        (("bench", "csl", "--jobs", "0"), "jobs must be at least 1, got 0"),
        (("bench", "csl", "--missing", "--report", str(tmp_path / "x.html")), "--missing leaves some out"),
        (("bench", "csl", "--max-minutes", "0"), "max-minutes must be above 0, got 0"),
        (("bench", "--queue", str(tmp_path / "none")), "there is no file"),
        (("bench", "--queue", "q", "-e", "rw", "--seeds", "2"), "--encoding and --seeds with --queue q: its lines say"),
        (("table", "--set", "lr=1e-3", "--set", "csl:lr=2e-3"), "lr was set twice, to '1e-3' and to '2e-3'"),
        (("table", "speed"), "there is no table 'speed'"),
        (("table", "--task", "cycle"), "there is no task 'cycle'"),
        (("table", "--plot", str(tmp_path / "x.svg")), "a figure is a .png, .pdf, .html file, got 'x.svg'"),
        (
            ("table", "graph-runtime", "--plot", str(tmp_path / "x.png")),
            "--plot draws tables of graph tasks",
        ),
        (("figure", "speed"), "there is no figure 'speed'"),
        (("figure", "rw-pprp", "-o", str(tmp_path / "x.svg")), "a figure is a .png, .pdf, .html file, got 'x.svg'"),
    ):
        code, _, err = answer(capsys, *words)
        assert code == 2, words
        assert message in err


def test_a_folder_of_other_settings_says_what_to_do(capsys, tmp_path, tiny):
    cell = Cell("cycles", "none", 41, tiny)
    committed = (Path(__file__).parents[3] / "results" / "cycles.jsonl").read_text().splitlines()[0]
    path = cell.folder(tmp_path) / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text(committed)
    words = [word for pair in tiny.items() for word in ("--set", "=".join(pair))]
    code, _, err = answer(capsys, "bench", "cycles", "-e", "none", "--out", str(tmp_path), *words)
    assert code == 2
    assert "remove it, or choose another folder" in err.replace("\n", " ")


@pytest.mark.slow
def test_a_cell_that_fails_says_why_and_does_not_stop_the_others(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("GAPE_DATA", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nothing to download from
    queue = tmp_path / "queue"
    small = "layers=1 hidden=16 heads=2 max_epochs=1 batch_size=45"
    queue.write_text(f"zinc none {small} data.source=file\ncsl none {small}\n")
    code, out, err = answer(capsys, "bench", "--queue", str(queue), "--out", str(tmp_path / "runs"))
    assert code == 2
    assert "1 of 2 cells failed" in err
    assert "zinc12k/zinc12k.npz" in err
    assert "csl none" in out
    assert "test accuracy" in out


def test_tables_are_printed_and_written(capsys, tmp_path):
    folders = ("--runs", str(tmp_path), "--results", str(tmp_path))
    code, out, _ = answer(capsys, "table", "graph-performance", "--task", "cycles,csl", *folders)
    assert code == 0
    assert "79.03" in out
    assert "missing" in out
    path = tmp_path / "table.md"
    assert answer(capsys, "table", "k-study", "--format", "markdown", "-o", str(path), *folders)[0] == 0
    assert "| k = 8 | best validation |" in path.read_text()


def test_a_table_names_the_runs_that_it_does_not_show(capsys, tmp_path):
    committed = Path(__file__).parents[3] / "results" / "csl.jsonl"
    run = next(run for run in map(json.loads, committed.read_text().splitlines()) if not run["overrides"])
    other = {**run, "overrides": {"norm": "layer"}, "settings": {**run["settings"], "norm": "layer"}}
    (tmp_path / "csl.jsonl").write_text(json.dumps(other) + "\n")
    folders = ("--runs", str(tmp_path), "--results", str(tmp_path))
    said = answer(capsys, "table", *folders)[2]
    assert "CSL has only runs with other settings: --set csl:norm=layer" in said
    assert "1 runs with other settings are not shown" in said
    assert answer(capsys, "table", "--set", "csl:norm=layer", *folders)[2] == ""
    assert answer(capsys, "table", "--task", "zinc", *folders)[2] == ""
    (tmp_path / "csl.jsonl").write_text(json.dumps({**run, "settings": {**run["settings"], "lr": 0.5}}) + "\n")
    assert answer(capsys, "table", *folders)[2] == "1 runs of an earlier protocol are not shown\n"


def test_a_table_fits_its_terminal_and_leaves_no_column_out(capsys, tmp_path, monkeypatch):
    for width in (80, 100, 250):
        monkeypatch.setenv("COLUMNS", str(width))
        code, out, _ = answer(capsys, "table", "--runs", str(tmp_path))
        plain = Text.from_ansi(out).plain
        assert code == 0
        assert max(map(len, plain.splitlines())) <= width
        for column in ("ZINC ↓", "CSL ↑", "CLUSTER ↑", "PCQM4Mv2 ↓"):
            assert plain.count(column) == 1


def test_a_table_without_results_says_where_they_come_from(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("graph-performance", "graph-runtime", "translation"):
        code, out, err = answer(capsys, "table", name)
        assert (code, out) == (2, "")
        assert "there is no folder results and no folder runs here" in err
        assert "`gape bench`" in err
        assert "--results" in err


@pytest.mark.parametrize("name", ["rw-pprp", "csl-labels"])
def test_figures_are_drawn_in_three_formats(capsys, tmp_path, name):
    code, out, _ = answer(capsys, "figure", name, "--folder", str(tmp_path))
    assert code == 0
    assert len(out.splitlines()) == 3
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    page = (tmp_path / f"{name}.html").read_text()
    assert "<svg" in page
    assert 'src="http' not in page


def test_a_table_is_drawn_and_printed(capsys, tmp_path):
    results = str(Path(__file__).parents[3] / "results")
    words = ("table", "--task", "csl,zinc", "--results", results, "--runs", results)
    code, out, _ = answer(capsys, *words, "--plot", str(tmp_path / "table.png"))
    assert code == 0
    assert "GAPE**max" in out
    assert (tmp_path / "table.png").read_bytes().startswith(b"\x89PNG")
    page = tmp_path / "table.html"
    assert answer(capsys, *words, "--plot", str(page))[0] == 0
    assert "the paper prints 0.10 for 10 %" in page.read_text()


def test_cells_that_would_run_are_listed_and_none_is_run(capsys, tmp_path):
    results = Path(__file__).parents[3] / "results"
    queue = tmp_path / "a.queue"
    queue.write_text("cycles rw seed=41 minutes=60 data.variant=matched\ncsl gape seed=95 minutes=30 lr=0.5\n")
    words = ("bench", "--queue", str(queue), "--out", str(tmp_path / "runs"), "--list")
    code, out, _ = answer(capsys, *words)
    assert (code, out.splitlines()) == (
        0,
        ["cycles rw data.variant=matched seed 41, at most 60 min", "csl gape lr=0.5 seed 95, at most 30 min"],
    )
    code, out, err = answer(capsys, *words, "--missing", "--results", str(results))
    assert (code, out.splitlines()) == (0, ["csl gape lr=0.5 seed 95, at most 30 min"])
    assert "1 of 2 cells have a result" in err
    assert not (tmp_path / "runs").exists()


def test_a_folder_that_was_named_and_is_not_there_is_an_error(capsys, tmp_path):
    none = str(tmp_path / "none")
    for words in (("table", "--results", none), ("bench", "csl", "--missing", "--results", none)):
        code, _, err = answer(capsys, *words)
        assert code == 2
        assert f"there is no folder {none}" in err


def test_runs_that_stand_in_for_collected_results_are_counted(capsys, tmp_path):
    results = Path(__file__).parents[3] / "results"
    record = json.loads((results / "directed-cycles.jsonl").read_text().splitlines()[0])
    record["best_validation"]["accuracy"], record["finished"] = 0.77, "2099"
    path = tmp_path / "runs" / "cell" / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record))
    words = ("table", "directed", "--results", str(results), "--runs")
    assert "1 results of" in answer(capsys, *words, str(tmp_path / "runs"))[2]
    assert "replace older ones" not in answer(capsys, *words, str(results))[2]


def test_a_column_whose_runs_all_have_other_settings_says_how_to_see_them(capsys):
    results = str(Path(__file__).parents[3] / "results")
    _, _, err = answer(capsys, "table", "--task", "csl,pattern", "--results", results, "--runs", results)
    assert "PATTERN has only runs with other settings: --set pattern:train_fraction=0.1" in err
    assert "CSL has only" not in err


def test_nothing_is_drawn_where_the_command_fails(capsys, tmp_path):
    picture, empty = tmp_path / "x.png", tmp_path / "empty"
    empty.mkdir()
    for words, message in (
        (("--format", "html"), "format must be one of"),
        (("-o", str(picture)), f"--plot and --output both name {picture}; name two files"),
        (("learned", "--results", str(empty), "--runs", str(empty)), "the table learned has no figure to draw"),
    ):
        code, _, err = answer(capsys, "table", *words, "--plot", str(picture))
        assert code == 2, words
        assert message in err
        assert not picture.exists()
    code, _, err = answer(capsys, "table", "--plot", str(tmp_path / "none" / "x.png"))
    assert code == 2
    assert "there is no folder" in err


@pytest.mark.parametrize("name", ["rw-pprp", "csl-labels"])
def test_colour_bars_of_figures_stand_beside_their_panels(name):
    figure = heat_maps(*FIGURES[name]())
    figure.canvas.draw()
    first, first_bar, second, second_bar = (axes.get_position() for axes in figure.axes)
    assert first.x1 < first_bar.x0 < first_bar.x1 < second.x0
    assert second.x1 < second_bar.x0 < second_bar.x1 < 1
