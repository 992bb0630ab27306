"""The pages show what the results say."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
if not (ROOT / "docs" / "tables.py").exists():
    pytest.skip("the pages are not in the source archive", allow_module_level=True)
pages = runpy.run_path(str(ROOT / "docs" / "tables.py"))


@pytest.mark.parametrize("page", pages["PAGES"], ids=lambda page: page.name)
def test_committed_tables_are_what_the_committed_results_give(page):
    text = page.read_text(encoding="utf-8")
    assert "<!-- gape table" in text
    assert pages["filled"](text) == text, f"{page.name} is older than results/: run `make results`"


def test_filling_keeps_what_stands_around_the_tables(tmp_path):
    page = "before\n<!-- gape table damping --task zinc -->\nout of date\n<!-- end of table -->\nafter\n"
    new = pages["filled"](page, tmp_path)
    assert new.startswith("before\n<!-- gape table damping --task zinc -->\n**GAPE by damping")
    assert new.endswith("\n<!-- end of table -->\nafter\n")
    assert "out of date" not in new
    assert new.count("missing") == 8
    assert pages["filled"](new, tmp_path) == new


def test_a_note_stands_under_the_first_table_that_has_it(tmp_path):
    page = "<!-- gape table damping -->\n<!-- end of table -->\n" * 2
    new = pages["filled"](page, tmp_path)
    assert new.count("[n]: number of seeds") == 1
    assert new.count("| γ = 0.1 | best validation | missing | missing |") == 2
    assert pages["filled"](new, tmp_path) == new


def test_a_table_that_cannot_be_made_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="gape table speed: there is no table 'speed'"):
        pages["filled"]("<!-- gape table speed -->\n<!-- end of table -->\n", tmp_path)
    twice = "<!-- gape table damping -->\n<!-- gape table k-study -->\n<!-- end of table -->\n"
    with pytest.raises(ValueError, match="<!-- gape table damping --> has no <!-- end of table --> after it"):
        pages["filled"](twice, tmp_path)


def test_images_of_the_pages_are_there():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} refers to {target}"
