"""EVBNews (Ngo & Winiwarter, 2012): English-Vietnamese news, held-out articles for development and test."""

from __future__ import annotations

import random
import re
from pathlib import Path

from gape.experiments.translation.corpus import Corpus, read_corpus
from gape.experiments.translation.text import find_text, read_lines

#: Whole articles for development and test, of the 1,000 that there are.
HELD_OUT = 50
#: Which ones: a protocol, not a setting.
SPLIT_SEED = 2015


def read_evbnews(data_dir: Path) -> tuple[Corpus, Corpus, Corpus]:
    """Training, development and test text. No article is in two of them.

    News repeats itself: a training pair of which either side also stands in the development or test text, but for
    case, blanks and punctuation, is left out.
    """
    folder = data_dir / "evbnews-en-vi"
    paths = [find_text(folder, f"evbnews.{part}") for part in ("en", "vi", "docid")]
    source, target, articles = paths
    if source is None or target is None or articles is None:
        raise FileNotFoundError(f"{folder} must hold evbnews.en, evbnews.vi and evbnews.docid, plain or .xz")
    whole, article_of = read_corpus(source, target, name="evbnews"), read_lines(articles)
    if len(whole) != len(article_of):
        raise ValueError(f"{source} has {len(whole):,} lines and {articles} has {len(article_of):,}; one article each")
    return split_by_article(whole, article_of, HELD_OUT)


def split_by_article(whole: Corpus, article_of: list[str], held_out: int) -> tuple[Corpus, Corpus, Corpus]:
    """``held_out`` articles each for development and test, the same ones every time, and the rest for training.

    Example:
        >>> whole = Corpus("news", tuple("abcdef"), tuple("ABCDEF"))
        >>> split_by_article(whole, ["x", "x", "y", "y", "z", "z"], held_out=1)
        (Corpus('train', 2 pairs), Corpus('dev', 2 pairs), Corpus('test', 2 pairs))
    """
    articles = sorted(set(article_of))
    if len(articles) <= 2 * held_out:
        raise ValueError(f"{len(articles)} articles are too few to hold out {held_out} for development and for test")
    random.Random(SPLIT_SEED).shuffle(articles)
    dev_articles, test_articles = set(articles[:held_out]), set(articles[held_out : 2 * held_out])
    dev = [i for i, article in enumerate(article_of) if article in dev_articles]
    test = [i for i, article in enumerate(article_of) if article in test_articles]
    held = dev_articles | test_articles
    seen = {_words(side[i]) for i in dev + test for side in (whole.source, whole.target)}
    train = [
        i
        for i, article in enumerate(article_of)
        if article not in held and _words(whole.source[i]) not in seen and _words(whole.target[i]) not in seen
    ]
    return whole.take(train, "train"), whole.take(dev, "dev"), whole.take(test, "test")


def _words(line: str) -> str:
    """
    >>> _words('" Not yet , " she said .') == _words("“ not yet ” , she said")
    True
    """
    return re.sub(r"\W+", "", line.lower())
