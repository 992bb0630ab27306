"""The kernels on other processors: compiled without a warning for ARM, and the same numbers under an emulator."""

import math
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FLAGS = ["-std=c99", "-O3", "-Wall", "-Wextra", "-Werror", "-fno-math-errno", "-fopenmp-simd", "-static"]
ARM = shutil.which("aarch64-linux-gnu-gcc")
EMULATOR = shutil.which("qemu-aarch64-static")


def numbers(compiler: str, folder: Path, *runner: str) -> list[tuple[str, list[float]]]:
    """Compile the kernels, run them on three graphs, and return what they print."""
    sources, program = Path(__file__).parents[2] / "src" / "gape" / "native", folder / Path(compiler).name
    command = [compiler, *FLAGS, f"-I{sources}", str(HERE / "portable.c"), "-o", str(program), "-lm"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    done = subprocess.run([*runner, str(program)], check=True, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(name, list(map(float, values))) for name, *values in lines]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    return numbers(compiler, tmp_path_factory.mktemp("here"))


def test_kernels_give_known_numbers(here):
    found = dict(here)
    assert found["scan"] == [0, 14, 1, 1, 22, 1, 1, 154, 1, 1]
    radii = 2.0, 2.0 * math.cos(math.pi / 6), 11.0
    assert found["radius"] == pytest.approx(radii, rel=1e-12)
    # On regular graphs every node has the weight α / (1 - μ degree).
    alpha, mu = [1.0 + q for q in range(6)], [0.01 * (q + 1) * (-1) ** q for q in range(6)]
    expected = [a / (1 - 11 * m) for a, m in zip(alpha, mu, strict=True)]
    assert found["series"][-6:] == pytest.approx(expected, rel=1e-5)
    plain, relative = (values for name, values in here if name == "krylov")
    assert plain[-6:] == pytest.approx(expected, rel=1e-9)
    assert found["arnoldi"][-6:] == pytest.approx(expected, rel=1e-9)
    assert found["arnoldi"] == pytest.approx(plain, rel=1e-9)
    # Row v of the complete graph without loops: the sum of all entries less its own.
    one, two = (values for name, values in here if name == "pull")
    assert one == [78 - (1 + v) for v in range(12)]
    assert two == [sum(range(1 + j, 25, 2)) - (1 + 2 * v + j) for v in range(12) for j in range(2)]
    # Back on a ring of 7, at the end of a path, and on the complete graph: (1 + 11 (-1/11)^t) / 12.
    assert found["returns"][:5] == pytest.approx([0, 1 / 2, 0, 3 / 8, 0], rel=1e-14)
    assert found["returns"][35:40] == pytest.approx([0, 1 / 2, 0, 3 / 8, 0], rel=1e-14)
    assert found["returns"][-5:] == pytest.approx([(1 + 11 * (-1 / 11) ** t) / 12 for t in range(1, 6)], abs=1e-15)
    assert relative[-6:] == pytest.approx([a / (1 - m) for a, m in zip(alpha, mu, strict=True)], rel=1e-9)


@pytest.mark.skipif(ARM is None or EMULATOR is None, reason="needs gcc-aarch64-linux-gnu and qemu-user-static")
def test_arm_gives_the_same_numbers(here, tmp_path):
    for (name, expected), (same, found) in zip(here, numbers(ARM, tmp_path, EMULATOR), strict=True):
        assert name == same
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-13)
