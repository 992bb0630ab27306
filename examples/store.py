"""Never compute the same thing twice: a folder of encodings, found by graphs and settings.

Needs NetworkX: pip install 'gape[cli]'
"""

import tempfile
import time

import networkx as nx

import gape

graphs = [nx.random_regular_graph(3, 400, seed=i) for i in range(8)]
batch = gape.as_graph(graphs)
encoding = gape.encodings.RandomWalk(length=64, dtype="float64")
with tempfile.TemporaryDirectory() as folder:  # gape.Store() alone uses $GAPE_CACHE, or the platform's cache folder
    store = gape.Store(folder)
    for turn in ("computed", "found"):
        started = time.perf_counter()
        pe = store.encode(batch, encoding)
        print(f"{turn}: {tuple(pe.shape)} in {1000 * (time.perf_counter() - started):.0f} ms")
    print(store.path(batch, encoding).name, f"{store.size / 1e6:.1f} MB")
