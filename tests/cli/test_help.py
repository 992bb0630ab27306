"""The command line answers at once, and says in one line what is wrong."""

import subprocess
import sys
import time

import pytest

from gape import __version__
from gape.cli import main


def answer(capsys, *words):
    """Exit code, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as exit_:
        main(words)
    out, err = capsys.readouterr()
    return exit_.value.code or 0, out, err


def test_help_imports_nothing_heavy_and_answers_within_a_second():
    program = (
        "import sys\nfrom gape.cli import main\n"
        "try:\n    main(['--help'])\n"
        "finally:\n"
        "    heavy = {'torch', 'numpy', 'scipy', 'pyarrow', 'networkx', 'torch_geometric'} & set(sys.modules)\n"
        "    print('heavy:', sorted(heavy))\n"
    )
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - started)
        assert "heavy: []" in done.stdout
        assert "encode" in done.stdout
        if seconds[-1] < 1:
            break
    assert min(seconds) < 1


@pytest.mark.parametrize("command", ["encode", "encodings", "cache", "runtime"])
def test_every_command_explains_itself(capsys, command):
    code, out, _ = answer(capsys, command, "--help")
    assert code == 0
    assert f"gape {command}" in out


def test_version_and_bare_command(capsys):
    assert answer(capsys, "--version") == (0, f"gape {__version__}\n", "")
    code, out, _ = answer(capsys)
    assert code == 0
    assert "Usage" in out


@pytest.mark.parametrize(
    "words", [("unheard-of",), ("cache", "--colour"), ("encode",), ("runtime", "--states", "many")]
)
def test_wrong_words_are_one_line_on_stderr_and_code_2(capsys, words):
    code, out, err = answer(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("gape: ")
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
    from gape.store import Store

    Store(tmp_path, always=True).encode(Graph.from_edges([(0, 1)]), RandomWalk(length=2))
    _, out, _ = answer(capsys, "cache", "--folder", str(tmp_path))
    assert "1 encoding," in out
    _, out, _ = answer(capsys, "cache", "--folder", str(tmp_path), "--clear")
    assert "removed 1 encoding," in out
    _, out, _ = answer(capsys, "cache", "--folder", str(tmp_path))
    assert "0 encodings, 0 bytes" in out
