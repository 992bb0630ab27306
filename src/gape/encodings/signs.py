"""Signs of eigenvectors: one rule for all, and random flips for training."""

from __future__ import annotations

import torch
from torch import Tensor

# Cubes that cancel to this relative size count as a tie.
TIE = 1e-6


def fix_signs(vectors: Tensor) -> Tensor:
    """Turn eigenvectors ``[B, n, k]`` so that the sum of the cubes of their entries is positive.

    The rule does not depend on the order of the nodes. A vector whose cubes cancel, as that of a symmetric graph
    such as a path or an even cycle does, has no sign that could be told without the order of the nodes; there the
    first entry that is not negligible is made positive.

    Example:
        >>> fix_signs(torch.tensor([[[-0.9], [0.1]], [[-0.5], [0.5]]])).squeeze(-1)
        tensor([[ 0.9000, -0.1000],
                [ 0.5000, -0.5000]])
    """
    cubes = vectors**3
    total, size = cubes.sum(1), cubes.abs().sum(1)
    clear = total.abs() > TIE * size
    notable = vectors.abs() > 1e-3 * vectors.abs().amax(1, keepdim=True)
    first = notable.to(torch.int8).argmax(1, keepdim=True)
    leading = vectors.gather(1, first).squeeze(1)
    sign = torch.where(torch.where(clear, total, leading) < 0, -1.0, 1.0).to(vectors.dtype)
    return vectors * sign.unsqueeze(1)


def random_flips(encoding: Tensor, *, generator: torch.Generator, batch: Tensor | None = None) -> Tensor:
    """Multiply each column by a random sign, for training with eigenvectors (Dwivedi et al., 2020).

    Args:
        encoding: ``[num_nodes, k]``, of a mini-batch.
        generator: where the signs come from; draw afresh for each mini-batch, and do not flip when evaluating.
        batch: ``[num_nodes]``, the graph of each node, for signs of its own for each graph. ``None`` for the same
            signs on all graphs of the mini-batch, as the authors have it. Never a sign per node, which would destroy
            the encoding.

    Example:
        >>> flipped = random_flips(torch.ones(3, 4), generator=torch.Generator().manual_seed(0))
        >>> bool((flipped == flipped[0]).all()), flipped.abs().sum().item()
        (True, 12.0)
    """
    graphs = 1 if batch is None else int(batch.max()) + 1 if len(batch) else 0
    drawn = torch.randint(0, 2, (graphs, encoding.shape[1]), generator=generator, device=generator.device)
    signs = (2 * drawn - 1).to(encoding.device, encoding.dtype)
    return encoding * (signs if batch is None else signs[batch])
