"""The paper's figures, and those of the authors' logs."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def paper_results() -> dict[str, Any]:
    """Read all figures by table, and those at best validation from the authors' logs, as far as they exist."""
    found: dict[str, Any] = json.loads(
        files("gape.experiments.report").joinpath("paper_results.json").read_text(encoding="utf-8")
    )
    return found


def printed(table: str, row: str, column: str) -> float | str | None:
    """Return what the paper prints in a cell: a number, a word, or nothing.

    For PPRP in the main table, its own table is read.

    >>> printed("graph-performance", "GAPE", "CYCLES"), printed("graph-performance", "SPD+C", "PCQM4Mv2")
    (79.03, 'OOM')
    >>> printed("graph-performance", "PPRP", "CYCLES"), printed("graph-performance", "PPRP", "CSL")
    (100.0, None)
    """
    if (table, row) == ("graph-performance", "PPRP"):
        table = "rw-ppr-graph"
    found: float | str | None = paper_results()[f"table:{table}"]["rows"].get(row, {}).get(column)
    return found


def in_column_unit(row: str, column: str, value: float) -> float:
    """Convert a printed figure to the unit of its column: CSL without encoding is a fraction, all else percent.

    >>> in_column_unit("Baseline", "CSL", 0.10), in_column_unit("GAPE", "CSL", 10.0)
    (10.0, 10.0)
    """
    return 100 * value if (row, column) == ("Baseline", "CSL") else value


def logged(row: str, column: str) -> float | None:
    """Return the mean at best validation in the authors' logs, which the paper says it prints.

    >>> logged("RW", "ZINC")
    0.203
    """
    found: float | None = paper_results()["authors_logs_best_val"].get(column, {}).get(row)
    return found
