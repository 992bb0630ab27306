"""``gape encode``: a file with graphs in, a file with encodings out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gape.cli.settings import option, split_words
from gape.cli.wording import in_shell_words


def encode(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="Edge list source,target[,weight][,graph] (csv, tsv, parquet); GraphML, GML; sparse matrix (npz, "
            "mtx); PyG .pt; csv with a column smiles.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to: .parquet, .csv, .npz or .npy.")],
    encoding: Annotated[str, typer.Option("--encoding", "-e", help="Name of the encoding, see `gape encodings`.")],
    seed: Annotated[int | None, typer.Option(help="Seed of encodings that draw random numbers.")] = None,
    undirected: Annotated[
        bool, typer.Option("--undirected", help="Take every edge in both directions, whichever of them the file has.")
    ] = False,
    cache: Annotated[
        bool, typer.Option(help="Keep what took long to compute, and look there first; see `gape cache`.")
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")] = False,
) -> None:
    """Encode the nodes of graphs. Settings of the encoding are options too: --states 32 --damping 0.02.

    Example: gape encode graph.csv --encoding gape --states 32 -o pe.parquet
    """
    from gape.cli.encoding_job import run
    from gape.encodings.registry import make, settings_of

    known = settings_of(encoding)
    flags = {setting.name for setting in known if isinstance(setting.default, bool)}
    files, settings = split_words([source, *context.args], flags)
    if len(files) != 1:
        raise ValueError(f"expected one input file, got {' '.join(files) or 'none'}; see `gape encode --help`")
    options = {setting.name: option(setting.name) for setting in known}
    for name in settings:
        if name not in options:
            raise ValueError(
                f"no such option: {option(name)}; {encoding} has the settings {', '.join(options.values())} (see "
                f"`gape encodings {encoding}`), and for the rest see `gape encode --help`"
            )
    notes = []
    if seed is not None:
        if any(setting.name == "seed" for setting in known):
            settings["seed"] = str(seed)
        else:
            notes.append(f"{encoding} draws no random numbers, so --seed changes nothing")
    with in_shell_words(options):
        made = make(encoding, **settings)
    run(
        Path(files[0]),
        output,
        encoding,
        made,
        undirect=undirected,
        cache=cache,
        quiet=quiet,
        notes=notes,
    )
