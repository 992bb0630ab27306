"""What learning costs: training epochs with a learnable automaton beside the same encoding fixed, in one run.

    python benchmarks/learnable.py [--batches 6] [--states 32] [--repeats 5]

The graph transformer of the paper (ten layers, width 80) on PATTERN batches of 26 graphs. Fixed: GAPE computed once,
then a linear layer. Learnable: :class:`gape.nn.GAPE` with μ and α as parameters on a basis computed once. A step is
forward, backward and Adam; the sides take turns within one run, the fastest epoch over the batches of each counts, and
an epoch of 10,000 graphs is that scaled. Memory is measured in a process of its own for each side: the most that the
process took while training, less what it had before (library, data and bases included in what it had before).
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gape import Graph, encodings
from gape.bench.workloads import workload
from gape.nn import GAPE, Encoder, GAPEEncoder, GraphTransformer, LinearEncoder, WalkInput, walk_basis

GRAPHS = 26
# How many times the fixed encoding's epoch and memory each may cost.
TARGETS = {"node": 1.25, "closed": 1.5, "typed closed": None}
MEMORY_TARGET = 1.2
TYPED = {"states": 8, "readout": "closed", "labels": 3, "transition_by": "node", "length": 10, "matrix": "random_walk"}


@dataclass(eq=False)
class Step:
    """One batch: its graphs, what the encoder is given, and node labels as features."""

    graph: Graph
    given: Tensor | WalkInput | None
    x: Tensor


def batches(count: int) -> list[Graph]:
    whole = workload("PATTERN", graphs=count * GRAPHS).graph()
    return [whole.slice(i * GRAPHS, (i + 1) * GRAPHS) for i in range(count)]


def sides(states: int) -> dict[str, Callable[[], tuple[Encoder, Callable[[Graph, Tensor], Tensor | WalkInput]]]]:
    """By name: an encoder, and what it is given for a batch."""

    def fixed(readout: str):
        settings = encodings.GAPE(states=states, damping=0.9, relative=True, readout=readout)
        return LinearEncoder(states), lambda graph, x: settings(graph)

    def learned(**chosen):
        layer = GAPE(out_channels=80, **chosen)
        needed = layer.basis_settings

        def given(graph: Graph, x: Tensor) -> WalkInput:
            labels = x if layer.machine.labels > 1 else None
            return WalkInput(labels=labels, basis=walk_basis(graph, **needed))

        return GAPEEncoder(layer), given

    return {
        "fixed node": lambda: fixed("node"),
        "learned node": lambda: learned(states=states),
        "learned node, diagonal": lambda: learned(states=states, transition="diagonal"),
        "fixed closed": lambda: fixed("closed"),
        "learned closed": lambda: learned(states=states, readout="closed"),
        "learned closed, 20 lengths": lambda: learned(states=states, readout="closed", length=20),
        "learned typed closed": lambda: learned(**TYPED),
    }


def training(name: str, graphs: list[Graph], states: int) -> Callable[[], None]:
    """An epoch over the batches, everything that is computed once already computed."""
    torch.manual_seed(0)
    encoder, given = sides(states)[name]()
    model = GraphTransformer(inputs=3, out_channels=2, readout="node", encoding=encoder)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-4, fused=True)
    steps = []
    for graph in graphs:
        x = torch.randint(3, (graph.num_nodes,), generator=torch.Generator().manual_seed(0))
        steps.append(Step(graph, given(graph, x), x))

    def epoch() -> None:
        for step in steps:
            optimiser.zero_grad()
            out = model(step.x, step.graph.edge_index, step.graph.batch, step.given)
            torch.nn.functional.cross_entropy(out, step.x.clamp(max=1)).backward()
            optimiser.step()

    return epoch


def peak_memory(name: str, count: int, states: int) -> float:
    """MB that training takes beyond what was there before it, in a process of its own."""
    command = [sys.executable, __file__, "--memory-of", name, "--batches", str(count), "--states", str(states)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_memory(name: str, count: int, states: int) -> None:
    graphs = batches(count)
    epoch = training(name, graphs, states)
    with open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")  # the highest mark starts anew
    before = resident()
    epoch()
    print(highest() - before)


def resident() -> float:
    return _status("VmRSS")


def highest() -> float:
    try:
        return _status("VmHWM")
    except KeyError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _status(field: str) -> float:
    with open("/proc/self/status") as status:
        return {line.split(":")[0]: int(line.split()[1]) / 1024 for line in status if "kB" in line}[field]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--states", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        measure_memory(options.memory_of, options.batches, options.states)
        return
    graphs = batches(options.batches)
    nodes, edges = sum(g.num_nodes for g in graphs), sum(g.num_edges for g in graphs)
    print(
        f"PATTERN, {options.batches} batches of {GRAPHS} graphs ({nodes} nodes, {edges} edges), k = {options.states}, "
        f"{options.threads} thread(s), fastest of {options.repeats} epochs"
    )
    epochs, prepared = {}, {}
    for name in sides(options.states):
        begin = time.perf_counter()
        epochs[name] = training(name, graphs, options.states)
        prepared[name] = time.perf_counter() - begin
    best = dict.fromkeys(epochs, float("inf"))
    for _ in range(options.repeats):
        for name, epoch in epochs.items():
            begin = time.perf_counter()
            epoch()
            best[name] = min(best[name], time.perf_counter() - begin)
    memory = {name: peak_memory(name, 2, options.states) for name in epochs}
    for name, seconds in best.items():
        yardstick = "fixed closed" if "closed" in name else "fixed node"
        kind = "typed closed" if "typed" in name else "closed" if "closed" in name else "node"
        target = TARGETS[kind] if "learned" in name else None
        print(
            f"  {name:<27} {1e3 * seconds / options.batches:7.1f} ms a batch, epoch of 10,000 graphs "
            f"{seconds * 10_000 / (options.batches * GRAPHS):6.1f} s, {seconds / best[yardstick]:5.3f}× {yardstick}"
            f"{'' if target is None else f' (target ≤ {target}×)'}; memory {memory[name]:5.0f} MB, "
            f"{memory[name] / memory[yardstick]:5.3f}×{f' (target ≤ {MEMORY_TARGET}×)' if target else ''}; "
            f"prepared in {prepared[name]:.2f} s"
        )


if __name__ == "__main__":
    main()
