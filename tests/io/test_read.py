"""Graph files say what was put into them, whatever their form, and bad ones are refused with the place."""

import gzip
import lzma
import sys
from contextlib import suppress

import networkx as nx
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset

from gape import Graph
from gape.data import pcqm4mv2
from gape.io import read_graphs, undirected
from gape.io.named_graphs import numbered

edges_of_named_graphs = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from("abcd"), st.sampled_from("abcd"), st.integers(1, 9)), min_size=1
)


def as_dict(named):
    """Graph name → {(source name, target name): weight}: what a file means, free of any numbering."""
    graph = named.graph
    graph_of = named.graph_of_node if named.graphs is not None else [None] * graph.num_nodes
    weights = [1.0] * graph.num_edges if graph.edge_weight is None else graph.edge_weight.tolist()
    found = {}
    for (u, v), weight in zip(graph.edge_index.T.tolist(), weights, strict=True):
        assert graph_of[u] == graph_of[v]
        edges = found.setdefault(graph_of[u], {})
        pair = str(named.nodes[u]), str(named.nodes[v])
        edges[pair] = edges.get(pair, 0) + weight
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(rows=edges_of_named_graphs)
def test_edge_lists_in_all_forms_mean_the_same(tmp_path, rows):
    expected = {}
    for graph, u, v, weight in rows:
        edges = expected.setdefault(graph, {})
        edges[u, v] = edges.get((u, v), 0) + weight
    columns = dict(zip(("graph", "source", "target", "weight"), zip(*rows, strict=True), strict=True))
    text = "\n".join(["source,weight,graph,target", *(f"{u}, {w},{g},{v}" for g, u, v, w in rows)]) + "\n\n"
    (tmp_path / "edges.csv").write_text(text, encoding="utf-8-sig")
    (tmp_path / "edges.tsv").write_text(text.replace(",", "\t"))
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "edges.csv.xz").write_bytes(lzma.compress(text.encode()))
    pyarrow.parquet.write_table(pyarrow.table({k: list(v) for k, v in columns.items()}), tmp_path / "edges.parquet")
    for name in ("edges.csv", "edges.tsv", "edges.csv.gz", "edges.csv.xz", "edges.parquet"):
        named = read_graphs(tmp_path / name)
        assert as_dict(named) == expected
        assert named.graphs.tolist() == list(dict.fromkeys(graph for graph, *_ in rows))


def test_whole_numbers_are_nodes_in_numeric_order_and_other_names_as_they_come(tmp_path):
    (tmp_path / "numbers.csv").write_text("source,target\n10,9\n9,2\n")
    (tmp_path / "names.csv").write_text("source,target\n10,09\n09,2\n")
    assert read_graphs(tmp_path / "numbers.csv").nodes.tolist() == [2, 9, 10]
    assert read_graphs(tmp_path / "names.csv").nodes.tolist() == ["10", "09", "2"]


def test_a_quoted_name_may_hold_commas_and_unicode(tmp_path):
    (tmp_path / "edges.csv").write_text('source,target\n"Curie, Marie",Łódź\n', encoding="utf-8")
    assert read_graphs(tmp_path / "edges.csv").nodes.tolist() == ["Curie, Marie", "Łódź"]


def test_columns_that_are_not_read_are_mentioned(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target,wieght\na,b,3\n")
    assert read_graphs(tmp_path / "edges.csv").notes == ("columns not read: wieght",)


def test_bad_rows_are_reported_with_file_line_and_content(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target,weight\na,b,1\n\na,,2\nc\nd,e,heavy\nd,e,nan\n")
    with pytest.raises(ValueError, match="4 bad rows") as caught:
        read_graphs(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    for part in ("line 4, 'a,,2'", "line 5, 'c'", "line 6, 'd,e,heavy'", "line 7, 'd,e,nan'"):
        assert part in message


def test_only_the_first_bad_rows_are_listed(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n" + "a,\n" * 40)
    with pytest.raises(ValueError, match=r"40 bad rows.*and 35 more$"):
        read_graphs(path)


def test_bad_parquet_rows_are_reported_with_their_number(tmp_path):
    path = tmp_path / "edges.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"source": ["a", None], "target": ["b", "c"]}), path)
    with pytest.raises(ValueError, match="row 2, ',c': no source"):
        read_graphs(path)


def test_nan_in_a_parquet_column_of_numbers_is_a_missing_name(tmp_path):
    path = tmp_path / "edges.parquet"
    columns = {"source": [1.0, float("nan"), 2.0], "target": [2.0, 3.0, float("nan")]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(ValueError, match=r"parquet: 2 bad rows\. row 2, 'nan,3.0': no source; row 3, .*no target"):
        read_graphs(path)
    pyarrow.parquet.write_table(pyarrow.table({"source": [1], "target": [2], "graph": [float("nan")]}), path)
    with pytest.raises(ValueError, match="no graph"):
        read_graphs(path)
    (tmp_path / "edges.csv").write_text("source,target\nnan,a\n")
    assert read_graphs(tmp_path / "edges.csv").nodes.tolist() == ["nan", "a"]


def test_names_in_parquet_are_text_or_numbers(tmp_path):
    path = tmp_path / "edges.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"source": [b"a"], "target": ["b"]}), path)
    assert read_graphs(path).nodes.tolist() == ["a", "b"]
    for column, complaint in (([[1]], "column source is list<"), ([b"\xff"], "column source .*can't decode byte 0xff")):
        pyarrow.parquet.write_table(pyarrow.table({"source": column, "target": ["b"]}), path)
        with pytest.raises(ValueError, match=complaint) as caught:
            read_graphs(path)
        assert str(path) in str(caught.value)


def test_a_row_over_several_lines_is_reported_where_it_begins(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text('source,target\n\n"a\nb",c\n"d\ne\nf"\n')
    with pytest.raises(ValueError, match=r"1 bad row\. line 5, 'd.*f': has 1 values"):
        read_graphs(path)


WORDY = b"""<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="w" for="edge" attr.name="weight"
    attr.type="string"/><graph edgedefault="directed"><node id="a"/><node id="b"/><edge source="a" target="b"><data
    key="w">heavy</data></edge></graph></graphml>"""


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("edges.csv", b"", "is empty"),
        ("edges.csv", b"source,target\n", "no edges"),
        ("edges.csv", b"left,right\na,b\n", "needs source,target"),
        ("edges.csv", b"source,source,target\na,b,c\n", "a column twice"),
        ("edges.csv", b"source,target\n\xff\xfe,b\n", r"line 2 is not UTF-8 text: b'\\xff\\xfe,b'"),
        ("edges.csv", b'source,target\n"' + b"a,b\n" * 50_000, "line 2: .* larger than field limit"),
        ("edges.csv.xz", b"source,target\n", "cannot be read as a table"),
        ("edges.csv.gz", b"source,target\n", "cannot be read as a table"),
        ("edges.csv.bz2", b"source,target\n", "cannot be read as a table"),
        ("edges.csv.gz", gzip.compress(b"source,target\n" * 9, mtime=0)[:-9], "cannot be read as a table"),
        ("edges.csv", b"SMILES\nCCO\n", "molecules need a column smiles"),
        ("smiles.csv", b"smiles\n", "no molecules"),
        ("edges.parquet", b"PAR1 nonsense", "cannot be read as parquet"),
        ("graph.graphml", b"<graphml", "cannot be read as GraphML"),
        ("graph.graphml", b"<graphml></graphml>", "cannot be read as GraphML"),
        ("graph.gml", b"graph [ nodes", "cannot be read as GML"),
        ("graph.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\0", "Market file: byte 57 is null"),
        ("matrix.npz", b"PK nonsense", "cannot be read as a sparse matrix: it is not an archive of arrays"),
        ("graph.graphml", WORDY, "edge 'a' – 'b' has weight 'heavy', which is not a number"),
        ("matrix.mtx", b"nonsense", "cannot be read as a Matrix Market file"),
        ("graph.pt", b"nonsense", "cannot be loaded safely"),
        ("graph.xls", b"", "known are .csv"),
        ("graph", b"", "known are .csv"),
    ],
)
def test_files_that_are_not_what_they_should_be_are_refused_in_one_line(tmp_path, name, content, complaint):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=complaint) as caught:
        read_graphs(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        read_graphs(tmp_path / "nowhere.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_graphs(tmp_path)


def test_networkx_files_keep_names_weights_and_lonely_nodes(tmp_path):
    graph = nx.Graph()
    graph.add_nodes_from(["alone", "b", "c"])
    graph.add_edge("c", "b", weight=2.5)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    nx.write_gml(graph, tmp_path / "g.gml")
    for name in ("g.graphml", "g.gml"):
        named = read_graphs(tmp_path / name)
        assert named.nodes.tolist() == ["alone", "b", "c"]
        assert as_dict(named) == {None: {("b", "c"): 2.5, ("c", "b"): 2.5}}


def test_gml_nodes_without_labels_are_named_by_id(tmp_path):
    (tmp_path / "g.gml").write_text("graph [ node [ id 7 ] node [ id 3 ] edge [ source 7 target 3 ] ]")
    assert read_graphs(tmp_path / "g.gml").nodes.tolist() == [7, 3]
    # Two labels of one node, a list for NetworkX, are no name.
    (tmp_path / "g.gml").write_text('graph [ node [ id 7 label "a" label "b" ] node [ id 3 label "c" ] ]')
    assert read_graphs(tmp_path / "g.gml").nodes.tolist() == [7, 3]


def test_sparse_matrices_in_all_forms_are_the_same_graph(tmp_path):
    matrix = scipy.sparse.random_array((6, 6), density=0.4, rng=np.random.default_rng(0), format="csr")
    scipy.sparse.save_npz(tmp_path / "scipy.npz", matrix)
    np.savez(tmp_path / "bare.npz", indptr=matrix.indptr.astype("u4"), indices=matrix.indices, data=matrix.data)
    scipy.io.mmwrite(tmp_path / "m.mtx", matrix, precision=17)
    for name in ("scipy.npz", "bare.npz", "m.mtx"):
        assert np.array_equal(read_graphs(tmp_path / name).graph.walk().dense()[0].numpy(), matrix.toarray())


def test_pyg_files_are_read_in_every_form_that_loads_safely(tmp_path):
    one = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    sized = Data(num_nodes=4, edge_index=torch.tensor([[0, 1], [1, 2]]))
    path = tmp_path / "graphs.pt"
    for held, sizes in ((one, [3]), ([one, one], [3, 3]), ([one, sized], [3, 4]), (sized.to_dict(), [4])):
        torch.save(held, path)
        assert read_graphs(path).graph.sizes.tolist() == sizes
    for held, sizes in (([one, one], [3, 3]), ([sized, sized], [4, 4]), ([one], [3])):
        InMemoryDataset.save(held, str(path))
        assert read_graphs(path).graph.sizes.tolist() == sizes
        data, slices = InMemoryDataset.collate(held)
        torch.save((data, slices), path)
        assert read_graphs(path).graph.sizes.tolist() == sizes


@pytest.mark.parametrize(
    ("held", "complaint"),
    [
        ([], "got an empty list"),
        ([1, 2], "got a list of numbers that starts with 1"),
        (Data(edge_index=torch.tensor([[0, 1], [1, 9]]), num_nodes=3), r"edge 1 is \[1, 9\]"),
        (Data(x=torch.ones(3, 1)), "has no edge_index"),
    ],
)
def test_pyg_files_without_graphs_are_named(tmp_path, held, complaint):
    path = tmp_path / "graphs.pt"
    torch.save(held, path)
    with pytest.raises(ValueError, match=complaint) as caught:
        read_graphs(path)
    assert str(path) in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(data=st.data(), legacy=st.booleans())
def test_damaged_pyg_files_are_refused_or_read(tmp_path, data, legacy):
    path = tmp_path / "graphs.pt"
    whole = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    torch.save(whole, path, _use_new_zipfile_serialization=not legacy)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), label="cut"):
        content = content[: data.draw(st.integers(0, len(content)))]
    else:
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with suppress(ValueError):  # and nothing else
        read_graphs(path)


@pytest.mark.parametrize("wrap", [lambda data: data, lambda data: [data], lambda data: (data, None)])
def test_a_data_without_contents_is_refused(tmp_path, wrap):
    bare = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    bare.__dict__.clear()
    path = tmp_path / "graphs.pt"
    torch.save(wrap(bare), path)
    with pytest.raises(ValueError, match="holds a Data without contents"):
        read_graphs(path)


def test_reading_pyg_files_leaves_what_torch_trusts_as_it_was(tmp_path):
    torch.save(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2), tmp_path / "graphs.pt")
    before = set(torch.serialization.get_safe_globals())
    read_graphs(tmp_path / "graphs.pt")
    assert set(torch.serialization.get_safe_globals()) == before


class Evil:
    def __reduce__(self):
        return print, ("this must never be printed",)


def test_pyg_files_run_no_code(tmp_path, capsys):
    path = tmp_path / "graphs.pt"
    hetero = HeteroData()
    hetero["a"].x = torch.ones(2, 1)
    batch = Batch.from_data_list([Data(num_nodes=1, edge_index=torch.zeros(2, 0, dtype=torch.int64))])
    for held, complaint in ((Evil(), "holds a print"), (hetero, "supported are"), (batch, "to_data_list"), (3, "int")):
        torch.save(held, path)
        with pytest.raises(ValueError, match=complaint):
            read_graphs(path)
    assert "printed" not in capsys.readouterr().out


def test_molecules_are_graphs_of_their_heavy_atoms(tmp_path):
    (tmp_path / "m.csv").write_text("graph,smiles\nethanol,CCO\nbenzene,c1ccccc1\nwater,O\n")
    named = read_graphs(tmp_path / "m.csv")
    assert named.graphs.tolist() == ["ethanol", "benzene", "water"]
    assert named.graph.sizes.tolist() == [3, 6, 1]
    assert named.graph.undirected
    assert named.nodes.tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 5, 0]


def test_molecules_without_rdkit_name_the_extra(tmp_path, monkeypatch):
    (tmp_path / "m.csv").write_text("smiles\nCCO\n")
    monkeypatch.setitem(sys.modules, "rdkit", None)
    pcqm4mv2._chemistry.cache_clear()
    for read in (lambda: read_graphs(tmp_path / "m.csv"), lambda: pcqm4mv2.molecule("CCO")):
        with pytest.raises(ImportError, match=r"reading SMILES needs RDKit: pip install 'gape\[smiles\]'"):
            read()


def test_bad_smiles_are_reported_with_their_line(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,y\nCCO,1\nC1CC,2\n,3\n")
    with pytest.raises(ValueError, match=r"line 3, 'C1CC,2': RDKit cannot.*line 4, ',3': no SMILES"):
        read_graphs(tmp_path / "m.csv")
    (tmp_path / "m.csv").write_text("graph,smiles\nx,CCO\nx,C\n")
    with pytest.raises(ValueError, match=r"line 3, 'x,C': graph 'x' is already on line 2"):
        read_graphs(tmp_path / "m.csv")


@settings(max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True))
def test_undirected_is_the_union_of_a_graph_and_its_reverse(pairs):
    graph = Graph.from_edges(pairs, num_nodes=6)
    dense = graph.walk().dense()[0]
    both = undirected(numbered(graph)).graph
    assert torch.equal(both.walk().dense()[0], torch.maximum(dense, dense.T))
    assert both.edge_weight is None


def test_undirected_takes_repeated_edges_in_any_order():
    # 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 in floating point.
    weight = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1]
    both = undirected(numbered(Graph.from_edges([(0, 1)] * 3 + [(1, 0)] * 3, edge_weight=weight))).graph
    assert both.undirected
    np.testing.assert_allclose(both.edge_weight, [0.6, 0.6], rtol=1e-15)


def test_undirected_refuses_two_different_weights_for_one_edge():
    graph = Graph.from_edges([(0, 1), (1, 0)], edge_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="0 → 1 has weight 1 and its reverse 2"):
        undirected(numbered(graph))


@pytest.mark.parametrize("kind", [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary(3)], ids=str)
def test_names_in_bytes_of_any_kind_are_text(tmp_path, kind):
    names = pyarrow.array([b"ann", b"bob"], kind)
    table = pyarrow.table({"source": names, "target": names.take([1, 0]), "weigth": [1.0, 2.0]})
    pyarrow.parquet.write_table(table, tmp_path / "g.parquet")
    named = read_graphs(tmp_path / "g.parquet")
    assert list(named.nodes) == ["ann", "bob"]
    assert named.notes == ("columns not read: weigth",)


def test_damaged_matrices_and_bad_numbers_are_named_with_their_file(tmp_path):
    path = tmp_path / "m.npz"
    scipy.sparse.save_npz(path, scipy.sparse.random_array((30, 30), density=0.3, rng=np.random.default_rng(0)))
    whole = path.read_bytes()
    complaints = []
    for place in range(0, len(whole), 13):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            read_graphs(path)
        except ValueError as error:
            complaints.append(str(error))
    assert len(complaints) > 50
    assert all(str(path) in complaint for complaint in complaints)
    bad = tmp_path / "b.graphml"
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=1.5)
    nx.write_graphml(graph, bad)
    bad.write_text(bad.read_text().replace("1.5", "abc"))
    with pytest.raises(ValueError, match=r"b.graphml cannot be read as GraphML: could not convert"):
        read_graphs(bad)


def test_the_ending_of_a_packed_file_may_have_capitals(tmp_path):
    path = tmp_path / "g.csv.GZ"
    with gzip.open(path, "wt") as file:
        file.write("source,target\n0,1\n")
    assert read_graphs(path).graph.num_edges == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "SRC,Dst,Edge_Weight\na,b,2\nb,c,1\n"),
        ("a.csv", "from;to;weight\na;b;2\nb;c;1\n"),
        ("a.csv", "\n\nu\tv\tweight\na\tb\t2\nb\tc\t1\n"),
        ("a.txt", "# Directed graph\n# FromNodeId\tToNodeId\na\tb\t2\nb\tc\t1\n"),
        ("a.edgelist", "a b {'weight': 2.0}\nb c {'weight': 1.0, 'colour': 'red'}\n"),
        ("a.txt", "source target weight\na b 2\nb c 1\n"),
    ],
)
def test_the_headers_and_separators_that_people_write_are_understood(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert as_dict(read_graphs(tmp_path / name)) == {None: {("a", "b"): 2.0, ("b", "c"): 1.0}}


def test_what_networkx_writes_is_read(tmp_path):
    graph = nx.gnp_random_graph(12, 0.3, seed=1, directed=True)
    nx.set_edge_attributes(graph, {edge: i + 1.0 for i, edge in enumerate(graph.edges)}, "weight")
    expected = {None: {(str(u), str(v)): w for u, v, w in graph.edges(data="weight")}}
    nx.write_edgelist(graph, tmp_path / "data.edgelist")
    nx.write_weighted_edgelist(graph, tmp_path / "weighted.edgelist")
    for name in ("data.edgelist", "weighted.edgelist"):
        assert as_dict(read_graphs(tmp_path / name)) == expected
    nx.write_edgelist(graph, tmp_path / "plain.txt", data=False)
    assert as_dict(read_graphs(tmp_path / "plain.txt")) == {None: dict.fromkeys(expected[None], 1.0)}


def test_a_table_without_header_needs_a_word(tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n2,3\n")
    with pytest.raises(ValueError, match=r"first line is 1,2.*--no-header"):
        read_graphs(tmp_path / "a.csv")
    assert read_graphs(tmp_path / "a.csv", header=False).graph.num_edges == 2
    with pytest.raises(ValueError, match="without a header columns have no names, got a"):
        read_graphs(tmp_path / "a.csv", header=False, source="a")


def test_bad_lines_of_words_are_reported(tmp_path):
    (tmp_path / "a.txt").write_text("# comment\na b\nc\na b 3 4\n")
    with pytest.raises(ValueError, match=r"2 bad rows. line 3, 'c': has 1 values.*line 4, 'a,b,3 4'"):
        read_graphs(tmp_path / "a.txt")
    (tmp_path / "a.edgelist").write_text("a b {'weight': 1}\na b {'weight': \n")
    with pytest.raises(ValueError, match=r"1 bad row\. line 2"):
        read_graphs(tmp_path / "a.edgelist")
    (tmp_path / "a.txt").write_text("# only comments\n")
    with pytest.raises(ValueError, match="no rows but comments"):
        read_graphs(tmp_path / "a.txt")


def test_reading_reports_the_rows_read(tmp_path):
    (tmp_path / "a.csv").write_text("source,target\n" + "a,b\n" * 10_000)
    seen = []
    read_graphs(tmp_path / "a.csv", progress=seen.append)
    assert seen == [4096, 8192, 10_000]


def test_columns_are_for_edge_lists(tmp_path):
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.eye_array(2, format="csr"))
    with pytest.raises(ValueError, match=r"columns and headers are for edge lists, and .npz files have none"):
        read_graphs(tmp_path / "a.npz", source="a")


def test_a_matrix_market_file_without_an_end_does_not_crash(tmp_path):
    # SciPy's reader runs past the end of this one.
    (tmp_path / "a.mtx").write_bytes(b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1x")
    assert as_dict(read_graphs(tmp_path / "a.mtx")) == {None: {("0", "1"): 1.0}}


def test_damage_that_once_escaped_is_refused(tmp_path):
    (tmp_path / "a.graphml").write_text("<?xml version='1.0' encoding='utf-0'?><graphml></graphml>")
    with pytest.raises(ValueError, match="cannot be read as GraphML: unknown encoding"):
        read_graphs(tmp_path / "a.graphml")
    packed = gzip.compress(b"source,target\n\xff,b\n" + bytes(range(256)) * 40)
    for end in range(20, len(packed)):
        (tmp_path / "a.csv.gz").write_bytes(packed[:end])
        with pytest.raises(ValueError, match=r"not UTF-8 text|cannot be read as a table"):
            read_graphs(tmp_path / "a.csv.gz")
