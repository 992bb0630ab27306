"""``gape translate``: train translation models with different position encodings, translate, and score."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gape.cli.options import DataDir, needs

if TYPE_CHECKING:
    from gape.experiments.translation.rows import Session

translate = typer.Typer(
    help="Machine translation with interchangeable position encodings, the paper's first experiment.",
    pretty_exceptions_enable=False,
)

# Exit code while runs are unfinished.
_UNFINISHED = 3


@translate.callback(invoke_without_command=True)
def _show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


DataOption = Annotated[
    str,
    typer.Option(
        "--data", metavar="NAME", help="evbnews, iwslt15, or a folder with train, dev and test, each .en and .vi."
    ),
]
LanguagesOption = Annotated[
    str,
    typer.Option("--languages", metavar="PAIR", help="File extensions in a folder, source and target, such as de-fr."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="key=value: change a setting of the model or its training, such as pieces=2000.",
    ),
]
MinutesOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="MINUTES",
        help="Time limit per run and call: stop at the first validation after it; run again to resume.",
    ),
]
PresetOption = Annotated[str, typer.Option("--preset", metavar="NAME", help="small (two CPU cores) or paper (a GPU).")]
SeedOption = Annotated[
    int, typer.Option(metavar="N", help="Seed of weights, dropout, GAPE's automaton and the order of batches.")
]
ThreadsOption = Annotated[int | None, typer.Option(min=1, metavar="N", help="CPU threads. Default: PyTorch's choice.")]
EmptyOption = Annotated[bool, typer.Option("--drop-empty", help="Drop training pairs with an empty side.")]


@translate.command()
@needs("mt")
def train(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder of the run.")],
    encoding: Annotated[
        str,
        typer.Option(
            "--encoding",
            "-e",
            metavar="NAMES",
            help="sinusoidal, gape, none, rw, lape-p, lape-c, lape-c10k, sa, spd+c, sinusoidal-automaton.",
        ),
    ] = "gape",
    preset: PresetOption = "small",
    data: DataOption = "evbnews",
    languages: LanguagesOption = "en-vi",
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Number of updates. Default: the preset's epochs.")
    ] = None,
    set_: SetOption = None,
    minutes: MinutesOption = None,
    after: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Continue from this complete run, which has fewer steps and otherwise equal settings.",
        ),
    ] = None,
    seed: SeedOption = 147,
    threads: ThreadsOption = None,
    drop_empty: EmptyOption = False,
    data_dir: DataDir = None,
) -> None:
    """Train one model and score it; run again to resume.

    Example: gape translate train --encoding gape --steps 2000 --out runs-translation/gape
    """
    from gape.experiments.runs.settings import parse_pairs
    from gape.experiments.translation.settings import override
    from gape.experiments.translation.settings import preset as make
    from gape.experiments.translation.training import Unfinished

    settings = make(preset, data=_data_name(data), positions=encoding, steps=steps, seed=seed)
    settings = override(settings, parse_pairs(set_ or []))
    session = _session(data, languages, data_dir, threads, drop_empty)
    try:
        result = session.train(settings, out, minutes, after)
    except Unfinished as unfinished:
        typer.echo(str(unfinished))
        raise typer.Exit(_UNFINISHED) from unfinished
    for name, scores in result["bleu"].items():
        for kind, bleu in scores.items():
            typer.echo(f"{name}: BLEU {bleu:.2f} {kind} ({result['signatures'][kind]})")
    typer.echo(f"{out}: translate with `gape translate run {out} INPUT -o OUTPUT`", err=True)


@translate.command()
@needs("mt")
def score(
    hypotheses: Annotated[Path, typer.Argument(help="Translations, tokenised, one per line; plain or .xz.")],
    references: Annotated[Path, typer.Argument(help="References, tokenised, one per line; plain or .xz.")],
    raw: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Untokenised references, for the detokenised score.")
    ] = None,
) -> None:
    """Compute BLEU of translations with sacrebleu's signatures: lower-cased (the paper's metric), cased, detokenised.

    Example: gape translate score output.vi tst2013.vi.xz
    """
    from gape.experiments.translation.corpus import check_aligned, check_lines, read_lines
    from gape.experiments.translation.scoring import score as score_lines

    translations, expected = read_lines(hypotheses), read_lines(references)
    untokenised = None if raw is None else read_lines(raw)
    for path, lines in ((references, expected), (raw, untokenised)):
        if path is not None and lines is not None:
            check_lines(lines, path)
            check_aligned(hypotheses, translations, path, lines)
    for found in score_lines(translations, expected, raw_references=untokenised):
        typer.echo(str(found))


@translate.command()
@needs("mt")
def run(
    model: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of `gape translate train`.")],
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="Tokenised sentences, one per line; plain or .xz.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File of the translations.")],
    beam: Annotated[int, typer.Option(metavar="N", help="Beam size.")] = 4,
    length_penalty: Annotated[float, typer.Option(metavar="NUMBER", help="α of GNMT's length penalty.")] = 0.6,
    positions: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Replace the trained encoding by one without learned parameters. A model trained with sinusoidal "
            "gives the same translations with sinusoidal-automaton (Proposition 1).",
        ),
    ] = None,
    threads: ThreadsOption = None,
) -> None:
    """Translate a text with a trained model.

    Example: gape translate run runs-translation/gape tst2013.en.xz -o output.vi
    """
    from gape._internal.files import check_writable
    from gape._internal.progress import ProgressDisplay
    from gape.experiments.translation.corpus import check_lines, read_lines, write_lines
    from gape.experiments.translation.folder import TranslationFolder
    from gape.experiments.translation.settings import BeamSettings
    from gape.experiments.translation.translator import translate as translate_lines

    settings, lines = BeamSettings(beam=beam, length_penalty=length_penalty), read_lines(source)
    check_lines(lines, source)
    check_writable(output)
    if output.exists() and output.samefile(source):
        raise ValueError(f"{output} is the text to translate; choose another file for the translations")
    _set_threads(threads)
    folder = TranslationFolder(model)
    transformer, vocabulary = folder.load()
    if positions is not None:
        trained = folder.settings()
        transformer.replace_positions(positions, seed=trained.training.seed)
        if {positions, trained.model.positions} - {"sinusoidal", "sinusoidal-automaton"}:
            typer.echo(f"gape: the model was trained with {trained.model.positions}, not with {positions}", err=True)
    with ProgressDisplay(amount="count") as display:
        translations = translate_lines(
            transformer,
            vocabulary,
            lines,
            settings,
            origin=str(source),
            progress=partial(display.update, f"translating {source.name}"),
        )
    write_lines(output, translations)
    count = len(translations)
    typer.echo(f"{output}: {count:,} {'translation' if count == 1 else 'translations'}")


@translate.command()
@needs("mt")
def rows(
    steps: Annotated[int, typer.Option(metavar="N", help="Number of updates per run.")],
    encoding: Annotated[
        str | None,
        typer.Option("--encoding", "-e", metavar="NAMES", help="Rows, separated by commas. Default: all nine."),
    ] = None,
    minutes: MinutesOption = None,
    after: Annotated[
        int | None,
        typer.Option(metavar="STEPS", help="Continue from the rows of this many steps instead of starting again."),
    ] = None,
    preset: PresetOption = "small",
    data: DataOption = "evbnews",
    languages: LanguagesOption = "en-vi",
    set_: SetOption = None,
    seed: SeedOption = 147,
    threads: ThreadsOption = 1,
    drop_empty: EmptyOption = False,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the runs.")] = Path("runs-translation"),
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="File of the results. Default: results/translation.jsonl; in --out for a folder of text.",
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Train the rows of the paper's comparison at equal steps, compare them, and write the results.

    Complete rows are skipped and interrupted ones are resumed; the exit code is 3 while rows are unfinished. Two calls
    with different rows can run at the same time.

    Example: gape translate rows --steps 1500 --minutes 60
    """
    from gape.experiments.runs.settings import parse_pairs
    from gape.experiments.translation.corpus import DATASETS
    from gape.experiments.translation.folder import TranslationFolder
    from gape.experiments.translation.results import collect
    from gape.experiments.translation.rows import ROWS, row_settings, run_rows

    names = list(ROWS) if encoding is None else [name.strip() for name in encoding.split(",")]
    results = results or (Path("results") if data in DATASETS else out) / "translation.jsonl"
    changes = parse_pairs(set_ or [])
    settings_for = partial(row_settings, names, preset_name=preset, data=_data_name(data), seed=seed, changes=changes)
    runs = settings_for(steps=steps)
    shorter: dict[str, Path] = {}
    if after is not None:
        shorter = {name: out / short for name, short in zip(runs, settings_for(steps=after), strict=True)}
    session = _session(data, languages, data_dir, threads, drop_empty)
    unfinished = run_rows(
        runs,
        lambda name, settings: session.train(settings, out / name, minutes, shorter.get(name)),
        lambda: collect(out, results),
    )
    if len(unfinished) == len(runs):  # no run of this call is complete, but runs of other calls may be
        collect(out, results)
    for line in unfinished:
        typer.echo(line)
    for name in runs:
        if (result := TranslationFolder(out / name).result()) is not None:
            scores = ", ".join(f"{bleu['lower-cased']:.2f} on {text}" for text, bleu in result["bleu"].items())
            typer.echo(f"{result['encoding']}: BLEU, lower-cased, {scores}")
    typer.echo(f"{results}: compared with sinusoidal; see `gape table translation --results {results.parent}`")
    if unfinished:
        raise typer.Exit(_UNFINISHED)


def _data_name(data: str) -> str:
    """Return the name of the text: of a folder its last component."""
    from gape.experiments.translation.corpus import DATASETS

    return data if data in DATASETS else Path(data).resolve().name


def _set_threads(threads: int | None) -> None:
    import torch

    if threads is not None:
        torch.set_num_threads(threads)


def _session(data: str, languages: str, data_dir: Path | None, threads: int | None, drop_empty: bool) -> Session:
    """Read the text once, for one run or many."""
    from gape.experiments.translation.rows import Session

    source, _, target = languages.partition("-")
    if not source or not target or "-" in target or source == target:
        raise ValueError(f"--languages must be two different extensions such as en-vi, got {languages!r}")
    _set_threads(threads)
    return Session.open(data, data_dir, drop_empty=drop_empty, languages=(source, target))
