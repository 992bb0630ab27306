"""BREC: graph6 against NetworkX, and the file's form."""

import lzma

import networkx as nx
import numpy as np
import pytest

from gape.data import BREC, load
from gape.data.brec import CATEGORIES, decode_graph6


@pytest.mark.parametrize("nodes", [0, 1, 2, 5, 62, 63, 70, 130])
def test_graph6_is_read_as_networkx_reads_it(nodes):
    graph = nx.gnp_random_graph(nodes, 0.3, seed=nodes)
    text = nx.to_graph6_bytes(graph, header=False).decode().strip()
    size, edges = decode_graph6(text)
    assert size == nodes
    assert edges.tolist() == sorted([min(e), max(e)] for e in graph.edges())


@pytest.mark.parametrize("text", ["", "~", "Bww", "D", "B\x1f", "~~?????"])
def test_damaged_graph6_is_refused(text):
    with pytest.raises(ValueError, match="not a graph6 string"):
        decode_graph6(text)


def write(folder, rows):
    (folder / "brec").mkdir()
    with lzma.open(folder / "brec" / "brec_pairs.tsv.xz", "wt") as file:
        file.write("\n".join(["category\tfirst\tsecond", *("\t".join(row) for row in rows), ""]))


def test_pairs_lie_behind_each_other(tmp_path):
    texts = [nx.to_graph6_bytes(nx.cycle_graph(n), header=False).decode().strip() for n in (3, 4, 5, 6)]
    write(tmp_path, [("cfi", *texts[:2]), ("basic", *texts[2:])])
    dataset = load("brec", tmp_path)
    assert dataset.node_counts.tolist() == [3, 4, 5, 6]
    assert [CATEGORIES[y] for y in dataset.targets.tolist()] == ["cfi", "cfi", "basic", "basic"]
    assert len(dataset.split()[2]) == 4
    assert load("brec", tmp_path, category="basic").node_counts.tolist() == [5, 6]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"brec_pairs.tsv.xz"):
        BREC().build(tmp_path)
    write(tmp_path, [("easy", "Bw", "Bw")])
    with pytest.raises(ValueError, match="must have the columns category, first, second"):
        BREC().build(tmp_path)
    with pytest.raises(ValueError, match="category must be '' or one of basic"):
        BREC(category="easy")
    assert np.all(np.array([len(name) for name in CATEGORIES]) > 0)
