"""Imports point backwards along the pipeline, lazy ones included."""

import ast
from importlib.util import resolve_name
from pathlib import Path

import pytest

import gape

ROOT = Path(gape.__file__).parent
#: Each package may import itself and those before it. Packages on one line do not import each other.
LAYERS = [
    {"_internal"},
    {"native"},
    {"linalg"},
    {"graph"},
    {"automaton"},
    {"solvers"},
    {"encodings"},
    {"io", "nn", "pyg"},
    {"data"},
    {"experiments", "explorer", "scale"},
    {"cli"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def imported_packages(source: str, package: str = "gape") -> set[str]:
    """Packages of gape that a file of ``package`` imports, anywhere in it: in functions, for type checkers only, as
    attributes of ``gape`` under any name, and by functions that take the name as a text."""
    tree = ast.parse(source)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.asname or alias.name: alias.name for node in statements for alias in node.names}
    roots = {name for name, origin in names.items() if origin == "gape"} | {"gape"}
    importers = {name for name, origin in names.items() if origin == "import_module"} | {"import_module", "__import__"}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import in line {node.lineno}"
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in roots:
            found.add(f"gape.{node.attr}")
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in importers:
            texts = [str(value.value) for value in ast.walk(node) if isinstance(value, ast.Constant)]
            anchor = next((text for text in texts if text.partition(".")[0] == "gape"), package)
            found |= {resolve_name(text, anchor) if text.startswith(".") else text for text in texts}
            found |= {f"gape.{text}" for text in texts} if "gape" in texts else set()
    # `from gape import solve` imports the package where the public name lives.
    inside = {name.split(".")[1] for name in found if name.startswith("gape.")}
    return {gape._HOME.get(name, f"gape.{name}").split(".")[1] for name in inside} & RANK.keys()


@pytest.mark.parametrize(
    "source",
    [
        "import gape.cli",
        "import gape.cli.app as shell",
        "import gape\ngape.cli",
        "import gape as g\ng.cli.main()",
        "from gape import cli",
        "from gape.cli import main",
        "def late():\n    from gape.cli.app import app",
        "from importlib import import_module\nimport_module('gape.cli')",
        "from importlib import import_module as load\nload('gape.cli.app')",
        "import importlib as lib\nlib.import_module(name='gape.cli')",
        "import importlib\nimportlib.import_module('.cli', 'gape')",
        "import importlib\nimportlib.import_module('..cli', package='gape.graph')",
        "import importlib\nimportlib.import_module('..cli', __package__)",
        "__import__('gape.cli')",
        "__import__('gape', fromlist=['cli']).cli",
    ],
)
def test_every_way_of_importing_is_seen(source):
    assert "cli" in imported_packages(source, "gape.graph")
    assert imported_packages(source.replace("gape", "other"), "other.graph") == set()


def test_public_names_are_imports_of_their_packages():
    assert imported_packages("from gape import solve") == {"solvers"}
    assert imported_packages("import gape as g\ng.solve") == {"solvers"}


def test_imports_point_backwards():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        home = path.relative_to(ROOT).parts[0].removesuffix(".py")
        package = ".".join(("gape", *path.relative_to(ROOT).parts[:-1]))
        if home not in ("__init__", "__main__"):
            wrong += [
                f"{path.relative_to(ROOT)} imports gape.{name}"
                for name in sorted(imported_packages(path.read_text("utf-8"), package) - {home})
                if RANK[name] >= RANK[home]
            ]
    assert not wrong


def test_public_names_come_from_the_library_and_not_from_experiments():
    homes = {name: home.split(".")[1] for name, home in gape._HOME.items()}
    assert homes.keys() | set(gape._MODULES) >= set(gape.__all__)
    assert set(homes.values()) | set(gape._MODULES) <= RANK.keys()
    assert not {"experiments", "scale", "cli"} & set(homes.values())
    # Type checkers see each name in the package from which it is imported.
    nodes = ast.walk(ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8")))
    named = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module.startswith("gape.")]
    assert {alias.name: node.module.split(".")[1] for node in named for alias in node.names} == homes


def test_every_package_has_a_layer_and_the_root_holds_only_the_automaton():
    packages = {path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert packages | {"automaton"} == RANK.keys()
    assert {path.stem for path in ROOT.glob("*.py")} == {"__init__", "__main__", "automaton"}
