"""Where data files are looked for, and what to say when one is not there."""

import os
from collections.abc import Sequence
from pathlib import Path


def data_folder(data_dir: str | Path | None = None) -> Path | None:
    """The folder of real data: the argument, else the environment variable ``GAPE_DATA``, else None.

    >>> data_folder("somewhere").name
    'somewhere'
    """
    chosen = data_dir or os.environ.get("GAPE_DATA")
    return Path(chosen).expanduser() if chosen else None


def find_file(folder: Path | None, names: Sequence[str]) -> Path | None:
    """The first of ``names`` that is a file under ``folder``; None if there is none."""
    if folder is None:
        return None
    return next((folder / name for name in names if (folder / name).is_file()), None)


def missing_file(
    data_set: str, folder: Path | None, compact: Sequence[str], download: str, tried: OSError | None = None
) -> FileNotFoundError:
    """An error that says which file to put where.

    Args:
        data_set: name of the data set.
        folder: where it was looked for.
        compact: files, relative to the folder, any one of which is enough.
        download: what PyG would have fetched, and into which folder it belongs.
        tried: how the download failed, if there was one.

    >>> print(missing_file("zinc", None, ["zinc12k/zinc12k.npz"], "PyG downloads molecules.zip to X."))
    no files for data set 'zinc'. No data folder was given: set data_dir (--data-dir) or the variable GAPE_DATA.
    Put there one of: zinc12k/zinc12k.npz
    Or go online: PyG downloads molecules.zip to X.
    """
    where = (
        f"Looked in {folder}."
        if folder is not None
        else "No data folder was given: set data_dir (--data-dir) or the variable GAPE_DATA."
    )
    failed = "" if tried is None else f"A download was tried and failed: {tried}\n"
    return FileNotFoundError(
        f"no files for data set {data_set!r}. {where}\n{failed}Put there one of: {', '.join(compact)}\n"
        f"Or go online: {download}"
    )
