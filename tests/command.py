"""The command line, called in this process."""

import pytest

from gape.cli import main


def run(capsys, *words, code=0):
    """Standard output and standard error of `gape encode`."""
    with pytest.raises(SystemExit) as exit_:
        main(["encode", *map(str, words)])
    out, err = capsys.readouterr()
    assert (exit_.value.code or 0) == code, err
    return out, err
