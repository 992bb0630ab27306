"""``import gape`` needs torch, numpy, scipy, filelock and threadpoolctl, and brings nothing else."""

import json
import subprocess
import sys
from functools import cache

import pytest

OPTIONAL = [
    "torch_geometric",
    "networkx",
    "pandas",
    "matplotlib",
    "lightning",
    "typer",
    "rich",
    "pyarrow",
    "rdkit",
    "plotly",
    "torchmetrics",
    "sacrebleu",
    "sentencepiece",
]

WORK = """
machine = gape.Automaton.random(states=3, damping=0.1, labels=4, seed=0)
from gape.graph.labels import RandomLabels
graph = gape.as_graph([np.array([[0, 1, 2], [1, 2, 0]]), scipy.sparse.csr_array(np.eye(2))])
assert gape.solve(machine, graph.with_labels(RandomLabels(4))).weights.shape == (5, 3)
"""


@cache
def modules_after(code: str) -> set[str]:
    program = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    ["import gape", f"from gape import *\nimport gape, scipy.sparse, numpy as np\n{WORK}"],
    ids=["import", "use"],
)
def test_gape_works_without_any_optional_package(code):
    # What torch and SciPy bring along where they find it is not ours.
    theirs = modules_after("import torch, scipy.io, scipy.linalg, scipy.sparse.linalg, scipy.sparse.csgraph")
    assert sorted(modules_after(code) & set(OPTIONAL) - theirs) == []


def test_gape_works_where_no_optional_package_is_installed():
    # None in sys.modules makes an import fail as if the package were not there.
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({OPTIONAL!r}))"
    assert "gape.solvers" in modules_after(f"{hidden}\nimport gape, scipy.sparse, numpy as np\n{WORK}")


def test_every_public_name_is_there():
    import gape

    for name in gape.__all__:
        value = getattr(gape, name)
        assert getattr(value, "__module__", value.__name__).startswith("gape")
    assert set(gape.__all__) <= set(dir(gape))
    for name in dir(gape):
        assert getattr(gape, name) is not None
        assert not name.startswith("_") or name == "__version__"
    assert not {"Any", "TYPE_CHECKING", "import_module"} & set(dir(gape))
    with pytest.raises(AttributeError, match="'gape' has no attribute 'solver'"):
        gape.solver  # noqa: B018
