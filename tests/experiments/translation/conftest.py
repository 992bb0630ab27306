"""Fixtures of the translation tests: tiny models, and a small language to learn."""

import random

import pytest
import torch

from gape.experiments.translation.corpus import Corpus, Splits
from gape.experiments.translation.transformer import ModelSettings, Transformer


@pytest.fixture
def tiny():
    """Makes a tiny model with random weights, in evaluation mode."""

    def make(positions="sinusoidal", vocabulary=12, seed=0, spread=1.0, **settings):
        defaults = {"layers": 2, "width": 32, "feed_forward": 32, "heads": 4, "max_positions": 64}
        model = Transformer(ModelSettings(positions=positions, **{**defaults, **settings}), vocabulary, seed=seed)
        # Initial weights give nearly uniform scores; larger ones make outputs depend on every input.
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "norm" not in name:
                    parameter.add_(spread * 0.3 * torch.randn(parameter.shape, generator=generator))
        return model.eval()

    return make


@pytest.fixture(scope="session")
def mirror() -> Splits:
    """A language whose translations are the reversed sentences in other words, so that only order matters."""
    words = ["a", "be", "cat", "dog", "eel", "fox"]
    chance = random.Random(0)

    def part(name: str, size: int) -> Corpus:
        sentences = [[chance.choice(words) for _ in range(chance.randint(1, 6))] for _ in range(size)]
        return Corpus(
            name,
            tuple(" ".join(sentence) for sentence in sentences),
            tuple(" ".join(f"{word}o" for word in reversed(sentence)) for sentence in sentences),
        )

    return Splits(part("train", 400), part("dev", 20), (part("test", 20),))
