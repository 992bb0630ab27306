"""Text files, plain and xz: errors with file and line, and splits without overlap."""

import lzma

import pytest

from gape.experiments.translation.corpus import (
    Corpus,
    detokenise,
    load_splits,
    read_corpus,
    read_lines,
    split_by_article,
    unescape,
)


@pytest.fixture
def write(tmp_path):
    def put(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(lzma.compress(data) if name.endswith(".xz") else data)
        return path

    return put


def test_plain_and_compressed_files_read_alike(write):
    text = "Xin chào\nhai\u2028ba\x85bốn\r\nnăm"
    assert (
        read_lines(write("a.vi", text))
        == read_lines(write("b.vi.xz", text))
        == ["Xin chào", "hai\u2028ba\x85bốn", "năm"]
    )


@pytest.mark.parametrize(
    ("source", "target", "complaint"),
    [
        ("a\nb\n", "A\n", r"a.en has 2 lines and .*a.vi has 1; .*a.vi ends after line 1"),
        ("a\n \nc\n", "A\nB\nC\n", r"a.en, line 2: the line is empty"),
        ("a\nb\nc\n", "A\nB\n\n", r"a.vi, line 3: the line is empty.*drop_empty=True \(--drop-empty\) drops"),
        (b"a\nb\xff\n", "A\nB\n", r"a.en, line 2: byte 2 \(0xff\) is not UTF-8 in b'b\\xff'"),
        ("", "", "contain no pair of sentences"),
    ],
)
def test_bad_corpora_are_refused_with_file_and_line(write, source, target, complaint):
    with pytest.raises(ValueError, match=complaint):
        read_corpus(write("a.en", source), write("a.vi", target))


def test_a_broken_archive_and_a_missing_file_are_named(write, tmp_path):
    path = write("a.en.xz", "a\n" * 1000)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"a.en.xz is not a complete xz file"):
        read_lines(path)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*b.en"):
        read_lines(tmp_path / "b.en")
    with pytest.raises(ValueError, match=r"is a folder; expected a text file"):
        read_lines(tmp_path)


def test_empty_lines_can_be_dropped_on_both_sides(write):
    corpus = read_corpus(write("a.en", "a\n\nc\n"), write("a.vi", "A\nB\nC\n"), drop_empty=True)
    assert (corpus.source, corpus.target) == (("a", "c"), ("A", "C"))


def test_articles_are_in_one_split_only_and_nothing_tested_was_trained_on():
    articles = [f"N{i // 3:02}" for i in range(90)]
    source = tuple(f"s{i}" if i % 7 else "said again" for i in range(90))
    target = tuple(f"t{i}" if i % 11 else "nói lại" for i in range(90))
    train, dev, test = split_by_article(Corpus("all", source, target), articles, held_out=4)
    assert len(dev) == len(test) == 12
    held_out = {*dev.source, *dev.target, *test.source, *test.target}
    assert not held_out & {*train.source, *train.target}
    assert "said again" not in train.source
    again = split_by_article(Corpus("all", source, target), articles, held_out=4)
    assert again == (train, dev, test)
    with pytest.raises(ValueError, match="30 articles are too few to hold out 15"):
        split_by_article(Corpus("all", source, target), articles, held_out=15)


def test_training_text_does_not_repeat_the_test_in_other_case_or_punctuation():
    articles = [f"N{i // 2}" for i in range(60)]
    # Every sentence stands in two articles, once as it is and once shouted.
    source = tuple(f"sentence {i // 4}" if i % 4 < 2 else f'" Sentence {i // 4} ! "' for i in range(60))
    whole = Corpus("all", source, tuple(f"câu {i}" for i in range(60)))
    train, dev, test = split_by_article(whole, articles, held_out=3)
    numbers = [{int("".join(filter(str.isdigit, line))) for line in part.source} for part in (train, dev, test)]
    assert numbers[0]
    assert not numbers[0] & (numbers[1] | numbers[2])


def test_data_sets_are_found_in_the_iwslt_layout_and_in_a_folder_of_ones_own(write, tmp_path):
    for name in ("iwslt15-en-vi/train", "iwslt15-en-vi/tst2012", "own/train", "own/dev", "own/test"):
        write(f"{name}.en.xz", "it &apos;s\n")
        write(f"{name}.vi", "nó\n")
    with pytest.raises(FileNotFoundError, match=r"no tst2013.en and tst2013.vi"):
        load_splits("iwslt15", tmp_path)
    for name in ("tst2013.en", "tst2013.vi"):
        write(f"iwslt15-en-vi/{name}", "x\n")
    assert load_splits("iwslt15", tmp_path).train.source == ("it &apos;s",)
    assert load_splits(str(tmp_path / "own")).tests[0].target == ("nó",)
    with pytest.raises(ValueError, match="there is no dataset or folder 'iwslt'; there are evbnews, iwslt15"):
        load_splits("iwslt", tmp_path)


def test_entities_come_back():
    line = "R&amp;D &lt; [ 5 ] | &quot; it &apos;s &quot; &amp;quot;"
    assert unescape(line) == 'R&D < [ 5 ] | " it \'s " &quot;'


def test_real_evbnews_splits_by_article(real_data):
    splits = load_splits("evbnews", real_data)
    train, dev, test = splits.train, splits.dev, splits.tests[0]
    assert len(train) + len(dev) + len(test) <= 45_308
    assert len(train) > 39_000
    assert min(len(dev), len(test)) > 2_000
    assert not {*dev.source, *test.source} & set(train.source)
    assert splits.tests[1].name == "tst2013"
    assert not any("&apos;" in line for line in splits.tests[1].source)


def test_detokenised_real_text_is_close_to_the_untokenised(real_data):
    tokenised = read_lines(real_data / "iwslt15-en-vi" / "tst2013.vi.xz")
    raw = read_lines(real_data / "iwslt15-en-vi" / "raw" / "tst2013.vi.xz")
    same = sum(" ".join(a.split()) == detokenise(b) for a, b in zip(raw, tokenised, strict=True))
    assert same / len(raw) > 0.8


def test_the_first_empty_line_of_real_training_text_is_named(real_data):
    folder = real_data / "iwslt15-en-vi"
    with pytest.raises(ValueError, match=r"train_head1000.en.xz, line 470: the line is empty"):
        read_corpus(folder / "train_head1000.en.xz", folder / "train_head1000.vi.xz")
    assert len(read_corpus(folder / "train_head1000.en.xz", folder / "train_head1000.vi.xz", drop_empty=True)) == 999


def test_a_byte_order_mark_is_no_word(write):
    assert read_lines(write("a.en", b"\xef\xbb\xbfhello\nyou\n")) == ["hello", "you"]


def test_own_folders_may_hold_other_languages_and_only_training_pairs_are_dropped(write):
    for part in ("train", "dev", "test"):
        folder = write(f"{part}.de", "eins\n\ndrei\n" if part == "train" else "eins\n").parent
        write(f"{part}.fr", "un\ndeux\ntrois\n" if part == "train" else "un\n")
    found = load_splits(str(folder), drop_empty=True, languages=("de", "fr"))
    assert found.train.source == ("eins", "drei")
    assert found.digest == load_splits(str(folder), drop_empty=True, languages=("de", "fr")).digest
    assert found.digest != load_splits(str(folder), drop_empty=True, languages=("fr", "de")).digest
    with pytest.raises(
        FileNotFoundError, match=r"must contain train.en and train.vi, plain or .xz; .* set languages \(--languages\)"
    ):
        load_splits(str(folder))
    with pytest.raises(
        ValueError, match=r"^languages \(--languages\) applies to a folder of your own; evbnews is en-vi, got 'vi-en'"
    ):
        load_splits("evbnews", languages=("vi", "en"))
    write("test.fr", "\n")
    with pytest.raises(
        ValueError, match=r"test.fr, line 1: the line is empty.*, drop_empty=True \(--drop-empty\) drops"
    ):
        load_splits(str(folder), drop_empty=True, languages=("de", "fr"))
