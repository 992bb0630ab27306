"""The page of all encodings is what the registry has and what the encodings do."""

import re
from pathlib import Path

import pytest

from gape.encodings import ALIASES, Pairs, make, names
from gape.encodings.registry import REGISTRY
from tests.encodings.samples import random_graph

PAGE = Path(__file__).resolve().parents[2] / "docs" / "encodings.md"
if not PAGE.exists():
    pytest.skip("the pages are not in the source archive", allow_module_level=True)


def rows() -> dict[str, list[str]]:
    """Return the cells of the table by name of the encoding."""
    lines = re.findall(r"^\| `.*\|$", PAGE.read_text(encoding="utf-8").split("## Several")[0], re.MULTILINE)
    found = {}
    for line in lines:
        first, *cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        for name in re.findall(r"`([^`]+)`", re.sub(r"\(.*?\)", "", first)):
            assert name not in found, f"{name} stands in the table twice"
            found[name] = [first, *cells]
    return found


ROWS = rows()


def test_the_table_has_every_name_and_no_other():
    assert set(ROWS) == set(names())


def test_other_names_stand_beside_the_encoding_they_mean():
    for alias, name in ALIASES.items():
        assert f"`{alias}`" in ROWS[name][0]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", list(ROWS))
def test_class_shape_and_directions_are_as_the_table_says(name):
    _, _, kind, gives, directed, cost, advice = ROWS[name]
    assert kind == f"`{REGISTRY[name][0].__name__}`"
    found = make(name)(random_graph(23, 0.3, 0))
    per_pair = isinstance(found, Pairs)
    features = (found.values if per_pair else found).shape[1:]
    assert gives == " × ".join([*("nn" if per_pair else "n"), *map(str, features)])
    assert cost
    assert advice.endswith(".")
    graph = random_graph(23, 0.3, 0, undirected=False)
    if directed == "`symmetrize`":
        with pytest.raises(ValueError, match="set symmetrize=True"):
            make(name)(graph)
        make(name, symmetrize=True)(graph)
    else:
        assert directed in ("yes", "order")
        assert type(make(name)(graph)) is type(found)
