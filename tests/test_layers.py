"""Imports point backwards along the pipeline, lazy ones included."""

import ast
from pathlib import Path

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


def imported_packages(path: Path) -> set[str]:
    """Packages of gape that a file imports, anywhere in it: in functions, for type checkers only, as ``gape.name``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gape":
            found.add(gape._HOME.get(node.attr, f"gape.{node.attr}"))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import in line {node.lineno}"
            names = {alias.name for alias in node.names}
            # `from gape import solve` imports the package where the public name lives.
            found |= {gape._HOME.get(name, f"gape.{name}") for name in names} if node.module == "gape" else set()
            found |= {f"{node.module}.{name}" for name in names} | {str(node.module)}
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            found |= {str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)}
    return {name.split(".")[1] for name in found if name.startswith("gape.")} & RANK.keys()


def test_imports_point_backwards():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        home = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if home not in ("__init__", "__main__"):
            wrong += [
                f"{path.relative_to(ROOT)} imports gape.{name}"
                for name in sorted(imported_packages(path) - {home})
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
