"""The model: masks, interchangeable encodings, dropout, and Proposition 1."""

import math

import pytest
import torch

from gape.experiments.translation.batches import source_batch, target_batch
from gape.experiments.translation.positions import ENCODINGS
from gape.experiments.translation.settings import BeamSettings
from gape.experiments.translation.transformer import PAD, UNKNOWN, Dropout, ModelSettings, Transformer
from gape.experiments.translation.translator import beam_search

SOURCES = [[4, 5, 6, 7, 8], [9, 10], [11, 4, 4]]
TARGETS = [[5, 4, 7, 6], [8, 9, 10, 11, 5, 6], [7]]


@pytest.mark.parametrize("name", ENCODINGS)
def test_padding_changes_nothing(tiny, name):
    model = tiny(name)
    together = model(source_batch(SOURCES), target_batch(TARGETS)[:, :-1])
    for i, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = model(source_batch([source]), target_batch([target])[:, :-1])[0]
        torch.testing.assert_close(together[i, : len(alone)], alone, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_later_token_changes_nothing_before_it(tiny, name):
    model = tiny(name)
    source, target = source_batch(SOURCES[:1]), target_batch(TARGETS[1:2])
    scores = model(source, target)
    for place in range(1, target.shape[1]):
        changed = target.clone()
        changed[0, place] = 4 + (changed[0, place] - 3) % 8
        assert not torch.equal(changed, target)
        torch.testing.assert_close(model(source, changed)[:, :place], scores[:, :place], rtol=1e-4, atol=1e-4)
        assert not torch.allclose(model(source, changed)[:, place], scores[:, place], atol=1e-3)
    # Nor does it matter that there are later tokens.
    torch.testing.assert_close(model(source, target[:, :3]), scores[:, :3], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", sorted(set(ENCODINGS) - {"none"}))
def test_the_order_of_the_source_matters_with_an_encoding(tiny, name):
    # In float64: eigenvectors of a cycle of 10,000 nodes hardly change from one position to the next.
    model, target = tiny(name).double(), target_batch([[5, 6]])
    forwards, backwards = source_batch([[4, 5, 6, 7, 8]]), source_batch([[6, 5, 4, 8, 7]])
    assert (model(forwards, target) - model(backwards, target)).abs().max() > 1e-5


def test_without_an_encoding_the_source_is_a_bag(tiny):
    model, target = tiny("none"), target_batch([[5, 6]])
    forwards, backwards = source_batch([[4, 5, 6, 7, 8]]), source_batch([[8, 6, 5, 7, 4]])
    torch.testing.assert_close(model(forwards, target), model(backwards, target), rtol=1e-4, atol=1e-4)


def test_all_but_the_encoding_starts_from_the_same_weights():
    settings = {"layers": 1, "width": 32, "feed_forward": 8, "heads": 4, "max_positions": 16}
    models = [Transformer(ModelSettings(positions=name, **settings), 20, seed=3) for name in ENCODINGS]
    for model in models[1:]:
        for key, tensor in models[0].state_dict().items():
            if not key.startswith("positions."):
                assert torch.equal(tensor, model.state_dict()[key])


def test_building_a_model_leaves_the_global_random_state_alone():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    Transformer(ModelSettings(layers=1, width=8, feed_forward=8, heads=2, max_positions=8), 9)
    assert torch.rand(1) == expected


def test_gape_is_saved_with_the_model(tiny):
    model, other = tiny("gape", seed=1), tiny("gape", seed=2)
    table = model.state_dict()["positions.table"]
    assert not torch.equal(table, other.state_dict()["positions.table"])
    other.load_state_dict(model.state_dict())
    source, target = source_batch(SOURCES), target_batch(TARGETS)
    assert torch.equal(model(source, target), other(source, target))


def test_word_dropout_hides_words_and_nothing_else(tiny):
    model = tiny("none", dropout=0.0, attention_dropout=0.0, word_dropout=0.999)
    model.train()
    source, target = source_batch(SOURCES), target_batch(TARGETS)
    torch.manual_seed(0)
    hidden = model(source, target)
    model.eval()
    unknown = [tokens.masked_fill(tokens > 3, UNKNOWN) for tokens in (source, target)]
    torch.testing.assert_close(hidden, model(*unknown), rtol=1e-4, atol=1e-4)


def test_the_loss_is_per_piece_and_ignores_padding(tiny):
    model = tiny()
    source, target = source_batch(SOURCES), target_batch(TARGETS)
    probabilities = model(source, target[:, :-1]).log_softmax(-1)
    expected, count = 0.0, 0
    for i in range(len(target)):
        for j in range(1, target.shape[1]):
            if target[i, j] != PAD:
                row = probabilities[i, j - 1]
                expected -= 0.9 * row[target[i, j]] + 0.1 * row.mean()
                count += 1
    torch.testing.assert_close(model.loss(source, target, 0.1), expected / count, rtol=1e-5, atol=1e-5)


def test_excluded_pieces_are_never_generated_and_take_no_part_in_the_loss(tiny):
    model = tiny()
    model.restrict_output([5, 6, 7, 9, 10])
    source, target = source_batch(SOURCES), target_batch([[5, 7], [6, 9, 10], [7]])
    scores = model(source, target[:, :-1])
    said = [3, 5, 6, 7, 9, 10]
    assert torch.isfinite(scores).all(0).all(0).nonzero().flatten().tolist() == said
    rows, wanted = scores.log_softmax(-1)[..., said], target[:, 1:]
    expected = [
        -0.9 * rows[i, j, said.index(wanted[i, j])] - 0.1 * rows[i, j].mean() for i, j in (wanted != PAD).nonzero()
    ]
    torch.testing.assert_close(model.loss(source, target, 0.1), sum(expected) / len(expected), rtol=1e-5, atol=1e-5)
    found = beam_search(model, source, BeamSettings(extra_length=9))
    assert {piece for hypothesis in found for piece in hypothesis.pieces} <= {5, 6, 7, 9, 10}
    other = tiny(seed=1)
    other.load_state_dict(model.state_dict())  # it is saved with the weights
    assert beam_search(other, source, BeamSettings(extra_length=9)) == found


def test_sinusoidal_automaton_translates_like_the_sinusoids_token_by_token(tiny):
    """Proposition 1 in the model."""
    sentences = torch.randint(4, 40, (30, 11), generator=torch.Generator().manual_seed(0))
    source = source_batch(sentences.tolist())
    for seed in range(3):
        baseline = tiny("sinusoidal", vocabulary=40, seed=seed)
        automaton = tiny("sinusoidal-automaton", vocabulary=40, seed=seed)
        said = [found.pieces for found in beam_search(baseline, source, BeamSettings(extra_length=20))]
        assert said == [found.pieces for found in beam_search(automaton, source, BeamSettings(extra_length=20))]
        assert len(set(said)) > 5


def test_too_long_a_sequence_is_refused(tiny):
    model = tiny(max_positions=8)
    with pytest.raises(ValueError, match="9 tokens is longer than the 8 positions"):
        model.encode(source_batch([[4] * 8]))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"positions": "gap"}, "there is no position encoding 'gap'; there are sinusoidal, gape"),
        ({"heads": 3}, "heads must divide width, got heads=3 and width=512"),
        ({"dropout": 1.0}, "dropout must be at least 0 and less than 1"),
        ({"layers": 0}, "layers must be at least 1"),
    ],
)
def test_wrong_settings_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        ModelSettings(**settings)


def test_a_target_piece_outside_the_output_is_refused(tiny):
    model = tiny()
    model.restrict_output([5, 6, 7])
    source, target = torch.tensor([[4, 5, 3]]), torch.tensor([[2, 6, 9, 3]])
    with pytest.raises(ValueError, match=r"target contains pieces \[9\], which restrict_output\(\) excluded"):
        model.loss(source, target, 0.1)
    assert model.loss(source, torch.tensor([[2, 6, 7, 3]]), 0.1).isfinite()


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_dropout_entries_are_zeroed_with_their_probability_and_the_mean_stays(p):
    torch.manual_seed(0)
    count = 400_001  # not a multiple of the entries that share a number
    found = Dropout(p)(torch.ones(count))
    deviation = math.sqrt(p * (1 - p) / count)
    assert abs((found == 0).double().mean().item() - p) < 5 * deviation + 2**-16
    assert abs(found.double().mean().item() - 1) < 5 * deviation / (1 - p)
    assert len(found.unique()) == 2


def test_dropout_neighbours_are_dropped_independently():
    torch.manual_seed(0)
    dropped = (Dropout(0.5)(torch.ones(100_000, 4)) == 0).double()
    correlation = torch.corrcoef(torch.cat([dropped, dropped.roll(1, 0)], 1).T)
    assert (correlation - torch.eye(8)).abs().max() < 5 / math.sqrt(100_000)


def test_dropout_gradient_passes_where_the_entry_did():
    torch.manual_seed(0)
    x = torch.randn(7, 9, requires_grad=True)
    found = Dropout(0.4)(x)
    found.sum().backward()
    torch.testing.assert_close(x.grad * x, found)


def test_dropout_seed_decides_and_evaluation_changes_nothing():
    drop, x = Dropout(0.5), torch.randn(50)
    torch.manual_seed(1)
    once = drop(x)
    torch.manual_seed(1)
    assert torch.equal(once, drop(x))
    assert not torch.equal(once, drop(x))
    assert drop.eval()(x) is x
    assert Dropout(0.0)(x) is x
    with pytest.raises(ValueError, match=r"p must be at least 0 and less than 1, got 1.0"):
        Dropout(1.0)
