"""Baselines that count edges or isolated nodes: scores that an encoding has to beat."""

import torch

from gape.data.dataset import GraphDataset


def edge_count_baseline(dataset: GraphDataset, fold: int = 0) -> float:
    """Compute the test accuracy of a classifier that sees only the numbers of nodes and edges, for two classes.

    For each number of nodes, one threshold on the number of edges and its direction are chosen on the training graphs.
    A number of nodes that is not among the training graphs takes the threshold of the nearest one that is.

    Returns: a fraction; 0.5 means that the counts carry no information.

    Example:
        >>> from gape.data.planar import Planar
        >>> small = Planar(train=200, val=20, test=100, smallest=20, largest=20)
        >>> bool(edge_count_baseline(small.build(cache=False, processes=1, show=False)) > 0.6)
        True
    """
    _check_two_classes(dataset, "edge-count")
    train, _, test = dataset.split(fold)
    rules: dict[int, tuple[float, bool]] = {}
    for size in torch.unique(train.node_counts).tolist():
        mine = train.node_counts == size
        rules[size] = _best_threshold(train.edge_counts[mine], train.targets[mine] == 1)
    known = torch.tensor(sorted(rules))
    hits = 0
    for size, edges, target in zip(
        test.node_counts.tolist(), test.edge_counts.tolist(), test.targets.tolist(), strict=True
    ):
        threshold, sparse_is_one = rules[int(known[(known - size).abs().argmin()])]
        hits += int(((edges < threshold) == sparse_is_one) == (target == 1))
    return hits / len(test)


def isolated_node_baseline(dataset: GraphDataset, fold: int = 0) -> float:
    """Compute the test accuracy of a classifier that sees only the number of nodes without edges, for two classes.

    A transformer that attends to neighbours, without features and without encoding, sees nothing else: attention over
    no neighbours is zero, and over neighbours with equal features it is the same everywhere. One threshold is chosen
    on the training graphs.

    Returns: a fraction; 0.5 means that the count carries no information.

    Example:
        >>> from gape.data.cycles import Cycles
        >>> isolated_node_baseline(Cycles(train=20, val=10, test=40).build(cache=False))
        0.5
    """
    _check_two_classes(dataset, "isolated-node")
    train, _, test = dataset.split(fold)
    threshold, few_is_one = _best_threshold(_isolated_nodes(train), train.targets == 1)
    guessed = (_isolated_nodes(test) < threshold) == few_is_one
    return float((guessed == (test.targets == 1)).double().mean())


def _isolated_nodes(part: GraphDataset) -> torch.Tensor:
    """Count the nodes without edges per graph."""
    batch = part.batch()
    alone = torch.bincount(batch.edge_index.flatten(), minlength=int(batch.num_nodes)) == 0
    return torch.bincount(batch.batch[alone], minlength=len(part))


def _check_two_classes(dataset: GraphDataset, baseline: str) -> None:
    if dataset.level != "graph" or dataset.num_classes != 2:
        raise ValueError(
            f"the {baseline} baseline needs two classes of graphs; {dataset.name!r} has "
            f"{dataset.num_classes} classes at {dataset.level} level"
        )


def _best_threshold(counts: torch.Tensor, positive: torch.Tensor) -> tuple[float, bool]:
    """Choose the threshold with the best accuracy; True if counts below it are positive."""
    best = (-1.0, 0.0, True)
    for threshold in [*(torch.unique(counts).tolist()), int(counts.max()) + 1]:
        right = float(((counts < threshold) == positive).float().mean())
        best = max(best, (right, threshold, True), (1 - right, threshold, False))
    return best[1], best[2]
