"""The figures that the paper prints, to stand beside ours."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def paper_results() -> dict[str, Any]:
    """All figures, table by table, and those at best validation from the authors' logs where they survive."""
    found: dict[str, Any] = json.loads(
        files("gape.experiments.report").joinpath("paper_results.json").read_text(encoding="utf-8")
    )
    return found


def printed(table: str, row: str, column: str) -> float | str | None:
    """What the paper prints in a cell: a number, a word, or nothing.

    PPRP has a table of its own there, which is looked into for the main one.

    >>> printed("graph-performance", "GAPE", "CYCLES"), printed("graph-performance", "SPD+C", "PCQM4Mv2")
    (79.03, 'OOM')
    >>> printed("graph-performance", "PPRP", "CYCLES"), printed("graph-performance", "PPRP", "CSL")
    (100.0, None)
    """
    if (table, row) == ("graph-performance", "PPRP"):
        table = "rw-ppr-graph"
    found: float | str | None = paper_results()[f"table:{table}"]["rows"].get(row, {}).get(column)
    return found


def meant(row: str, column: str, value: float) -> float:
    """The same in the unit of its column: without an encoding CSL is printed as a fraction, all else in percent.

    >>> meant("Baseline", "CSL", 0.10), meant("GAPE", "CSL", 10.0)
    (10.0, 10.0)
    """
    return 100 * value if (row, column) == ("Baseline", "CSL") else value


def logged(row: str, column: str) -> float | None:
    """The mean at best validation in the authors' logs, which the paper says it prints.

    >>> logged("RW", "ZINC")
    0.203
    """
    found: float | None = paper_results()["authors_logs_best_val"].get(column, {}).get(row)
    return found
