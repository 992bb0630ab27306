"""Beam search equals slow searches without a cache, one sentence at a time."""

import itertools

import pytest
import torch

from gape.experiments.translation.batches import source_batch
from gape.experiments.translation.positions import ENCODINGS
from gape.experiments.translation.settings import BeamSettings
from gape.experiments.translation.transformer import BEGIN, END, PAD
from gape.experiments.translation.translator import Hypothesis, beam_search, length_penalty

SENTENCES = [[4, 5, 6, 7, 8], [9, 10], [11, 4, 4], [5], [6, 6, 6, 6, 9, 8, 4]]


@torch.no_grad()
def next_pieces(model, sentence, written):
    """Compute log-probabilities of the next piece without a cache."""
    found = model(source_batch([sentence]), torch.tensor([[BEGIN, *written]]))[0, -1].log_softmax(-1)
    found[[PAD, BEGIN]] = -torch.inf
    return found


def greedy(model, sentence, extra):
    written = []
    while len(written) < len(sentence) + 1 + extra:
        piece = int(next_pieces(model, sentence, written).argmax())
        if piece == END:
            break
        written.append(piece)
    return tuple(written)


def slow_beam(model, sentence, settings):
    """Run the same search for one sentence, without a cache."""
    longest = len(sentence) + 1 + settings.extra_length
    live, done = [((), 0.0)], []
    while True:
        grown = []
        for written, score in live:
            for piece, more in enumerate(next_pieces(model, sentence, written).tolist()):
                grown.append(((*written, piece), score + more))
        grown.sort(key=lambda hypothesis: -hypothesis[1])
        for written, score in grown[: settings.beam]:
            if written[-1] == END and score > -torch.inf:
                done.append((written[:-1], score / length_penalty(len(written), settings.length_penalty)))
        live = [hypothesis for hypothesis in grown if hypothesis[0][-1] != END][: settings.beam]
        best = max(done, key=lambda hypothesis: hypothesis[1], default=None)
        bound = live[0][1] / length_penalty(longest, settings.length_penalty)
        if len(live[0][0]) >= longest:
            if best is None:
                written, score = live[0]
                return written, score / length_penalty(len(written), settings.length_penalty)
            return best
        if len(done) >= settings.beam or (best is not None and best[1] >= bound):
            return best


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_beam_of_one_is_greedy_search(tiny, name):
    model = tiny(name)
    found = beam_search(model, source_batch(SENTENCES), BeamSettings(beam=1, extra_length=8))
    assert [hypothesis.pieces for hypothesis in found] == [greedy(model, sentence, 8) for sentence in SENTENCES]
    assert len({hypothesis.pieces for hypothesis in found}) > 1


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_batched_and_kept_equals_one_by_one_and_from_scratch(tiny, name, seed):
    model, settings = tiny(name, seed=seed, spread=0.6), BeamSettings(beam=4, extra_length=6)
    found = beam_search(model, source_batch(SENTENCES), settings)
    for sentence, hypothesis in zip(SENTENCES, found, strict=True):
        written, score = slow_beam(model, sentence, settings)
        assert hypothesis.pieces == written
        assert hypothesis.score == pytest.approx(score, abs=1e-3)


def test_a_beam_as_wide_as_the_space_finds_the_best_of_all(tiny):
    model = tiny(vocabulary=6, spread=0.5)
    longest = 4  # pieces, or pieces and the end
    settings = BeamSettings(beam=4**longest, extra_length=longest - 3)
    for sentence in ([4, 5], [5, 5], [4, 4]):
        scores = {}
        for length in range(longest):
            for written in itertools.product([1, 4, 5], repeat=length):
                total = sum(next_pieces(model, sentence, written[:i])[written[i]] for i in range(length))
                total = total + next_pieces(model, sentence, written)[END]
                scores[written] = float(total) / length_penalty(length + 1, settings.length_penalty)
        best = max(scores, key=scores.__getitem__)
        (found,) = beam_search(model, source_batch([sentence]), settings)
        assert found.pieces == best
        assert found.score == pytest.approx(scores[best], abs=1e-3)


def test_finished_sentences_are_not_computed_on(tiny, monkeypatch):
    model, sizes = tiny(spread=0.6), []
    decoder = type(model.decoder[0])
    original = decoder.attend_source
    monkeypatch.setattr(
        decoder, "attend_source", lambda self, x, *rest: sizes.append(len(x)) or original(self, x, *rest)
    )
    beam_search(model, source_batch(SENTENCES), BeamSettings(beam=2, extra_length=20))
    assert sizes[0] == len(SENTENCES)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < len(SENTENCES)


def test_a_translation_that_never_ends_stops_at_its_longest_length(tiny):
    model = tiny()
    with torch.no_grad():
        # No end is ever likely.
        model.decoder_norm.bias.copy_(-20 * model.embedding.weight[END])
    found = beam_search(model, source_batch([[4, 5], [6]]), BeamSettings(beam=3, extra_length=5))
    assert [len(hypothesis.pieces) for hypothesis in found] == [8, 7]
    found = beam_search(model, source_batch([[4] * 60]), BeamSettings(beam=2, extra_length=50))
    assert len(found[0].pieces) == 63


def test_a_model_in_training_mode_is_refused(tiny):
    with pytest.raises(ValueError, match=r"call model.eval\(\) first"):
        beam_search(tiny().train(), source_batch([[4]]))


def test_hypotheses_are_plain_values():
    assert Hypothesis((4,), -1.0) == Hypothesis((4,), -1.0)
