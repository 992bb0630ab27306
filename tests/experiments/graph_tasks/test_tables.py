"""Tables say what the results say, and no more."""

import csv
import io
import json

import numpy as np
import pytest
from scipy import stats

from gape.experiments.graph_tasks.cell import Cell, collect, missing_cells, read_results
from gape.experiments.graph_tasks.protocol import SEEDS
from gape.experiments.graph_tasks.settings import protocol_settings, settings_record
from gape.experiments.report.numbers import best, differ, summarise
from gape.experiments.report.render import render
from gape.experiments.report.table import comparison
from gape.experiments.runtime.measurement import chosen_workloads, measure_runtimes, runtime_table


def result(task="cycles", encoding="rw", seed=41, best=0.5, last=0.4, metric="accuracy", **more):
    return {
        "task": task,
        "encoding": encoding,
        "seed": seed,
        "overrides": {},
        "settings": {},
        "metric": metric,
        "best_validation": {metric: best, f"{metric}_per_batch": best + 1},
        "last_epoch": {metric: last, **({f"{metric}_per_batch": last + 1} if metric != "accuracy" else {})},
        "stopped": "lr",
        "finished": "2025-01-01",
        **more,
    }


def entry(table, row, kind, column=0):
    return next(entries[column] for name, what, entries in table.lines if (name, what) == (row, kind))


def test_mean_and_deviation_are_those_of_the_seeds():
    runs = [result(seed=seed, best=value) for seed, value in ((41, 0.90), (95, 0.92), (22, 0.94), (35, 0.96))]
    table = comparison("graph-performance", runs, tasks=["cycles"])
    # mean 93, sample variance (9 + 1 + 1 + 9) / 3 = 20 / 3
    assert entry(table, "RW", "best validation").text == "93.00 ± 2.58"
    assert entry(table, "RW", "last epoch").text == "40.00 ± 0.00"
    assert entry(table, "RW", "paper").text == "99.95"
    assert entry(table, "RW", "authors' logs, best validation").text == "99.89"


def test_what_was_not_run_is_missing_and_the_paper_is_still_there():
    table = comparison("graph-performance", [])
    assert table.columns == (
        "ZINC ↓",
        "CSL ↑",
        "CYCLES ↑",
        "PATTERN ↑",
        "CLUSTER ↑",
        "PLANAR ↑",
        "CYCLES-V ↑",
        "PCQM4Mv2 ↓",
    )
    assert {e.text for _, kind, entries in table.lines if kind == "best validation" for e in entries} == {"missing"}
    assert entry(table, "GAPE*", "paper").text == "2.863"
    assert entry(table, "SPD+C", "paper", column=7).text == "OOM"
    assert entry(table, "PPRP", "paper").text == "0.198"  # from the paper's table of RW and PPRP
    assert entry(table, "PPRP", "paper", column=1).text == "–"


def test_the_last_epoch_has_the_published_metric_and_best_validation_ours():
    runs = [result(task="zinc", best=0.25, last=0.30, metric="mae")]
    assert summarise(runs, "best_validation").values == (0.25,)
    assert summarise(runs, "last_epoch").values == (1.30,)
    assert str(summarise(runs, "best_validation")) == "0.250 [1]"


def test_bold_is_the_best_and_what_a_t_test_does_not_tell_from_it():
    good, close, bad = [90.0, 91.0, 92.0, 93.0], [89.0, 91.0, 92.0, 92.5], [80.0, 81.0, 82.0, 83.0]
    assert stats.ttest_ind(good, close).pvalue > 0.05 > stats.ttest_ind(good, bad).pvalue
    assert best({"a": good, "b": close, "c": bad}, larger=True) == {"a", "b"}
    assert best({"a": good, "b": close, "c": bad}, larger=False) == {"c"}
    runs = [
        result(encoding=name, seed=seed, best=value / 100)
        for name, values in (("rw", good), ("lape", close), ("gape", bad))
        for seed, value in zip((41, 95, 22, 35), values, strict=True)
    ]
    table = comparison("graph-performance", runs, tasks=["cycles"])
    bold = {row for row, kind, entries in table.lines if kind == "best validation" and entries[0].bold}
    assert bold == {"RW", "LAPE"}
    # One or two seeds decide nothing: they are not bold, nor is what they seem to beat.
    assert best({"a": good, "b": close, "c": [99.0, 98.0]}, larger=True) == set()
    assert best({"a": good, "b": [80.0]}, larger=True) == {"a"}


@pytest.mark.filterwarnings("error")
def test_values_without_spread_and_single_values_are_compared_by_their_means():
    assert differ([0.1] * 3, [0.3] * 3)  # their deviation rounds to 1e-17
    assert not differ([100.0, 100.0], [100.0, 100.0])
    assert differ([100.0, 100.0], [99.0, 99.0])
    assert differ([1.0, 1.0], [0.93, 0.94])
    assert not differ([1.0, 1.0], [0.5, 0.99])
    assert best({"a": [1.0] * 3, "b": [2.0] * 3, "c": [2.0] * 4}, larger=True) == {"b", "c"}
    assert best({}, larger=True) == set()


def test_two_seeds_are_not_among_the_best_for_being_far_apart():
    steady, noisy = [100.0, 100.0], [83.8, 53.1]
    assert not differ(steady, noisy)  # a t-test of two values each finds next to nothing
    assert best({"a": [*steady, 100.0], "b": noisy}, larger=True) == {"a"}


def test_samples_differ_where_scipy_says_so():
    generator = np.random.default_rng(0)
    for n, m in [(2, 2), (4, 2), (4, 4)] * 20:
        one, other = generator.normal(0, 1, n), generator.normal(1.5, 1, m)
        assert differ(one, other) == (stats.ttest_ind(one, other).pvalue < 0.05)


def test_other_settings_are_another_cell():
    plain, other = result(best=0.9), result(best=0.1, overrides={"layers": "2"})
    assert entry(comparison("graph-performance", [plain, other], tasks=["cycles"]), "RW", "best validation").text == (
        "90.00 [1]"
    )
    table = comparison("graph-performance", [plain, other], {"cycles": {"layers": "2"}}, ["cycles"], ["rw"])
    assert entry(table, "RW", "best validation").text == "10.00 [1]"
    assert "CYCLES: layers=2" in table.notes


def test_the_k_study_takes_k_from_the_overrides_and_32_from_the_protocol():
    runs = [
        result(encoding="gape", best=0.8, overrides={"encoding.states": "8"}),
        result(encoding="gape", best=0.7),
    ]
    table = comparison("k-study", runs, tasks=["cycles"])
    assert entry(table, "k = 8", "best validation").text == "80.00 [1]"
    assert entry(table, "k = 32", "best validation").text == "70.00 [1]"
    assert entry(table, "k = 64", "best validation").text == "missing"
    assert entry(table, "k = 8", "paper").text == "79.70"


def test_rw_and_pprp():
    table = comparison("rw-ppr-graph", [result(encoding="pprp", best=1.0)])
    assert table.columns == ("ZINC ↓", "CYCLES ↑")
    assert entry(table, "PPRP", "best validation", column=1).text == "100.00 [1]"
    assert entry(table, "PPRP", "paper", column=1).text == "100.00"


def test_runs_stopped_by_time_are_marked():
    table = comparison("graph-performance", [result(stopped="time")], tasks=["cycles"])
    assert entry(table, "RW", "best validation").text == "50.00 [1]†"
    assert any(note.startswith("†") for note in table.notes)


def test_what_counting_edges_scores_stands_below_the_table():
    runs = [result(task="planar", edge_count_baseline=0.917), result(edge_count_baseline=0.5)]
    notes = comparison("graph-performance", runs, tasks=["planar", "cycles", "csl"]).notes
    assert any(note.endswith("scores 91.70 on PLANAR, 50.00 on CYCLES.") for note in notes)
    assert not any("Counting" in note for note in comparison("graph-performance", runs, tasks=["csl"]).notes)


def test_a_column_is_of_one_data_set_and_says_which():
    few, many = (
        {"data": f"published: {name}.csv", "graphs": counts} for name, counts in (("a", [8, 1, 1]), ("b", [80, 9, 9]))
    )
    runs = [
        result("pcqm4mv2", "none", 41, 0.3, 0.3, "mae", **many),
        result("pcqm4mv2", "rw", 41, 0.2, 0.2, "mae", **many),
        result("pcqm4mv2", "rw", 95, 0.9, 0.9, "mae", **few),
    ]
    table = comparison("graph-performance", runs, tasks=["pcqm4mv2"])
    assert entry(table, "RW", "best validation").text == "0.200 [1]"
    assert (
        "PCQM4Mv2: 80 / 9 / 9 graphs for training, validation and test; published: b.csv (1 results of other data are "
        "not shown)." in table.notes
    )


def test_a_result_of_todays_settings_is_kept_rather_than_a_longer_run_of_earlier_ones(tmp_path):
    today = settings_record(protocol_settings("cycles", "rw"))
    earlier = result(best=0.5, settings={**today, "lr": 0.1})
    now = result(best=0.9, settings=today, stopped="time", max_minutes=1.0)
    for name, runs in (("a", [earlier]), ("b", [now])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cycles.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    assert [run["best_validation"]["accuracy"] for run in read_results(tmp_path / "a", tmp_path / "b")] == [0.9]
    collect(tmp_path / "b", tmp_path / "a")
    assert missing_cells([Cell("cycles", "rw", max_minutes=1.0)], tmp_path / "a") == []


def test_a_damaged_line_is_named_by_its_number(tmp_path):
    (tmp_path / "csl.jsonl").write_text(json.dumps(result()) + "\n<<<<<<< ours\n")
    with pytest.raises(ValueError, match=r"line 2 of .*csl.jsonl is damaged"):
        read_results(tmp_path)


def test_all_formats_hold_the_same_figures():
    runs = [
        result(encoding=name, best=value, seed=seed) for seed in SEEDS for name, value in (("rw", 0.9), ("gape", 0.8))
    ]
    table = comparison("graph-performance", runs, tasks=["cycles"])
    assert "| RW | best validation | **90.00 ± 0.00** |" in render(table, "markdown")
    assert "| RW | **90.00 ± 0.00** (99.95) |" in render(table, "brief")
    assert "| PPRP | missing (100.00) |" in render(table, "brief")
    assert r"RW & best validation & \textbf{90.00 $\pm$ 0.00} \\" in render(table, "latex")
    assert r"GAPE$\ast$ & best validation & missing \\" in render(table, "latex")
    assert "90.00" in render(table, "text")
    lines = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    line = next(line for line in lines if (line["encoding"], line["figure"]) == ("RW", "best validation"))
    assert (line["column"], float(line["mean"]), line["seeds"], line["best"]) == ("CYCLES", 90.0, "4", "True")
    with pytest.raises(ValueError, match="format must be one of text, markdown, brief, latex, csv, got 'pdf'"):
        render(table, "pdf")


def test_unknown_tables_are_refused_with_the_list():
    with pytest.raises(ValueError, match="no table 'performance'; there are graph-performance, rw-ppr-graph"):
        comparison("performance", [])


@pytest.mark.parametrize(
    ("task", "overrides", "data", "variant"),
    [
        ("cycles", {}, "Cycles(train=200, val=1000, test=10000, seed=0)", "matched"),
        ("cycles-v", {}, "CyclesV(variant='clean', train=200, val=1000, test=10000, seed=0)", "matched"),
        ("cycles-v", {"data.variant": "as-released"}, "CyclesV(variant='as-released', train=200)", "matched-released"),
        ("cycles", {}, "Cycles(variant='disjointness', train=200, val=1000, test=10000, seed=0)", None),
    ],
)
def test_results_on_the_first_reconstructions_are_those_of_their_variant(tmp_path, task, overrides, data, variant):
    recorded = settings_record(protocol_settings(task, "rw")) | {
        "data": {"variant": "as-released"} if overrides else {}
    }
    more = {"settings": recorded, "data": f"generated: {data}", "graphs": [200, 1000, 10000]}
    old = result(task=task, overrides=overrides, **more)
    (tmp_path / f"{task}.jsonl").write_text(json.dumps(old) + "\n")
    (read,) = read_results(tmp_path)
    assert read["overrides"] == ({} if variant is None else {"data.variant": variant})
    assert read["settings"]["data"] == ({} if variant is None else {"variant": variant})
    assert variant is None or f"variant='{variant}'" in read["data"]
    cells = [Cell(task, "rw"), Cell(task, "rw", overrides={"data.variant": variant or "matched"})]
    assert missing_cells(cells, tmp_path) == [cells[1] if variant is None else cells[0]]


def test_results_are_collected_one_line_a_run_and_the_newest_counts(tmp_path):
    runs, results = tmp_path / "runs", tmp_path / "results"
    for name, one in (("a", result()), ("b", result(seed=95)), ("c", result(task="csl"))):
        (runs / name).mkdir(parents=True)
        (runs / name / "result.json").write_text(json.dumps(one))
    assert {path.name: lines for path, lines in collect(runs, results).items()} == {"cycles.jsonl": 2, "csl.jsonl": 1}
    (runs / "a" / "result.json").write_text(json.dumps(result(best=0.9, finished="2026-01-01")))
    collect(runs, results)
    assert len(read_results(results)) == 3 == len(read_results(runs, results))
    assert (results / "cycles.jsonl").read_text().count("\n") == 2
    assert {one["best_validation"]["accuracy"] for one in read_results(results)} == {0.9, 0.5}
    (runs / "a" / "result.json").write_text("{")
    with pytest.raises(ValueError, match=r"result\.json is damaged"):
        read_results(runs)


def test_cells_are_missing_without_a_result_or_with_one_that_less_time_ended(tmp_path):
    other = {"encoding.states": "8"}

    def of_gape(seed, overrides=(), **more):
        held = {**settings_record(protocol_settings("cycles", "gape", seed, dict(overrides))), **more.pop("then", {})}
        return result(encoding="gape", seed=seed, overrides=dict(overrides), settings=held, **more)

    lines = [
        of_gape(41, stopped="time", max_minutes=30.0),
        of_gape(95),
        of_gape(22, other),
        of_gape(35, then={"lr": 1}),
    ]
    (tmp_path / "cycles.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = [
        *(Cell("cycles", "gape", 41, max_minutes=minutes) for minutes in (30.0, 60.0, None)),
        Cell("cycles", "gape", 95, max_minutes=60.0),
        Cell("cycles", "gape", 22),
        Cell("cycles", "gape", 22, other),
        Cell("csl", "gape", 41),
        Cell("cycles", "gape", 35),  # what is there is of another learning rate
    ]
    assert missing_cells(asked, tmp_path) == [asked[1], asked[2], asked[4], asked[6], asked[7]]
    assert missing_cells(asked, tmp_path / "nothing") == asked


def test_runtimes_are_measured_beside_the_other_ways_and_kept(tmp_path, monkeypatch):
    from gape.experiments.runtime import measurement

    monkeypatch.setattr(measurement, "SIZES", {**measurement.SIZES, "CYCLES": 6000})
    lines = measure_runtimes(tmp_path, quick=True, workloads=["CYCLES"])
    assert [(line["encoding"], line["k"], line["way"]) for line in lines] == [
        ("gape", 20, "SciPy"),
        ("gape", 32, "SciPy"),
        ("gape-star", 20, "SciPy"),
        ("gape-star-20", 20, "SciPy"),
        ("gape-2star", 20, "SciPy"),
        ("gape-2star-20", 20, "SciPy"),
        ("gape-2star-max", 20, "SciPy"),
        ("rw", 20, "PyG"),
        ("pprp", 20, "NumPy"),
        ("lape", 8, "PyG"),
        ("lape", 20, "NumPy"),
        ("sa", 10, "NumPy"),
        ("spd", None, "NetworkX"),
    ]
    for line in lines:
        assert line["graphs"] == 60
        # Eigenvectors of multiple eigenvalues are any basis, and SciPy goes on where an equation is singular;
        # everything else is what the other way gives.
        assert line["agree"] == line["compared"] or line["encoding"] in ("lape", "sa") or "star" in line["encoding"]
        assert line["agree"] > 0
    assert lines[0]["certificate"].startswith("60 run_sum; residual ≤ ")
    assert "least_squares" in lines[2]["certificate"]
    table = runtime_table(tmp_path)
    mean, least = entry(table, "GAPE, k = 20", "ours", column=1).text.split("; ")
    assert float(least) <= float(mean.split(" ")[0])
    assert "×" in entry(table, "GAPE, k = 20", "SciPy, graph by graph", column=1).text
    assert entry(table, "GAPE, k = 20", "ours", column=0).text == "missing"
    assert entry(table, "GAPE, k = 20", "paper", column=2).text == "769.21"
    assert [kind for title, kind, _ in table.lines if title == "SA, k = 10"] == ["ours", "NumPy, graph by graph"]
    measure_runtimes(tmp_path, quick=True, workloads=["CYCLES"])
    assert (tmp_path / "graph-runtime.jsonl").read_text().count("\n") == len(lines)


def test_runtimes_measured_before_an_interruption_are_kept(tmp_path, monkeypatch):
    from gape.experiments.runtime import measurement

    whole = measurement.timed

    def interrupted(work, comparison, seconds):
        if comparison.encoding == "rw":
            raise KeyboardInterrupt
        return whole(work, comparison, seconds)

    monkeypatch.setattr(measurement, "SIZES", {**measurement.SIZES, "CYCLES": 6000})
    monkeypatch.setattr(measurement, "timed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure_runtimes(tmp_path, quick=True, workloads=["CYCLES"])
    assert entry(runtime_table(tmp_path), "GAPE, k = 20", "ours", column=1).text != "missing"
    assert entry(runtime_table(tmp_path), "RW, k = 20", "ours", column=1).text == "missing"
    with pytest.raises(ValueError, match="not measured on csl; there are zinc, cycles, pattern"):
        chosen_workloads(["zinc", "csl"])


def test_tables_that_the_paper_does_not_have_are_of_cells_with_exactly_their_settings():
    relative = {"encoding.damping": "0.8", "encoding.relative": "true"}
    runs = [
        result(task="cycles-v", encoding="gape", best=0.7),
        result(task="cycles-v", encoding="gape", best=0.9, overrides=relative),
        result(task="directed-cycles", encoding="gape", best=0.8),
        result(task="directed-cycles", encoding="gape", best=0.5, overrides={"data.symmetrized": "true"}),
        result(task="cycles-v", encoding="gape", best=0.6, overrides={"data.variant": "released"}),
        result(encoding="gape-learned-closed", best=1.0),
    ]
    damping = comparison("damping", runs, tasks=["cycles-v"])
    assert entry(damping, "γ = 0.02", "best validation").text == "70.00 [1]"  # the protocol
    assert entry(damping, "γ = 0.1", "best validation").text == "missing"
    assert entry(damping, "γ = 0.8/ρ(A)", "best validation").text == "90.00 [1]"
    assert "paper" not in {kind for _, kind, _ in damping.lines}
    directed = comparison("directed", runs)
    assert [e.text for e in (entry(directed, "GAPE", "best validation", column) for column in (0, 1))] == [
        "80.00 [1]",
        "50.00 [1]",
    ]
    assert entry(comparison("sizes", runs), "GAPE", "best validation", column=1).text == "60.00 [1]"
    assert entry(comparison("learned", runs), "learned, closed", "best validation", column=2).text == "100.00 [1]"
    typed = [
        entry(comparison("learned", runs), "learned, typed closed + RW", "best validation", c).text for c in range(4)
    ]
    assert typed == ["missing", "–", "–", "–"]  # only molecules have types
    hidden = [result(encoding="rw", best=0.9), result(encoding="gape", best=0.8)]
    hidden.append(result(encoding="gape-learned-typed", best=0.99, stopped="time"))
    shown = comparison("learned", hidden)
    assert not any(one.bold for *_, entries in shown.lines for one in entries)  # one seed each
    assert not any("†" in note for note in shown.notes)
    with pytest.raises(ValueError, match="table 'damping' has no task csl; it has zinc, cycles-v"):
        comparison("damping", runs, tasks=["csl"])
    with pytest.raises(ValueError, match="table 'learned' has no encoding gape-clsed; it has none, rw, gape, "):
        comparison("learned", runs, encodings=["gape-clsed"])


def test_the_main_table_takes_rows_that_the_paper_does_not_have():
    runs = [result(encoding="gape-learned-closed", best=0.99), result(encoding="rw", best=1.0)]
    table = comparison("graph-performance", runs, tasks=["cycles"], encodings=["gape-learned-closed", "rw"])
    assert entry(table, "learned, closed", "best validation").text == "99.00 [1]"
    assert entry(table, "RW", "best validation").text == "100.00 [1]"
    with pytest.raises(ValueError, match="there is no encoding 'gape-clsed'"):
        comparison("graph-performance", runs, encodings=["gape-clsed"])
