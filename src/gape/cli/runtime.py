"""``gape runtime``: the runtime table, measured on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from gape.cli.extras import needs
from gape.cli.options import DataDir


@needs("bench")
def runtime(
    data_dir: DataDir = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small inputs: a check that it runs, not a measurement.")] = (
        False
    ),
    states: Annotated[list[int] | None, typer.Option(help="Number of states; give it several times.")] = None,
) -> None:
    """Measure how long encodings take, side by side with what people use today."""
    from gape.experiments.runtime.measurement import main

    main(data_dir=data_dir, quick=quick, states=tuple(states) if states else None)
