"""The command line answers at once, and says in one line what is wrong."""

import re
import subprocess
import sys

import pytest
import typer

from gape import __version__, native
from gape.cli import app, main
from gape.experiments.graph_tasks.protocol import TASKS


def answer(capsys, *words):
    """Exit code, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as exit_:
        main(words)
    out, err = capsys.readouterr()
    return exit_.value.code or 0, out, err


def commands(group=None, path=()):
    """All commands, as the words that call them."""
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())


def words_of(text):
    """The words of a help page, free of frames and line breaks."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())


def test_help_imports_nothing_heavy():
    program = (
        "import sys\nfrom gape.cli import main\n"
        "try:\n    main(['--help'])\n"
        "finally:\n"
        "    heavy = {'torch', 'numpy', 'scipy', 'pyarrow', 'networkx', 'torch_geometric'} & set(sys.modules)\n"
        "    print('heavy:', sorted(heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout


def test_help_of_bench_names_every_task(capsys):
    _, out, _ = answer(capsys, "bench", "--help")
    assert set(TASKS) <= set(words_of(out).replace(",", " ").replace(".", " ").split())


def test_help_of_table_names_every_table(capsys):
    from gape.experiments.report.layouts import OTHER_TABLES, table_names

    _, out, _ = answer(capsys, "table", "--help")
    assert {*table_names(), *OTHER_TABLES} <= set(re.split(r"[,;:.]?\s", words_of(out)))


def test_help_of_encode_names_every_file_format(capsys):
    from gape.io.write import ENDINGS

    _, out, _ = answer(capsys, "encode", "--help")
    assert set(ENDINGS) <= set(re.split(r"[,;]?\s", words_of(out)))


def test_a_plain_encode_does_not_import_what_is_for_large_graphs():
    program = "import sys, gape.cli.encode_file\nprint(sorted(m for m in sys.modules if m.startswith('gape.scale')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_help_lists_every_command(capsys):
    for path in [(), ("translate",)]:
        below = {name[len(path)] for name in COMMANDS if name[: len(path)] == path}
        for words in [(*path, "--help"), path]:
            code, out, err = answer(capsys, *words)
            assert (code, err) == (0, "")
            assert below <= set(words_of(out).split()), words


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_and_its_options_to_the_letter(capsys, monkeypatch, path):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 1000)
    code, out, _ = answer(capsys, *path, "--help")
    assert code == 0
    shown = words_of(out)
    assert f"gape {' '.join(path)}" in shown
    for parameter in COMMANDS[path].params:
        # Brackets that Rich would take for markup are escaped in the source.
        assert words_of(parameter.help.replace("\\[", "[")) in shown, parameter.name


HIDDEN = """
import sys
sys.modules.update(dict.fromkeys({hidden!r}))
from gape.cli import main
for words in {calls!r}:
    try:
        main(words)
    except SystemExit as exit_:
        print(exit_.code, file=sys.stderr)
"""


def test_commands_name_the_extra_that_is_not_installed(tmp_path):
    hidden = ["torch_geometric", "lightning", "torchmetrics", "plotly", "matplotlib", "sacrebleu", "sentencepiece"]
    (tmp_path / "text").write_text("a b\n")
    extras = {
        ("figure", "rw-pprp"): "bench",
        ("runtime", "--quick"): "bench",
        ("bench", "zinc"): "bench",
        ("table", "translation", "--results", "."): "bench",
        ("translate", "train", "-o", "run"): "mt",
        ("translate", "score", "text", "text"): "mt",
        ("translate", "run", "run", "text", "-o", "out"): "mt",
        ("translate", "rows", "--steps", "1"): "mt",
    }
    program = HIDDEN.format(hidden=hidden, calls=list(extras))
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert lines[1::2] == ["2"] * len(extras), done.stderr
    for line, extra in zip(lines[::2], extras.values(), strict=True):
        assert re.fullmatch(rf"gape: \w+ is not installed: pip install 'gape\[{extra}\]'", line)
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_the_library_s_commands_work_without_the_experiments(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n2,3\n")
    calls = [
        ("encode", "edges.csv", "-e", "gape", "--undirected", "-o", "pe.csv"),
        ("encodings",),
        ("explore", "karate", "-o", "page.html"),
        ("cache",),
        ("--help",),
        ("bench", "zinc"),
    ]
    program = HIDDEN.format(hidden=["gape.experiments"], calls=calls)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [line for line in done.stderr.splitlines() if line.isdigit()] == ["0"] * 5 + ["2"], done.stderr
    assert "No such command 'bench'" in done.stderr
    assert {"edges.csv", "pe.csv", "page.html"} <= {path.name for path in tmp_path.iterdir()}
    assert "encode" in done.stdout
    assert "translate" not in done.stdout


def test_version_and_bare_command(capsys):
    assert answer(capsys, "--version") == (0, f"gape {__version__} ({native.description()})\n", "")
    code, out, _ = answer(capsys)
    assert code == 0
    assert "Usage" in out


@pytest.mark.parametrize(
    ("words", "page"),
    [
        (("unheard-of",), "gape"),
        (("cache", "--colour"), "gape cache"),
        (("encode",), "gape encode"),
        (("encode", "x.csv", "-e", "gape"), "gape encode"),
        (("runtime", "--states", "many"), "gape runtime"),
        (("runtime", "--data-dir", "nowhere"), "gape runtime"),
        (("translate", "train"), "gape translate train"),
    ],
)
def test_wrong_words_are_one_line_on_stderr_that_names_the_page_to_read(capsys, words, page):
    code, out, err = answer(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("gape: ")
    assert err.endswith(f"; see `{page} --help`\n")
    assert err.count("\n") == 1


def test_encodings_lists_all_with_their_settings(capsys):
    from gape.encodings import names, settings_of

    code, out, _ = answer(capsys, "encodings")
    assert code == 0
    for name in names():
        assert name in out
    code, out, _ = answer(capsys, "encodings", "gape", "rw")
    assert code == 0
    for name in ("gape", "rw"):
        for setting in settings_of(name):
            assert f"--{setting.name.replace('_', '-')}" in out


def test_unknown_encodings_are_refused_with_the_list(capsys):
    code, _, err = answer(capsys, "encodings", "gape*")
    assert code == 2
    assert "'gape*'" in err
    assert "gape-star" in err


def test_cache_is_shown_and_cleared(capsys, tmp_path):
    from gape import Graph
    from gape.encodings import RandomWalk
    from gape.encodings.store import Store

    Store(tmp_path, always=True).encode(Graph.from_edges([(0, 1)]), RandomWalk(length=2))
    _, out, _ = answer(capsys, "cache", "--folder", str(tmp_path))
    assert "1 encoding," in out
    _, out, _ = answer(capsys, "cache", "--folder", str(tmp_path), "--clear")
    assert "removed 1 encoding," in out
    _, out, _ = answer(capsys, "cache", "--folder", str(tmp_path))
    assert "0 encodings, 0 bytes" in out
