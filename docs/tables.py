"""Update the tables of the pages from results/: python docs/tables.py, or `make results`.

A table stands between two comments; the first is the command that prints it:

    <!-- gape table k-study --task cycles -->
    <!-- end of table -->

Files in results/ are named as they stand there: gape compare --show results/comparison.jsonl.
"""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from gape._internal.files import replacing
from gape.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in (
            "results",
            "differences",
            "ablations",
            "learned",
            "speed",
            "translation",
            "expressiveness",
            "comparison",
            "choosing",
        )
    ),
)
END = "<!-- end of table -->"
MARKED = re.compile(rf"(<!-- gape ((?:table|compare) [^\n]+) -->\n)(.*?){END}", re.DOTALL)


def printed(words: str, results: Path) -> str:
    """Return what the command prints in Markdown, from these results alone."""
    command, *options = shlex.split(words)
    if command == "table":
        options = ["--format", "markdown", *options, "--runs", str(results), "--results", str(results)]
    else:
        options = [str(results / word.removeprefix("results/")) if "results/" in word else word for word in options]
    found = CliRunner().invoke(app, [command, *options])
    if found.exit_code:
        raise ValueError(f"gape {words}: {found.exception or found.output}")
    return found.stdout


def filled(page: str, results: Path = ROOT / "results") -> str:
    """Return the page with every table filled from the results."""
    for opening, _, inside in MARKED.findall(page):
        if "<!--" in inside:
            raise ValueError(f"{opening.strip()} has no {END} after it")
    seen: set[str] = set()
    return MARKED.sub(lambda found: f"{found[1]}{_new_notes(printed(found[2], results), seen)}{END}", page)


def _new_notes(table: str, seen: set[str]) -> str:
    """Remove notes (lines that end in a Markdown line break) that an earlier table of the page has."""
    lines = [line for line in table.splitlines() if line not in seen]
    seen.update(line for line in lines if line.endswith("  "))
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    for path in PAGES:
        page = filled(path.read_text(encoding="utf-8"))
        with replacing(path) as temporary:
            temporary.write_text(page, encoding="utf-8")
        print(path.relative_to(ROOT))
