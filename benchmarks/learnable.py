"""Time and memory of training with a learnable automaton, compared with the same model and a fixed encoding.

    python benchmarks/learnable.py [--batches 6] [--repeats 5] [--only PATTERN]

The graph transformer of the paper (ten layers, width 80). PATTERN, batches of 26: GAPE computed once against
:class:`gape.nn.GAPE` with μ and α as parameters on a basis computed once, k = 32. ZINC, batches of 128: random walks
alone against random walks with a typed closed automaton (atom types drawn evenly from 28, which makes it no cheaper).
A step is forward, backward and Adam; the models alternate within one process, the shortest time of each batch counts,
and is scaled to an epoch of 10,000 graphs. CPU time is compared, which on one thread does not depend on other load;
wall-clock time is printed too. Memory is measured in a process per model: its peak while training, less what it had
before.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gape import Graph, encodings
from gape.experiments.graph_tasks.registry import learned
from gape.experiments.runtime.workloads import workload
from gape.nn import GAPE, Encoder, GAPEEncoder, GraphTransformer, LinearEncoder, WalkInput

EncoderInput = Callable[[Graph, Tensor], Tensor | WalkInput]

STATES = 32


@dataclass(frozen=True)
class Side:
    """An encoder with its input for a batch; ``time`` and ``memory`` limit the ratios to the model ``against``."""

    make: Callable[[], tuple[Encoder, EncoderInput]]
    against: str
    time: float | None = None
    memory: float | None = None


def fixed(encoding: encodings.Encoding, width: int) -> Callable[[], tuple[Encoder, EncoderInput]]:
    return lambda: (LinearEncoder(width), lambda graph, x: encoding(graph))


def automaton(**settings) -> Callable[[], tuple[Encoder, EncoderInput]]:
    def make() -> tuple[Encoder, EncoderInput]:
        layer = GAPE(**{"states": STATES, "out_channels": 80, **settings})
        return GAPEEncoder(layer), lambda graph, x: WalkInput(labels=x, basis=layer.prepare(graph))

    return make


def typed_with_walks() -> tuple[Encoder, EncoderInput]:
    encoder, walks = learned("gape-learned-typed").encoder(80, (28,)), encodings.RandomWalk(20)
    return encoder, lambda graph, x: WalkInput(labels=x, basis=encoder.prepare(graph), fixed=walks(graph))


RELATIVE = encodings.GAPE(states=STATES, damping=0.9, relative=True)
RELATIVE_CLOSED = encodings.GAPE(states=STATES, damping=0.9, relative=True, readout="closed")

#: By dataset: graphs per batch, node categories, pooling of the model, and the models.
TASKS = {
    "PATTERN": (
        26,
        3,
        "node",
        {
            "fixed node": Side(fixed(RELATIVE, STATES), "fixed node"),
            "learned node": Side(automaton(), "fixed node", 1.25, 1.2),
            "learned node, diagonal": Side(automaton(transition="diagonal"), "fixed node", 1.25, 1.2),
            "fixed closed": Side(fixed(RELATIVE_CLOSED, STATES), "fixed closed"),
            "learned closed": Side(automaton(readout="closed"), "fixed closed", 1.5, 1.2),
        },
    ),
    "ZINC": (
        128,
        28,
        "mean",
        {
            "RW": Side(fixed(encodings.RandomWalk(20), 20), "RW"),
            "RW + learned typed closed": Side(typed_with_walks, "RW", 1.5),
            "learned node": Side(automaton(), "RW"),
            "learned closed": Side(automaton(readout="closed"), "RW"),
            "learned typed node": Side(automaton(states=8, labels=28, transition_by="node"), "RW"),
            "the same, 10 lengths": Side(automaton(states=8, labels=28, transition_by="node", length=10), "RW"),
        },
    ),
}


def steps(task: str, side: str, count: int) -> list[Callable[[], None]]:
    """Return one training step per batch; everything that is computed once is computed."""
    size, categories, pooling, choices = TASKS[task]
    whole = workload(task, graphs=count * size).graph()
    torch.manual_seed(0)
    encoder, encoder_input = choices[side].make()
    model = GraphTransformer(inputs=categories, out_channels=2, pooling=pooling, encoding=encoder)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-4, fused=True)

    def step(graph: Graph) -> Callable[[], None]:
        x = torch.randint(categories, (graph.num_nodes,), generator=torch.Generator().manual_seed(0))
        encoding = encoder_input(graph, x)

        def run() -> None:
            optimiser.zero_grad()
            model(x, graph.edge_index, graph.batch, encoding).square().mean().backward()
            optimiser.step()

        return run

    return [step(whole.slice(i * size, (i + 1) * size)) for i in range(count)]


def memory(task: str, side: str) -> float:
    """Return the MB that training takes beyond what was there before it, in a new process."""
    command = [sys.executable, __file__, "--memory-of", side, "--only", task]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_memory(task: str, side: str) -> None:
    epoch = steps(task, side, 3)
    with open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")  # the highest mark starts anew
    before = _status("VmRSS")
    for step in epoch:
        step()
    print(_status("VmHWM") - before)


def _status(field: str) -> float:
    with open("/proc/self/status") as status:
        return {line.split(":")[0]: int(line.split()[1]) / 1024 for line in status if "kB" in line}[field]


def compare(task: str, count: int, repeats: int) -> None:
    size, _, _, choices = TASKS[task]
    print(f"{task}, {count} batches of {size} graphs, fastest of {repeats}")
    epochs = {side: steps(task, side, count) for side in choices}
    best = {side: [(float("inf"), float("inf"))] * count for side in choices}
    for _ in range(repeats):
        for i in range(count):
            for side, epoch in epochs.items():
                begin = time.process_time(), time.perf_counter()
                epoch[i]()
                spent = time.process_time() - begin[0], time.perf_counter() - begin[1]
                best[side][i] = min(best[side][i][0], spent[0]), min(best[side][i][1], spent[1])
    seconds = {side: sum(times[0] for times in each) for side, each in best.items()}
    clock = {side: sum(times[1] for times in each) for side, each in best.items()}
    megabytes = {side: memory(task, side) for side in choices}
    for name, side in choices.items():
        slower, larger = seconds[name] / seconds[side.against], megabytes[name] / megabytes[side.against]
        by_clock = clock[name] / clock[side.against]
        print(
            f"  {name:<26} {1e3 * seconds[name] / count:7.1f} ms per batch, epoch of 10,000 graphs "
            f"{seconds[name] * 10_000 / (count * size):6.1f} s, {slower:5.3f}× {side.against}{_target(side.time)}, "
            f"wall clock {by_clock:5.3f}×; memory {megabytes[name]:4.0f} MB, {larger:5.3f}×{_target(side.memory)}"
        )


def _target(most: float | None) -> str:
    return "" if most is None else f" (target ≤ {most}×)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=list(TASKS))
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        measure_memory(options.only, options.memory_of)
        return
    print(f"{options.threads} thread(s), k = {STATES}")
    for task in [options.only] if options.only else list(TASKS):
        compare(task, options.batches, options.repeats)


if __name__ == "__main__":
    main()
