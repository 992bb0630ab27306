"""``gape encode``: read graphs from a file, write their encodings to another."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from gape.cli.options import (
    GRAPH_FILES,
    GraphColumn,
    NoHeader,
    SourceColumn,
    TargetColumn,
    Undirected,
    Unweighted,
    WeightColumn,
    complete_encoding,
    option_name,
    reading_options,
)

_LARGE_PANEL = "One graph larger than memory"
_MANY_PANEL = "Many files, or many graphs"


class Precision(Enum):
    float64 = "float64"
    float32 = "float32"


_NEGATIVE_NUMBER = re.compile(r"-(\d|\.\d)")


def encode(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="INPUT", help=GRAPH_FILES)],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Output file: .parquet, .csv, .tsv, .csv.gz, .tsv.gz, .npz, .npy or .pt; `-` for csv on standard "
            "output. A folder for many inputs.",
        ),
    ],
    encoding: Annotated[
        str,
        typer.Option(
            "--encoding",
            "-e",
            metavar="NAME",
            help="Name of the encoding, see `gape encodings`.",
            autocompletion=complete_encoding,
        ),
    ],
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of encodings that draw random numbers.")] = None,
    undirected: Undirected = False,
    unweighted: Unweighted = False,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    weight_column: WeightColumn = None,
    graph_column: GraphColumn = None,
    no_header: NoHeader = False,
    cache: Annotated[bool, typer.Option(help="Reuse and store slow encodings; see `gape cache`.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")] = False,
    on_disk: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Sort the edges into this folder and encode them there. Resumes; several processes by torchrun.",
            rich_help_panel=_LARGE_PANEL,
        ),
    ] = None,
    vectors: Annotated[
        Precision, typer.Option(help="Walk counts; float32 halves the memory.", rich_help_panel=_LARGE_PANEL)
    ] = Precision.float64,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Encode files and folders shard by shard in N processes (0: in this one); --output is a folder. "
            "Default: one per processor. Resumes.",
            rich_help_panel=_MANY_PANEL,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Encode shards on the workers of a Dask scheduler: tcp://HOST:8786.",
            rich_help_panel=_MANY_PANEL,
        ),
    ] = None,
    text_names: Annotated[
        bool,
        typer.Option(
            "--text-names", help="Write names as text, also where they are whole numbers.", rich_help_panel=_MANY_PANEL
        ),
    ] = False,
) -> None:
    """Encode the nodes of graphs. The settings of the encoding are options: --states 32 --damping 0.9.

    Example: gape encode graph.csv --encoding gape --states 32 -o pe.parquet
    """
    from gape._internal.validation import did_you_mean
    from gape.cli.encode_file import encode_file
    from gape.encodings.registry import make, settings_of

    words = [source, *context.args]
    reading = reading_options(source_column, target_column, weight_column, graph_column, no_header, unweighted)
    if on_disk is not None or any(Path(word, "graph.json").is_file() for word in words):
        _encode_on_disk(words, output, encoding, seed, reading, undirected, on_disk, vectors, quiet)
        return
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("torchrun is for one graph on disk: give --on-disk FOLDER")
    if vectors is not Precision.float64:
        raise ValueError("--vectors is for a graph on disk: give --on-disk FOLDER")
    known = settings_of(encoding)
    # Options have dashes for underscores; names of parts, as in gape-rooted.layers, have dashes of their own.
    keys = {setting.name.replace("-", "_"): setting.name for setting in known}
    flags = {setting.name.replace("-", "_") for setting in known if isinstance(setting.default, bool)}
    files, given = split_arguments(words, flags, keys)
    settings = {keys.get(word, word): value for word, value in given.items()}
    options = {setting.name: option_name(setting.name) for setting in known}
    for name in settings:
        if name not in options:
            command = [option for parameter in context.command.params for option in parameter.opts]
            raise ValueError(
                f"no such option: {option_name(name)}; {encoding} has the settings {', '.join(options.values())} (see "
                f"`gape encodings {encoding}`), and for the rest see `gape encode --help`"
                f"{did_you_mean(option_name(name), [*options.values(), *command])}"
            )
    many = workers is not None or scheduler is not None or any(Path(file).is_dir() for file in files)
    many = many or (len(files) > 1 and not output.suffix)
    if not files or (len(files) > 1 and not many):
        raise ValueError(
            f"expected one input file, got {' '.join(files) or 'none'}; several go to a folder: --output FOLDER"
        )
    if text_names and not many:
        raise ValueError("--text-names is for many files or graphs: give --workers N and a folder to --output")
    notes = []
    if seed is not None:
        seeds = [setting.name for setting in known if setting.name.rpartition(".")[2] == "seed"]
        settings.update({name: str(seed) for name in seeds if name not in settings})
        if not seeds:
            notes.append(f"{encoding} draws no random numbers, so --seed changes nothing")
    if many:
        from gape.cli.encode_scale import encode_many

        encode_many(
            files,
            output,
            encoding,
            make(encoding, **settings),
            reading=reading,
            undirected=undirected,
            text_names=text_names,
            workers=workers,
            scheduler=scheduler,
            quiet=quiet,
            notes=notes,
        )
        return
    encode_file(
        Path(files[0]),
        output,
        encoding,
        make(encoding, **settings),
        reading=reading,
        both_directions=undirected,
        cache=cache,
        quiet=quiet,
        notes=notes,
    )


def _encode_on_disk(
    words: Sequence[str],
    output: Path,
    encoding: str,
    seed: int | None,
    reading: dict[str, Any],
    undirected: bool,
    folder: Path | None,
    vectors: Precision,
    quiet: bool,
) -> None:
    from gape.cli.encode_scale import encode_on_disk

    files, settings = split_arguments(words, {"relative"})
    if len(files) != 1:
        raise ValueError(f"expected one input file, got {' '.join(files) or 'none'}; see `gape encode --help`")
    if seed is not None:
        settings["seed"] = str(seed)
    encode_on_disk(
        Path(files[0]),
        folder,
        output,
        encoding,
        settings,
        reading=reading,
        undirected=undirected,
        vectors=vectors.value,
        quiet=quiet,
    )


def split_arguments(
    words: Sequence[str], flags: Collection[str], known: Collection[str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """Split command-line words into files and settings, the latter as text.

    Settings are given as ``--on-singular raise`` or ``--on-singular=raise``; those in ``flags`` need no value and have
    a ``--no-`` form. Where it says which settings are ``known``, others may lack a value: the caller complains.

    >>> split_arguments(["graph.csv", "--states", "8", "--relative", "--no-fast", "--damping=-1"], {"relative", "fast"})
    (['graph.csv'], {'states': '8', 'relative': 'true', 'fast': 'false', 'damping': '-1'})
    """
    files: list[str] = []
    settings: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            files.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if not word.startswith("--") or not name:
            raise ValueError(f"no such option: {word}; see `gape encode --help`")
        if not equals:
            if name in flags:
                value = rest.pop(0) if rest and rest[0].lower() in ("true", "false") else "true"
            elif name.removeprefix("no_") in flags:
                name, value = name.removeprefix("no_"), "false"
            elif rest and (not rest[0].startswith("-") or _NEGATIVE_NUMBER.match(rest[0])):
                value = rest.pop(0)
            elif known is None or name in known:
                raise ValueError(f"{word} needs a value, such as {word} 1; see `gape encode --help`")
        if name in settings:
            raise ValueError(
                f"{option_name(name)} was given twice, as {settings[name]!r} and as {value!r}; give it once"
            )
        settings[name] = value
    return files, settings
