"""Show what a solver that does not notice singular equations reveals about the classes of CYCLES.

    python benchmarks/singular.py [--graphs 1000] [--variant matched]
    python benchmarks/singular.py --train gape-star-20 [--task cycles] [--seed 41] [--set key=value ...]

A 6-cycle has the eigenvalue 1, as has the row-stochastic μ of the star variants: where the labels excite it, the
equation has no solution. SciPy's Sylvester solver in float32, as in the released code, returns something large there
and does not warn. How well does the *size* of an encoding separate graphs with a 6-cycle from graphs without one? For
every variant, the table has the share of singular graphs in both classes, and the accuracy of the best threshold on the
largest weight of a graph, with our least-squares solution and with SciPy's. Chance is one half, and a little more since
the threshold is chosen on the same graphs. With ``--train`` the cell of that encoding is trained on what SciPy
returned, and otherwise as in ``gape bench``: about ten minutes.
"""

import argparse
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import gape.data
from gape.encodings import GAPE, make
from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.data import EncodedDataset, FixedBatches
from gape.experiments.graph_tasks.network import build_network, evaluate
from gape.experiments.graph_tasks.registry import ROWS
from gape.experiments.graph_tasks.settings import Settings, protocol_settings
from gape.experiments.graph_tasks.training import train_fold
from gape.experiments.runs.settings import parse_pairs
from gape.experiments.runtime.baselines import dense_adjacency, dense_rhs, sylvester_encoding
from gape.solvers import AlgebraicOnlyWarning, Status

GAPES = [row for row in ROWS if row.name.startswith("gape")]


def by_sylvester(machine: GAPE, data: gape.data.GraphDataset) -> list[torch.Tensor]:
    """Compute the weights of each graph as the released code does: SciPy in float32."""
    transition = machine.automaton.transition.numpy().astype("f4")
    found = (
        sylvester_encoding(transition, dense_adjacency(graph).astype("f4"), dense_rhs(machine, graph).astype("f4"))
        for graph in data
    )
    return [torch.from_numpy(weights) for weights in found]


def cell_encoding(chosen: Settings) -> GAPE:
    """Return the encoding of a cell."""
    machine = make(chosen.encoding, **chosen.encoding_options)
    assert isinstance(machine, GAPE)
    return machine


def best_threshold(weights: Sequence[torch.Tensor], classes: np.ndarray) -> float:
    """Return the accuracy of the best threshold on the largest weight of a graph."""
    values = [float(part.abs().max()) for part in weights]
    ranked = classes[np.argsort(values, kind="stable")]
    below, above = np.cumsum(ranked == 0), np.cumsum(ranked[::-1] == 1)[::-1]
    right = np.concatenate([[above[0]], below[:-1] + above[1:], [below[-1]]])
    return float(max(right.max(), len(classes) - right.min()) / len(classes))


def trained(chosen: Settings) -> tuple[float, float]:
    """Train a cell on SciPy's weights; return test accuracy at best validation and at the last epoch."""
    data = gape.data.load(chosen.task, **chosen.data)
    encoded = EncodedDataset(data.with_node_attribute("pe", torch.cat(by_sylvester(cell_encoding(chosen), data))))
    test = FixedBatches(encoded, data.splits[0].test, chosen.batch_size)
    with tempfile.TemporaryDirectory() as folder:
        state = train_fold(chosen, encoded, 0, Path(folder))
    network = build_network(chosen, encoded)
    best, last = (evaluate(network, weights, test, data.task) for weights in (state.best_weights, state.weights))
    return best["accuracy"], last["accuracy"]


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--graphs", type=int, default=1000, help="of the test part")
    words.add_argument("--train", metavar="ENCODING", choices=[row.name for row in GAPES], help="train a cell instead")
    words.add_argument("--task", choices=["cycles", "cycles-v"], default="cycles", help="of the cell to train")
    words.add_argument("--variant", default="matched", help="of the data; the figures in the docs are of `matched`")
    words.add_argument("--seed", type=int, default=41, help="of the cell to train")
    words.add_argument("--set", nargs="*", default=[], metavar="key=value", help="settings of the cell to train")
    chosen = words.parse_args()
    if chosen.train is not None:
        pairs = {"data.variant": chosen.variant, **parse_pairs(chosen.set)}
        cell = Cell(chosen.task, chosen.train, chosen.seed, pairs)
        best, last = trained(cell.settings)
        print(f"{cell.name} by SciPy: test accuracy {best:.4f} at best validation, {last:.4f} at the last epoch")
        return
    data = gape.data.load("cycles", variant=chosen.variant).split()[2][: chosen.graphs]
    classes = data.targets.numpy()
    table = Table("encoding", "singular, no 6-cycle", "singular, 6-cycle", "size by ours", "by SciPy, float32")
    for row in GAPES:
        machine = cell_encoding(protocol_settings("cycles", row.name))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlgebraicOnlyWarning)
            solution = machine.solve(data.batch())
        singular = np.array([status is Status.LEAST_SQUARES for status in solution.status])
        ours = torch.split(solution.weights, data.node_counts.tolist())
        shares = [f"{singular[classes == c].mean():.0%}" for c in (0, 1)]
        sizes = [f"{best_threshold(weights, classes):.1%}" for weights in (ours, by_sylvester(machine, data))]
        table.add_row(row.title, *shares, *sizes)
    Console().print(table)


if __name__ == "__main__":
    main()
