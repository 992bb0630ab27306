"""What a solver that does not notice singular equations gives away on CYCLES.

    python benchmarks/singular.py [--graphs 1000]

A 6-cycle has the eigenvalue 1, as has the row-stochastic μ of the star variants: where the labels excite it, the
equation has no solution. SciPy's Sylvester solver in float32, as in the released code, returns something large there
and says nothing. So how well does the *size* of an encoding tell graphs with a 6-cycle from graphs without one? For
every variant the share of singular graphs in both classes, and the accuracy of the best threshold on the largest
weight of a graph, with our least-squares solution and with the other. One half is right by chance, a little more by
choosing the threshold on the graphs it is judged on.
"""

import argparse
import warnings

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import gape.data
from gape import as_graph
from gape.bench.protocol import settings
from gape.bench.rows import ROWS
from gape.bench.runtime.sylvester import sylvester_encoding
from gape.encodings import GAPE, make
from gape.encodings.node_softmax import node_softmax
from gape.solvers import AlgebraicOnlyWarning, Status


def by_sylvester(machine: GAPE, data: gape.data.GraphDataset) -> list[float]:
    """The largest weight of each graph as the released code computes it: SciPy in float32."""
    automaton, largest = machine.automaton, []
    for i in range(len(data)):
        graph = machine.labelled(as_graph(data[i]))
        labels = torch.zeros(graph.num_nodes, dtype=torch.int64) if graph.labels is None else graph.labels
        softmax = machine.initial == "softmax_nodes"
        source = node_softmax(automaton, graph).T if softmax else automaton.initial[:, labels]
        matrix = np.zeros((graph.num_nodes, graph.num_nodes), dtype=np.float32)
        matrix[tuple(data[i].edge_index.numpy())] = 1.0
        weights = sylvester_encoding(automaton.transition.numpy().astype("f4"), matrix, source.numpy().astype("f4"))
        largest.append(float(np.abs(weights).max()))
    return largest


def best_threshold(values: list[float], classes: np.ndarray) -> float:
    """Accuracy of the best rule "above (or below) so much"."""
    ranked = classes[np.argsort(values, kind="stable")]
    below, above = np.cumsum(ranked == 0), np.cumsum(ranked[::-1] == 1)[::-1]
    right = np.concatenate([[above[0]], below[:-1] + above[1:], [below[-1]]])
    return float(max(right.max(), len(classes) - right.min()) / len(classes))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--graphs", type=int, default=1000, help="of the test part")
    data = gape.data.load("cycles").split()[2][: words.parse_args().graphs]
    classes = data.targets.numpy()
    table = Table("encoding", "singular, no 6-cycle", "singular, 6-cycle", "size by ours", "by SciPy, float32")
    for row in ROWS:
        if not row.name.startswith("gape"):
            continue
        machine = make(row.name, **settings("cycles", row.name).encoding_options)
        assert isinstance(machine, GAPE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlgebraicOnlyWarning)
            solution = machine.solve(data.batch())
        singular = np.array([status is Status.LEAST_SQUARES for status in solution.status])
        ours = [float(part.abs().max()) for part in torch.split(solution.weights, data.node_counts.tolist())]
        shares = [f"{singular[classes == c].mean():.0%}" for c in (0, 1)]
        sizes = [f"{best_threshold(values, classes):.1%}" for values in (ours, by_sylvester(machine, data))]
        table.add_row(row.title, *shares, *sizes)
    Console().print(table)


if __name__ == "__main__":
    main()
