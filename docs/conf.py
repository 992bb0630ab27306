"""The documentation: make docs. Builds offline; other projects' names become links without being fetched."""

import importlib
import re
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import matplotlib
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

import gape
from gape.explorer import GALLERY

matplotlib.use("agg")

project = "gape"
author = "the gape developers"
copyright = author
version = release = gape.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build", "gallery"]
nitpicky = True

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
highlight_language = "none"

html_theme = "furo"
html_title = f"gape {release}"
html_static_path = ["_static"]
html_css_files = ["gape.css"]
html_copy_source = False
html_show_sourcelink = False

autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "imported-members": True, "show-inheritance": True}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90

NAPOLEON = Config(napoleon_use_rtype=False)

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "gallery_built",
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "capture_repr": (),
    "remove_config_comments": True,
}

PACKAGES = (
    "gape",
    *(f"gape.{name}" for name in ("encodings", "solvers", "graph", "nn", "pyg", "data", "io", "scale", "explorer")),
)

# Where other projects document their names. Their inventories cannot be fetched offline.
PYTORCH, PYTHON = "https://docs.pytorch.org/docs/stable", "https://docs.python.org/3/library"
PYG = "https://pytorch-geometric.readthedocs.io/en/latest/generated"
OTHERS = (
    (r"torch\.Tensor", f"{PYTORCH}/tensors.html#torch.Tensor"),
    (r"torch\.(dtype|device)", rf"{PYTORCH}/tensor_attributes.html#torch.\1"),
    (r"torch\._C\.Generator", f"{PYTORCH}/generated/torch.Generator.html"),
    (r"torch\.nn\.modules\.module\.Module", f"{PYTORCH}/generated/torch.nn.Module.html"),
    (r"(torch\.nn\.[\w.]+)", rf"{PYTORCH}/generated/\1.html#\1"),
    (r"torch_geometric\.data\.(?:\w+\.)?(\w+)", rf"{PYG}/torch_geometric.data.\1.html#torch_geometric.data.\1"),
    (r"(torch_geometric\.[\w.]+)", rf"{PYG}/\1.html#\1"),
    (r"(numpy\.[\w.]+)", r"https://numpy.org/doc/stable/reference/generated/\1.html#\1"),
    (r"(scipy\.[\w.]+)", r"https://docs.scipy.org/doc/scipy/reference/generated/\1.html#\1"),
    (r"(collections\.abc|typing|pathlib|dataclasses|os|abc|enum)\.(\w+)", rf"{PYTHON}/\1.html#\1.\2"),
    (r"(\w+(?:Error|Exception|Warning))", rf"{PYTHON}/exceptions.html#\1"),
    (r"(str|int|float|bool|list|dict|tuple|set|range|bytes|object|type)", rf"{PYTHON}/stdtypes.html#\1"),
    (r"None", f"{PYTHON}/constants.html#None"),
)


def public_names() -> dict[int, str]:
    """Map every exported object to the name under which it is documented."""
    found: dict[int, str] = {}
    for package in reversed(PACKAGES):
        module = importlib.import_module(package)
        found |= {id(getattr(module, name)): f"{package}.{name}" for name in module.__all__}
    return found


def imported(target: str) -> Any:
    """Return the object with a dotted name, or None."""
    parts = target.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:size]))
        except ImportError:
            continue
        return reduce(member, parts[size:], found)
    return None


def member(owner: Any, name: str) -> Any:
    """Return an attribute or the type of a field, or None."""
    return getattr(owner, name, getattr(owner, "__annotations__", {}).get(name))


def meant(node: Any) -> Any:
    """Return the object that a reference of a docstring means, as the code there knows it, or None."""
    target, module, owner = node["reftarget"], node.get("py:module") or "gape", node.get("py:class")
    if "." in target and (found := imported(target)) is not None:
        return found
    scopes = [module, *PACKAGES, *(name for name in sys.modules if name.startswith("gape."))]
    if owner:
        scopes = [f"{module}.{owner}", getattr(imported(f"{module}.{owner}"), "__module__", module), *scopes]
    return next((found for scope in scopes if (found := imported(f"{scope}.{target}")) is not None), None)


def resolve(app: Sphinx, env: Any, node: Any, content: nodes.Element) -> nodes.Element | None:
    """Link names that another project documents, or we under their public name; leave internal names as text."""
    if node.get("refdomain") != "py":
        return None
    found = meant(node)
    if name := public_names().get(id(found)):
        linked = env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
        return linked if linked is not None else content
    full = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"
    for target in (node["reftarget"], full):
        for pattern, address in OTHERS:
            if match := re.fullmatch(pattern, target):
                return nodes.reference("", "", content, internal=False, refuri=match.expand(address))
    return content if found is not None else None


def docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Translate a Google docstring; bars are absolute values, and no property starts with a type."""
    bars = [re.sub(r"(``.*?``)|\|", lambda found: found[1] or r"\|", line) for line in lines]
    what = "method" if what in ("property", "attribute") else what
    lines[:] = GoogleDocstring(bars, NAPOLEON, app, what, name, obj, options).lines()


def explorers(app: Sphinx, error: Exception | None) -> None:
    """Write the explorer pages that other pages embed."""
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir, "_static", "explorer")
        folder.mkdir(parents=True, exist_ok=True)
        for name in GALLERY:
            gape.explore(name).save(folder / f"{name}.html")


def signature(app: Sphinx, what: str, name: str, obj: Any, options: Any, text: str | None, result: str | None) -> Any:
    """Make defaults such as ``<factory>`` Python, so that the types beside them can be linked."""
    return (re.sub(r"<[\w. ]+>", "...", text), result) if text else None


def include_root(app: Sphinx, name: str, source: list[str]) -> None:
    """Point links to CONTRIBUTING.md and its neighbours to the pages that include them."""
    source[0] = re.sub(r"\]\(\.\./([A-Z]+\.md)", lambda found: f"]({found[1].lower()}", source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", include_root)
    app.connect("autodoc-process-signature", signature)
    app.connect("build-finished", explorers)
    app.connect("autodoc-process-docstring", docstring)
    app.connect("missing-reference", resolve)
