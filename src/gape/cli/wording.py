"""What the library says about its arguments, in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_VALUE = r"True|False|…|'[^']*'|-?[\w.]*\w"


@contextmanager
def in_shell_words(options: Mapping[str, str]) -> Iterator[None]:
    """Errors raised inside speak of options where they spoke of arguments, see :func:`reword`."""
    try:
        yield
    except (ValueError, ArithmeticError) as error:
        raise ValueError(reword(str(error), options)) from error
    except OSError as error:
        raise OSError(reword(str(error), options)) from error


def reword(text: str, options: Mapping[str, str]) -> str:
    """A message in which options stand for arguments: ``name=value``, a name at its start, a name it says to raise.

    Args:
        text: the message.
        options: the option of each argument; if it ends in ``=``, its value follows without a space.

    Example:
        >>> reword("set symmetrize=True, or raise memory", {"symmetrize": "--symmetrize", "memory": "--memory"})
        'set --symmetrize, or raise --memory'
        >>> reword("states must be at least 1, got 0", {"states": "--states"})
        '--states must be at least 1, got 0'
        >>> reword("pass data_dir=… or use order='random'", {"data_dir": "--data-dir", "order": "--set data.order="})
        "pass --data-dir … or use --set data.order='random'"
        >>> reword("csl data.order=published: no files", {"order": "--set data.order="})
        'csl data.order=published: no files'
    """
    if not options:
        return text
    names = "|".join(map(re.escape, options))

    def assignment(found: re.Match[str]) -> str:
        option, value = options[found[1]], found[2]
        if option.endswith("="):
            return option + (value.lower() if value in ("True", "False") else value)
        if value in ("True", "False"):
            return option if value == "True" else option.replace("--", "--no-", 1)
        return f"{option} {value}"

    text = re.sub(rf"(?<![\w.-])({names})=({_VALUE})", assignment, text)
    mentioned = rf"^({names})(?= must | is )|(?<=raise )({names})\b"
    return re.sub(mentioned, lambda found: options[found[0]].rstrip("="), text)
