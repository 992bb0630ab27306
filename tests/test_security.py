"""Files are data, and nothing calls home: promises of SECURITY.md."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src/gape"
CALLS = [
    (path, node)
    for path in sorted(SOURCE.rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.Call)
]


def named(*names):
    return [(path, node) for path, node in CALLS if ast.unparse(node.func) in names]


def keyword(node, name):
    found = [each.value for each in node.keywords if each.arg == name]
    return ast.literal_eval(found[0]) if found else None


def test_pytorch_files_are_read_without_unpickling():
    loads = named("torch.load")
    assert loads
    for path, node in loads:
        assert keyword(node, "weights_only") is True, f"{path}:{node.lineno}"


def test_numpy_files_are_read_without_unpickling():
    loads = named("np.load", "numpy.load")
    assert loads
    for path, node in loads:
        assert not keyword(node, "allow_pickle"), f"{path}:{node.lineno}"


@pytest.mark.parametrize("call", ["pickle.load", "pickle.loads", "marshal.loads", "eval", "exec", "os.system"])
def test_nothing_runs_what_a_file_says(call):
    assert not [f"{path}:{node.lineno}" for path, node in named(call)]


def test_importing_and_encoding_open_no_connection():
    program = """
import socket
def refuse(*args, **kwargs):
    raise AssertionError(f"connects to {args[1:]}")
socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = refuse
import gape
graph = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
for name in ("gape", "rw", "lape", "spd"):
    gape.encode(graph, name)
"""
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=300)
