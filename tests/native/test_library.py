"""The compiled library: found where it was built, refused where it is old, and never needed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import gape
from gape import native

WORK = """
import gape, gape.native
print(gape.native.description())
print(gape.encode(gape.Graph.from_edges([(0, 1), (1, 2)]), "gape", states=2).shape)
"""


def output(code: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_everything_works_without_the_library():
    off = output(WORK, GAPE_NATIVE="0")
    assert off == "no compiled kernels: GAPE_NATIVE=0\ntorch.Size([3, 2])\n"


@pytest.mark.skipif(native.library() is None, reason=native.description())
def test_kernels_for_plain_processors_can_be_asked_for():
    assert output(WORK, GAPE_NATIVE="baseline") == "compiled kernels: baseline\ntorch.Size([3, 2])\n"


def test_a_wrong_path_is_named():
    done = subprocess.run(
        [sys.executable, "-c", WORK], env={"GAPE_NATIVE": "/no/such.so"}, capture_output=True, text=True, check=False
    )
    assert "GAPE_NATIVE=/no/such.so: no such file" in done.stderr


def test_a_library_that_is_not_a_build_of_the_kernels_is_named():
    foreign = torch._C.__file__
    environment = {"GAPE_NATIVE": foreign, "PYTHONPATH": str(Path(gape.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", WORK], env=environment, capture_output=True, text=True, check=False)
    assert f"ImportError: GAPE_NATIVE={foreign}: {foreign} is a library, but not a build of the sources" in done.stderr
    assert "unset GAPE_NATIVE" in done.stderr


@pytest.mark.skipif(native.library() is None, reason=native.description())
def test_a_build_of_other_sources_is_refused(tmp_path: Path):
    package = tmp_path / "gape"
    shutil.copytree(Path(gape.__file__).parent, package, ignore=shutil.ignore_patterns("CMakeFiles", "__pycache__"))
    assert output("import gape.native as n; print(n.description())", PYTHONPATH=str(tmp_path)).startswith("compiled")
    with (package / "native" / "library.c").open("a", encoding="utf-8") as file:
        file.write("/* changed */\n")
    refused = output("import gape.native as n; print(n.description())", PYTHONPATH=str(tmp_path))
    assert refused == "no compiled kernels: built from other sources than these; install gape again\n"


def test_the_configuration_names_the_kernels(capsys: pytest.CaptureFixture[str]):
    gape.show_config()
    assert native.description() in capsys.readouterr().out
