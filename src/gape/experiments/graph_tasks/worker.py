"""One cell in a process of its own: one thread, low priority, reporting to the process that started it."""

from __future__ import annotations

import os
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from gape.experiments.graph_tasks.cell import Cell

# The niceness of the process, if it is not niced more already: whoever works on the machine comes first.
NICE = 10


def work(cell: Cell, options: Any, pipe: Connection) -> None:
    """Run a cell; send ``("epoch", fold, folds, line)`` after each epoch and at last ``("done" | "failed", …)``."""
    if hasattr(os, "nice"):  # not on Windows
        os.nice(max(0, NICE - os.nice(0)))
    import torch

    torch.set_num_threads(1)
    try:
        from gape.experiments.graph_tasks.run import run

        result = run(cell, options, lambda fold, folds, line: pipe.send(("epoch", fold, folds, line)))
    except BrokenPipeError:
        return  # nobody is left who would start the next cell; this one goes on when it is asked for again
    except (ValueError, OSError, ArithmeticError, ImportError, RuntimeError) as error:
        if os.environ.get("GAPE_TRACEBACK"):
            raise
        pipe.send(("failed", str(error) or type(error).__name__))
    except KeyboardInterrupt:
        with suppress(OSError):
            pipe.send(("failed", "interrupted"))
    else:
        pipe.send(("done", result))
