"""``gape translate``: train translation models with different position encodings, translate, score."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gape.cli.extras import needs
from gape.cli.options import DataDir

if TYPE_CHECKING:
    from gape.experiments.translation.session import Session

translate = typer.Typer(
    help="Machine translation with exchanged position encodings, the paper's first experiment.",
    pretty_exceptions_enable=False,
)


@translate.callback(invoke_without_command=True)
def _explain(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


DataOption = Annotated[
    str, typer.Option("--data", help="evbnews, iwslt15, or a folder with train, dev and test, each .en and .vi.")
]
LanguagesOption = Annotated[
    str, typer.Option("--languages", help="Endings of the files of a folder, source and target, such as de-fr.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value: another setting of the model or its training, such as pieces=2000."),
]
MinutesOption = Annotated[
    float | None, typer.Option(min=0, help="Time for a run: stop at the first look after it; run again to go on.")
]
PresetOption = Annotated[str, typer.Option("--preset", help="small (two processor cores) or paper (a GPU).")]
SeedOption = Annotated[int, typer.Option(help="Of weights, dropout, GAPE's automaton and the order of batches.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="Processor threads; PyTorch decides if not given.")]
EmptyOption = Annotated[bool, typer.Option("--drop-empty", help="Leave out training pairs of which a side is empty.")]


@translate.command()
@needs("mt")
def train(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the run.")],
    encoding: Annotated[
        str,
        typer.Option(
            "--encoding",
            "-e",
            help="sinusoidal, gape, none, rw, lape-p, lape-c, lape-c10k, sa, spd+c, sinusoidal-automaton.",
        ),
    ] = "gape",
    preset: PresetOption = "small",
    data: DataOption = "evbnews",
    languages: LanguagesOption = "en-vi",
    steps: Annotated[int | None, typer.Option(help="Updates. Default: the epochs of the preset.")] = None,
    set_: SetOption = None,
    minutes: MinutesOption = None,
    after: Annotated[
        Path | None, typer.Option(help="Go on from this complete run, which has fewer steps and else equal settings.")
    ] = None,
    seed: SeedOption = 147,
    threads: ThreadsOption = None,
    drop_empty: EmptyOption = False,
    data_dir: DataDir = None,
) -> None:
    """Train one model and score it; called again, it goes on where it stopped.

    Example: gape translate train --encoding gape --steps 2000 --out runs-translation/gape
    """
    from gape.experiments.runs.settings import parse_pairs
    from gape.experiments.translation.settings import override
    from gape.experiments.translation.settings import preset as make
    from gape.experiments.translation.unfinished import Unfinished

    settings = make(preset, data=_name(data), positions=encoding, steps=steps, seed=seed)
    settings = override(settings, parse_pairs(set_ or []))
    session = _session(data, languages, data_dir, threads, drop_empty)
    try:
        result = session.train(settings, out, minutes, after)
    except Unfinished as unfinished:
        typer.echo(str(unfinished))
        raise typer.Exit(3) from unfinished
    for name, scores in result["bleu"].items():
        for kind, bleu in scores.items():
            typer.echo(f"{name}: BLEU {bleu:.2f} {kind} ({result['signatures'][kind]})")
    typer.echo(f"{out}: translate with `gape translate run {out} INPUT -o OUTPUT`", err=True)


@translate.command()
@needs("mt")
def score(
    hypotheses: Annotated[Path, typer.Argument(help="Translations, tokenised, a line each; plain or .xz.")],
    references: Annotated[Path, typer.Argument(help="References, tokenised, a line each; plain or .xz.")],
    raw: Annotated[
        Path | None, typer.Option(help="References that were never tokenised, for the detokenised score.")
    ] = None,
) -> None:
    """BLEU of translations: lower-cased (the paper's figure), cased, detokenised, with sacrebleu's signatures.

    Example: gape translate score output.vi tst2013.vi.xz
    """
    from gape.experiments.translation.scoring import score as score_lines
    from gape.experiments.translation.text import check_lines, read_lines

    said, meant = read_lines(hypotheses), read_lines(references)
    untokenised = None if raw is None else read_lines(raw)
    for path, lines in ((references, meant), (raw, untokenised)):
        if path is not None and lines is not None:
            check_lines(lines, path)
            if len(lines) != len(said):
                shorter, last = (hypotheses, len(said)) if len(said) < len(lines) else (path, len(lines))
                raise ValueError(
                    f"{hypotheses} has {len(said):,} lines and {path} has {len(lines):,}; they must be translations "
                    f"of the same sentences, line by line. {shorter} ends after line {last:,}"
                )
    for found in score_lines(said, meant, raw_references=untokenised):
        typer.echo(str(found))


@translate.command()
@needs("mt")
def run(
    model: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, as of `gape translate train`.")],
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="Tokenised sentences, a line each; plain or .xz.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the translations go.")],
    beam: Annotated[int, typer.Option(help="Hypotheses kept.")] = 4,
    length_penalty: Annotated[float, typer.Option(help="α of GNMT's length penalty.")] = 0.6,
    positions: Annotated[
        str | None,
        typer.Option(
            help="Another encoding without learned parts in place of the trained one; with sinusoidal-automaton, a "
            "model trained with sinusoids says the same (Proposition 1)."
        ),
    ] = None,
    threads: ThreadsOption = None,
) -> None:
    """Translate a text with a trained model.

    Example: gape translate run runs-translation/gape tst2013.en.xz -o output.vi
    """
    from rich.console import Console

    from gape._internal.files import check_writable
    from gape.experiments.translation.run_folder import RunFolder
    from gape.experiments.translation.sentence_bar import sentence_bar
    from gape.experiments.translation.settings import BeamSettings
    from gape.experiments.translation.text import check_lines, read_lines, write_lines
    from gape.experiments.translation.translator import translate as translate_lines

    settings, lines = BeamSettings(beam=beam, length_penalty=length_penalty), read_lines(source)
    check_lines(lines, source)
    check_writable(output)
    if output.exists() and output.samefile(source):
        raise ValueError(f"{output} is the text to translate; name another file for the translations")
    _use_threads(threads)
    transformer, vocabulary = RunFolder(model).load()
    if positions is not None:
        trained = RunFolder(model).settings()
        transformer.replace_positions(positions, seed=trained.training.seed)
        if {positions, trained.model.positions} - {"sinusoidal", "sinusoidal-automaton"}:
            typer.echo(f"gape: the model was trained with {trained.model.positions}, not with {positions}", err=True)
    with sentence_bar(Console(stderr=True)) as show:
        told = partial(show, source.name)
        said = translate_lines(transformer, vocabulary, lines, settings, origin=str(source), progress=told)
    write_lines(output, said)
    typer.echo(f"{output}: {len(said):,} {'translation' if len(said) == 1 else 'translations'}")


@translate.command()
@needs("mt")
def rows(
    steps: Annotated[int, typer.Option(help="Updates of every run.")],
    encoding: Annotated[
        str | None, typer.Option("--encoding", "-e", help="Rows, separated by commas. Default: all nine.")
    ] = None,
    minutes: MinutesOption = None,
    after: Annotated[
        int | None, typer.Option(help="Go on from the rows of so many steps instead of beginning again.")
    ] = None,
    preset: PresetOption = "small",
    data: DataOption = "evbnews",
    languages: LanguagesOption = "en-vi",
    set_: SetOption = None,
    seed: SeedOption = 147,
    threads: ThreadsOption = 1,
    drop_empty: EmptyOption = False,
    out: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs-translation"),
    results: Annotated[
        Path | None,
        typer.Option(help="File of the results. Default: results/translation.jsonl; of your own text, in --out."),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Train the rows of the paper's comparison at equal steps, compare them, and write the results.

    Complete rows are skipped and interrupted ones go on; 3 is returned if there are any left. Two calls with different
    rows may run side by side.

    Example: gape translate rows --steps 1500 --minutes 60
    """
    from gape.experiments.runs.settings import parse_pairs
    from gape.experiments.translation.collect import collect
    from gape.experiments.translation.corpus import DATASETS
    from gape.experiments.translation.rows import ROWS, row_settings, run_rows
    from gape.experiments.translation.run_folder import RunFolder

    names = list(ROWS) if encoding is None else [name.strip() for name in encoding.split(",")]
    results = results or (Path("results") if data in DATASETS else out) / "translation.jsonl"
    changes = parse_pairs(set_ or [])
    rows_of = partial(row_settings, names, preset_name=preset, data=_name(data), seed=seed, changes=changes)
    runs = rows_of(steps=steps)
    shorter: dict[str, Path] = {}
    if after is not None:
        shorter = {name: out / short for name, short in zip(runs, rows_of(steps=after), strict=True)}
    session = _session(data, languages, data_dir, threads, drop_empty)
    left = run_rows(
        runs,
        lambda name, settings: session.train(settings, out / name, minutes, shorter.get(name)),
        lambda: collect(out, results),
    )
    if len(left) == len(runs):  # none is complete, but runs of other calls may be
        collect(out, results)
    for line in left:
        typer.echo(line)
    for name in runs:
        if (result := RunFolder(out / name).result()) is not None:
            scores = ", ".join(f"{scored['lower-cased']:.2f} on {text}" for text, scored in result["bleu"].items())
            typer.echo(f"{result['encoding']}: BLEU, lower-cased, {scores}")
    typer.echo(f"{results}: compared with sinusoidal; see `gape table translation --results {results.parent}`")
    if left:
        raise typer.Exit(3)


def _name(data: str) -> str:
    """What the text is called: of a folder its last name, however it is written."""
    from gape.experiments.translation.corpus import DATASETS

    return data if data in DATASETS else Path(data).resolve().name


def _use_threads(threads: int | None) -> None:
    import torch

    if threads is not None:
        torch.set_num_threads(threads)


def _session(data: str, languages: str, data_dir: Path | None, threads: int | None, drop_empty: bool) -> Session:
    """The text once, for one run or many."""
    from gape.experiments.translation.session import Session

    source, _, target = languages.partition("-")
    if not source or not target or "-" in target or source == target:
        raise ValueError(f"--languages must be two different endings such as en-vi, got {languages!r}")
    _use_threads(threads)
    return Session.open(data, data_dir, drop_empty=drop_empty, languages=(source, target))
