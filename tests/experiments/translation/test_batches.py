"""Batches: every pair once, no more tokens than allowed, order from seed and epoch alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gape.experiments.translation.batches import BatchPlan
from gape.experiments.translation.corpus import Corpus
from gape.experiments.translation.vocabulary import Vocabulary

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=200).map(tuple)


@given(LENGTHS, st.integers(1, 300), st.integers(-5, 5), st.integers(0, 3))
def test_every_pair_comes_once_and_fits(lengths, tokens, seed, epoch):
    plan = BatchPlan(lengths, tokens, seed, pool=2)
    for batches in (plan.epoch(epoch), plan.in_order()):
        assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
        for batch in batches:
            assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens


@given(LENGTHS, st.integers(0, 40), st.integers(1, 40))
def test_steps_are_the_epochs_laid_end_to_end(lengths, first, count):
    plan = BatchPlan(lengths, tokens=100)
    end_to_end, epoch = [], 0
    while len(end_to_end) < first + count:
        end_to_end += plan.epoch(epoch)
        epoch += 1
    assert plan.steps(first, count) == end_to_end[first : first + count]


def test_order_depends_on_seed_and_epoch():
    plan = BatchPlan(tuple(range(1, 60)) * 5, tokens=200, seed=1)
    assert plan.epoch(3) == plan.epoch(3)
    assert plan.epoch(3) != plan.epoch(4)
    assert plan.epoch(3) != BatchPlan(plan.lengths, 200, seed=2).epoch(3)


def test_buckets_leave_little_padding():
    lengths = tuple(5 + (i * 37) % 50 for i in range(4000))
    batches = BatchPlan(lengths, tokens=1000).epoch(0)
    padded = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    assert sum(lengths) / padded > 0.95


def test_the_same_text_gives_the_same_vocabulary_and_gets_back():
    text = Corpus("t", ("the cat ’s hat &quot;",) * 30, ("Chiếc mũ của con mèo",) * 30)
    vocabulary = Vocabulary.train(text, 60)
    assert vocabulary.model == Vocabulary.train(text, 60).model
    assert len(vocabulary) == 60
    for line in (*text.source, *text.target):
        assert vocabulary.decode(vocabulary.encode(line)) == line
    with pytest.raises(ValueError, match="cannot give a vocabulary of 100000 pieces: at most"):
        Vocabulary.train(text, 100_000)
    with pytest.raises(ValueError, match="not a sentencepiece model"):
        Vocabulary(b"nonsense")
