"""The Typer application: one command a file, all joined here."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, TextIO

try:
    import typer
except ImportError as error:
    raise SystemExit("gape: the command line needs Typer and Rich: pip install 'gape[cli]'") from error

from gape import __version__
from gape.cli.bench import bench
from gape.cli.cache import cache
from gape.cli.encode import encode
from gape.cli.encodings import encodings
from gape.cli.figure import figure
from gape.cli.runtime import runtime
from gape.cli.table import table
from gape.cli.translate import translate
from gape.cli.wording import reword

app = typer.Typer(
    name="gape",
    help="Graph position encodings from weighted graph-walking automata.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
# Settings of the encoding are options that Typer does not know.
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(encode)
app.command()(encodings)
app.command()(cache)
app.command()(bench)
app.command()(table)
app.command()(figure)
app.command()(runtime)
app.add_typer(translate, name="translate")

# The common ancestor of Typer's own complaints about arguments; which module it lives in depends on Typer's version.
_UsageError: Any = typer.BadParameter.__mro__[1]
# What users can cause and mend: wrong values and files, unsolvable equations, an extra that is not installed.
_USER_ERRORS = (ValueError, OSError, ArithmeticError, ImportError)
_TRACEBACK = bool(os.environ.get("GAPE_TRACEBACK"))
_INTERRUPTED = 130


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"gape {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 when all went well, 2 with one line on stderr when the user can mend it.

    ``GAPE_TRACEBACK=1`` shows where an error came from.
    """
    if arguments is None:
        # Asked to end, as batch systems do, it still takes away half-written files and the processes it started.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with warnings.catch_warnings():
            if not _TRACEBACK:
                warnings.showwarning = _show_warning
            code = app(args=None if arguments is None else list(arguments), prog_name="gape", standalone_mode=False)
    except _UsageError as error:
        command = "gape" if error.ctx is None else error.ctx.command_path
        _fail(f"{error.format_message().rstrip('.')}; see `{command} --help`")
    except _USER_ERRORS as error:
        if _TRACEBACK:
            raise
        # Every command that reads data sets has this option.
        _fail(reword(str(error) or type(error).__name__, {"data_dir": "--data-dir"}))
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    if code == _INTERRUPTED:  # some versions of Typer turn the exception into the code
        typer.echo("gape: interrupted", err=True)
    sys.exit(code if isinstance(code, int) else 0)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """In place of Python's two lines with a path in the middle of the library."""
    typer.echo(f"gape: warning: {message}", err=True)


def _fail(message: str) -> None:
    typer.echo(f"gape: {message}", err=True)
    sys.exit(2)
