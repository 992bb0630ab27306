"""``gape runtime``: measure the runtime of encodings on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from gape.cli.options import DataDir, needs


@needs("bench")
def runtime(
    data_dir: DataDir = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small inputs: a check that it works, not a measurement.")] = (
        False
    ),
    states: Annotated[
        list[int] | None, typer.Option(metavar="K", help="Number of states of GAPE; may be repeated.")
    ] = None,
) -> None:
    """Measure how long encodings take, and how long common implementations in SciPy, NumPy, PyG and NetworkX take."""
    from gape.experiments.runtime.measurement import main

    main(data_dir=data_dir, quick=quick, states=tuple(states) if states else None)
