"""Train a translation model with GAPE on your own text; here a translation is the reversed sentence.

Without positions a transformer sees a bag of words, so it cannot learn this. The same from the shell, on files:
`gape translate train --data FOLDER --languages de-fr -e gape --set pieces=2000 --out RUN`.

Needs Lightning, sentencepiece and sacrebleu: pip install 'gape[mt]'
"""

import random
import tempfile
from pathlib import Path

from gape.experiments.translation import Corpus, Splits, TranslationFolder, preset, train, translate

chance = random.Random(0)
words = ["one", "two", "three", "four"]


def text(name: str, size: int) -> Corpus:
    sentences = [[chance.choice(words) for _ in range(chance.randint(2, 5))] for _ in range(size)]
    return Corpus(name, tuple(map(" ".join, sentences)), tuple(" ".join(reversed(sentence)) for sentence in sentences))


splits = Splits(train=text("train", 500), dev=text("dev", 20), tests=(text("test", 50),))
tiny = {"layers": 1, "width": 32, "feed_forward": 64, "heads": 4, "max_positions": 32, "pieces": 20}
short = {"word_dropout": 0.0, "steps": 300, "validate_every": 300, "tokens": 300, "learning_rate": 5e-3}
bleu = {}
for positions in ("gape", "none"):
    settings = preset("small", data="backwards", positions=positions, **tiny, **short)
    with tempfile.TemporaryDirectory() as folder:
        result = train(settings, splits, folder)  # writes settings, checkpoints, translations and scores there
        model, vocabulary = TranslationFolder(Path(folder)).load()  # the best checkpoint
        print(f"{positions} translates: {translate(model, vocabulary, ['one two three four'])[0]}")
    bleu[positions] = result["bleu"]["test"]["lower-cased"]
    print(f"{positions}: BLEU {bleu[positions]:.0f}")
print("positions matter:", bleu["gape"] > bleu["none"] + 10)
