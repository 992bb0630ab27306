"""Build the wheel, install it alone into an empty environment, and use it there. Run by ``make test-wheel``."""

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Two nodes, one edge each way, one state: P = 0.5 P A + 1 has the solution 2 at both nodes.
USE = """
import importlib.metadata, importlib.util, pathlib, sys
import torch, gape

assert pathlib.Path(gape.__file__).is_relative_to(sys.prefix), gape.__file__
assert gape.__version__ == importlib.metadata.version("gape"), gape.__version__
for optional in ("torch_geometric", "lightning", "typer", "pandas", "matplotlib", "rdkit"):
    assert importlib.util.find_spec(optional) is None, f"{optional} came along"
edge = gape.Graph.from_edges([(0, 1)], undirected=True)
weights = gape.solve(gape.Automaton.katz(0.5), edge).weights
assert weights.shape == (2, 1) and (weights - 2).abs().max() < 1e-6, weights
directed = gape.as_graph(torch.tensor([[0, 1, 2], [1, 2, 0]]))
solution = gape.solve(gape.Automaton.random(states=32, damping=0.02, seed=0), directed)
assert solution.weights.shape == (3, 32) and solution.weights.isfinite().all()
print(f"gape {gape.__version__}, torch {torch.__version__}: katz(0.5) on one edge gives {weights.flatten().tolist()}")
"""


def run(*command: str | Path, cwd: Path, **variables: str) -> None:
    # Nothing of the calling environment may help the new one.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([str(part) for part in command], cwd=cwd, env=clean | variables, check=True)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="gape-wheel-") as folder:
        work = Path(folder)
        print("building the wheel", flush=True)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", work / "dist", ROOT, cwd=work)
        (wheel,) = (work / "dist").glob("*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        assert "gape/py.typed" in names, "py.typed is missing, so the wheel would lose its types"
        for asset in ("explorer/assets/page.html", "explorer/assets/gallery.json", "_internal/assets/style.css"):
            assert f"gape/{asset}" in names, f"{asset} is missing, so the wheel would have no explorer"
        assert not [name for name in names if name.startswith("tests")], "the tests are in the wheel"
        print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1024:.0f} kB", flush=True)
        library = [name for name in names if name.startswith("gape/native/libgape")]
        assert wheel.name.endswith("any.whl") == (not library), "a library goes with a platform, and only with one"
        assert not [name for name in names if name.endswith((".c", ".h"))], "the C sources are in the wheel"

        print("building it without a C compiler", flush=True)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", work / "plain", ROOT, cwd=work, CC="/bin/false")
        (plain,) = (work / "plain").glob("*.whl")
        assert plain.name.endswith("py3-none-any.whl"), plain.name

        print("installing it into an empty environment", flush=True)
        venv.create(work / "venv", with_pip=True)
        python = work / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        pip = (python, "-m", "pip", "--disable-pip-version-check")
        run(*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, cwd=work)
        run(*pip, "check", cwd=work)

        print("using it", flush=True)
        elsewhere = work / "elsewhere"
        elsewhere.mkdir()
        run(python, "-c", USE, cwd=elsewhere)
    print("the wheel works")


if __name__ == "__main__":
    main()
