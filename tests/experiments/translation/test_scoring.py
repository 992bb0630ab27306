"""Scores: the authors' published outputs score what they published."""

import math
import re
from collections import Counter

import pytest

from gape.cli import main
from gape.experiments.translation.corpus import detokenise, read_lines
from gape.experiments.translation.scoring import compare, score

PUBLISHED = {
    "GAPE-32.5": 32.45,
    "sine-32.6": 32.63,
    "RW-20.8": 20.75,
    "LAPEC-17.4": 17.42,
    "LAPEC10k-16.4": 16.42,
    "LAPEP-17.3": 17.27,
    "SA-16.9": 16.87,
    "spd-0.0": 0.00,
}


@pytest.mark.parametrize(("name", "bleu"), PUBLISHED.items())
def test_published_outputs_score_what_was_published(real_data, name, bleu):
    folder = real_data / "iwslt15-en-vi"
    references = read_lines(folder / "tst2013.vi.xz")
    lower, cased, _ = score(read_lines(folder / "paper-outputs" / f"OUT-{name}.txt.xz"), references)
    assert lower.name == "lower-cased"
    assert round(lower.bleu, 2) == bleu
    if name == "GAPE-32.5":
        assert round(cased.bleu, 2) == 31.61


def test_score_command_prints_three_scores_with_signatures(real_data, capsys):
    folder = real_data / "iwslt15-en-vi"
    files = ["paper-outputs/OUT-GAPE-32.5.txt.xz", "tst2013.vi.xz"]
    with pytest.raises(SystemExit):
        main(
            ["translate", "score", *(str(folder / name) for name in files), "--raw", str(folder / "raw/tst2013.vi.xz")]
        )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("BLEU 32.45 lower-cased (nrefs:1|case:lc|eff:no|tok:none|smooth:none|version:")
    assert lines[1].startswith("BLEU 31.61 cased (nrefs:1|case:mixed|eff:no|tok:none|")
    assert "detokenised (nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|" in lines[2]


def test_gape_and_sinusoids_of_the_authors_do_not_differ_significantly_but_lape_does(real_data):
    folder = real_data / "iwslt15-en-vi"
    systems = {
        name: read_lines(folder / "paper-outputs" / f"OUT-{name}.txt.xz")
        for name in ("sine-32.6", "GAPE-32.5", "LAPEC-17.4")
    }
    found = compare(systems, read_lines(folder / "tst2013.vi.xz"), baseline="sine-32.6", samples=200)
    assert found["GAPE-32.5"].p_value > 0.05
    assert found["LAPEC-17.4"].p_value < 0.05
    assert found["sine-32.6"].low < 32.63 < found["sine-32.6"].high


def by_hand(hypotheses, references):
    """BLEU (Papineni et al., 2002) in a few lines."""
    logs, said, meant = 0.0, 0, 0
    for n in range(1, 5):
        right = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            grams = [
                Counter(zip(*(tokens[i:] for i in range(n)), strict=False))
                for tokens in (hypothesis.lower().split(), reference.lower().split())
            ]
            right += (grams[0] & grams[1]).total()
            total += grams[0].total()
            said += len(hypothesis.split()) * (n == 1)
            meant += len(reference.split()) * (n == 1)
        if not right:
            return 0.0
        logs += math.log(right / total) / 4
    return 100 * math.exp(logs + min(0.0, 1 - meant / said))


def test_lower_cased_score_is_bleu_as_defined():
    references = ["Tôi là một giáo viên ở Hà Nội .", "Anh ấy đã đi rồi phải không ?"]
    hypotheses = ["tôi là một giáo viên Hà Nội .", "anh ấy đã đi phải không ?"]
    assert score(hypotheses, references)[0].bleu == pytest.approx(by_hand(hypotheses, references))
    assert score(["xa lạ"] * 2, references)[0].bleu == by_hand(["xa lạ"] * 2, references) == 0.0


def test_unequal_numbers_are_refused():
    with pytest.raises(ValueError, match="got 2 translations and 1 references"):
        score(["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("Xin chào , các bạn !", "Xin chào, các bạn!"),
        ("&quot; Có &quot; , anh nói ( hai lần ) .", '"Có", anh nói (hai lần).'),
        ("It &apos;s 5 % of Kim &apos;s .", "It's 5% of Kim's."),
    ],
)
def test_detokenised_text(tokens, text):
    assert detokenise(tokens) == text


@pytest.mark.parametrize(
    ("said", "meant", "complaint"),
    [
        ("a\nb\n", "A\n", r"said.vi has 2 lines and .*meant.vi has 1; .*meant.vi ends after line 1"),
        ("a\n", "A\nB\n", r"said.vi has 1 lines and .*meant.vi has 2; .*said.vi ends after line 1"),
        ("a\nb\n", "A\n\n", r"meant.vi, line 2: the line is empty"),
        ("", "", r"meant.vi has no lines"),
        (b"a\n\xe1\n", "A\nB\n", r"said.vi, line 2: byte 1 \(0xe1\) is not UTF-8"),
    ],
)
def test_score_command_refuses_files_that_do_not_fit_with_file_and_line(tmp_path, capsys, said, meant, complaint):
    for name, content in (("said.vi", said), ("meant.vi", meant)):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SystemExit) as exit_:
        main(["translate", "score", str(tmp_path / "said.vi"), str(tmp_path / "meant.vi")])
    assert exit_.value.code not in (0, None)
    assert re.search(complaint, capsys.readouterr().err.replace("\n", " "))


def test_a_system_that_says_the_same_does_not_differ():
    lines = ["một hai ba bốn năm", "sáu bảy tám chín mười", "hai ba bốn năm sáu"]
    said = [*lines[:2], "khác"]
    found = compare({"base": said, "same": list(said), "better": lines}, lines, baseline="base", samples=100)
    assert found["same"].p_value == 1.0
    assert found["base"].p_value is None
    assert found["better"].bleu > found["same"].bleu == found["base"].bleu
