"""The Typer application: registers the commands and turns errors into messages."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated, Any, TextIO

try:
    import typer
except ImportError as error:
    raise SystemExit("gape: the command line needs Typer and Rich: pip install 'gape[cli]'") from error

from gape import __version__, native
from gape.cli.encode import encode
from gape.cli.encodings import cache, encodings
from gape.cli.explore import explore

app = typer.Typer(
    name="gape",
    help="Graph position encodings from weighted graph-walking automata.",
    pretty_exceptions_enable=False,
)
# The settings of the encoding are options that Typer does not know.
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(encode)
app.command()(encodings)
app.command()(explore)
app.command()(cache)
if find_spec("gape.experiments") is not None:  # the commands above do without that package
    from gape.cli.bench import bench
    from gape.cli.compare import compare, expressiveness, runtime
    from gape.cli.table import figure, table
    from gape.cli.translate import translate

    for command in (bench, table, figure, runtime, expressiveness, compare):
        app.command()(command)
    app.add_typer(translate, name="translate")

# The base class of Typer's usage errors; its module depends on Typer's version.
_UsageError: Any = typer.BadParameter.__mro__[1]
# Errors that users can fix: wrong values and files, unsolvable equations, an extra that is not installed.
_USER_ERRORS = (ValueError, OSError, ArithmeticError, ImportError)
_TRACEBACK = bool(os.environ.get("GAPE_TRACEBACK"))
_INTERRUPTED = 130


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"gape {__version__} ({native.description()})")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 on success, 2 with a message on stderr for errors that the user can fix.

    ``GAPE_TRACEBACK=1`` shows the traceback of an error.
    """
    if arguments is None:
        # On SIGTERM, as batch systems send it, still remove half-written files and end worker processes.
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
        _fail(str(error) or type(error).__name__)
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
    """Show a warning in one line, without the path and source line that Python adds."""
    typer.echo(f"gape: warning: {message}", err=True)


def _fail(message: str) -> None:
    typer.echo(f"gape: {message}", err=True)
    sys.exit(2)
