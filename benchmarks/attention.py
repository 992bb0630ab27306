"""Time training steps of our graph transformer and of the same network built from PyG's ``TransformerConv``.

    python benchmarks/attention.py --threads 1

Both networks have ten layers, width 80, eight heads, BatchNorm, a feed-forward network of twice the width and
the same pooling; PyG's layer has no clamp, so it is the baseline of ours with and without one. A step is forward,
backward and Adam. The batches imitate the published ones: ZINC (128 molecules of about 23 atoms), PATTERN (26
stochastic block models of about 119 nodes, density about 0.43) and CYCLES (25 sparse graphs of about 49 nodes).
Steps of both alternate within one process, and the fastest step of each counts, because machines are noisy.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.nn import TransformerConv, global_add_pool

from gape.nn import GraphTransformer

Graphs = tuple[Tensor, Tensor, int]  # edge_index, batch, number of graphs

HIDDEN, HEADS, LAYERS = 80, 8, 10

# Required speed-up of a training step over PyG, by task and clamp.
TARGETS = {("zinc", 5.0): 1.0, ("zinc", None): 1.0, ("pattern", 5.0): 2.5, ("pattern", None): 4.0}


def tree_with_rings(n: int, rings: int, generator: torch.Generator) -> Tensor:
    """Draw a random tree with parents close to their children, plus a few ring-closing edges, like a molecule."""
    child = torch.arange(1, n)
    parent = (child - torch.randint(1, 3, (n - 1,), generator=generator)).clamp(min=0)
    start = torch.randint(0, n - 5, (rings,), generator=generator)
    return torch.stack([torch.cat([child, start]), torch.cat([parent, start + 5])])


def block_model(sizes: Tensor, inside: float, across: float, generator: torch.Generator) -> Tensor:
    """Draw the edges u < v of a stochastic block model."""
    block = torch.repeat_interleave(sizes)
    chance = torch.where(block[:, None] == block, inside, across)
    return (torch.rand(chance.shape, generator=generator) < chance).triu(1).nonzero().T


def zinc(generator: torch.Generator) -> list[tuple[int, Tensor]]:
    sizes = (23.2 + 4.5 * torch.randn(128, generator=generator)).round().clamp(9, 37).int().tolist()
    return [(n, tree_with_rings(n, 3, generator)) for n in sizes]


def cycles(generator: torch.Generator) -> list[tuple[int, Tensor]]:
    sizes = torch.randint(37, 62, (25,), generator=generator).tolist()
    return [(n, tree_with_rings(n, 2, generator)) for n in sizes]


def pattern(generator: torch.Generator) -> list[tuple[int, Tensor]]:
    graphs = []
    for _ in range(26):
        sizes = torch.randint(5, 35, (6,), generator=generator)
        graphs.append((int(sizes.sum()), block_model(sizes, 0.5, 0.41, generator)))
    return graphs


def collate(graphs: list[tuple[int, Tensor]]) -> Graphs:
    sizes = torch.tensor([n for n, _ in graphs])
    first = sizes.cumsum(0) - sizes
    half = torch.cat([edges + start for (_, edges), start in zip(graphs, first, strict=True)], 1)
    return torch.cat([half, half.flip(0)], 1), torch.repeat_interleave(sizes), len(graphs)


class PyGLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = TransformerConv(HIDDEN, HIDDEN // HEADS, HEADS, root_weight=False, bias=False)
        self.output = nn.Linear(HIDDEN, HIDDEN)
        self.norm1, self.norm2 = nn.BatchNorm1d(HIDDEN), nn.BatchNorm1d(HIDDEN)
        self.feed_forward = nn.Sequential(nn.Linear(HIDDEN, 160), nn.ReLU(), nn.Linear(160, HIDDEN))

    def forward(self, h: Tensor, edge_index: Tensor) -> Tensor:
        h = self.norm1(h + self.output(self.attention(h, edge_index)))
        out: Tensor = self.norm2(h + self.feed_forward(h))
        return out


class PyGTransformer(nn.Module):
    def __init__(self, out_channels: int, node_level: bool) -> None:
        super().__init__()
        self.node_level = node_level
        self.embedding = nn.Embedding(28, HIDDEN)
        self.layers = nn.ModuleList(PyGLayer() for _ in range(LAYERS))
        self.output_layers = nn.Sequential(
            nn.Linear(80, 40), nn.ReLU(), nn.Linear(40, 20), nn.ReLU(), nn.Linear(20, out_channels)
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        h = self.embedding(x)
        for layer in self.layers:
            h = layer(h, edge_index)
        out: Tensor = self.output_layers(h if self.node_level else global_add_pool(h, batch, num_graphs))
        return out


def training_step(model: nn.Module, x: Tensor, graphs: Graphs) -> Callable[[], None]:
    edge_index, batch, num_graphs = graphs
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-4, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        model(x, edge_index, batch, num_graphs=num_graphs).square().mean().backward()
        optimiser.step()

    return step


def inference(model: nn.Module, x: Tensor, graphs: Graphs) -> Callable[[], None]:
    edge_index, batch, num_graphs = graphs

    def step() -> None:
        model.eval()
        with torch.no_grad():
            model(x, edge_index, batch, num_graphs=num_graphs)
        model.train()

    return step


def fastest(steps: list[Callable[[], None]], repeats: int) -> list[float]:
    """Return the seconds of the fastest repetition of each step; the steps alternate."""
    best = [float("inf")] * len(steps)
    for _ in range(repeats + 1):  # the first round is included: a minimum does not mind a warm-up
        for i, step in enumerate(steps):
            begin = time.perf_counter()
            step()
            best[i] = min(best[i], time.perf_counter() - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--only", choices=["zinc", "pattern", "cycles"])
    settings = parser.parse_args()
    torch.set_num_threads(settings.threads)
    tasks: list[tuple[str, Callable[[torch.Generator], list[tuple[int, Tensor]]], int, bool]] = [
        ("zinc", zinc, 1, False),
        ("cycles", cycles, 2, False),
        ("pattern", pattern, 2, True),
    ]
    print(f"{settings.threads} thread(s), fastest of {settings.repeats + 1}; times in ms per batch")
    for name, make, out_channels, node_level in tasks:
        if settings.only not in (None, name):
            continue
        graphs = collate(make(torch.Generator().manual_seed(0)))
        num_nodes, num_edges = len(graphs[1]), graphs[0].shape[1]
        cells = int(torch.bincount(graphs[1]).square().sum())
        print(f"\n{name}: {graphs[2]} graphs, {num_nodes} nodes, {num_edges} edges, density {num_edges / cells:.2f}")
        x = torch.randint(28, (num_nodes,), generator=torch.Generator().manual_seed(0))
        torch.manual_seed(0)
        models: dict[str, nn.Module] = {"PyG TransformerConv": PyGTransformer(out_channels, node_level)}
        targets = [""]
        for clamp in (5.0, None):
            models[f"gape, clamp={clamp}"] = GraphTransformer(
                28, out_channels, pooling="node" if node_level else "sum", clamp=clamp
            )
            targets.append(f"   target {TARGETS[name, clamp]}×" if (name, clamp) in TARGETS else "")
        times = fastest([training_step(model, x, graphs) for model in models.values()], settings.repeats)
        forward = fastest([inference(model, x, graphs) for model in models.values()], settings.repeats)
        for i, label in enumerate(models):
            epoch = times[i] * 10_000 / graphs[2]
            print(
                f"  {label:<20} step {1e3 * times[i]:8.1f}  ({times[0] / times[i]:4.2f}× PyG)   "
                f"inference {1e3 * forward[i]:7.1f}  ({forward[0] / forward[i]:4.2f}×)   "
                f"epoch of 10,000 graphs {epoch:6.1f} s{targets[i]}"
            )


if __name__ == "__main__":
    main()
