"""SPD+C: degree embeddings, and shortest-path distances as attention bias."""

import torch
from torch import Tensor, nn

from gape.nn.attention.pattern import AttentionPattern
from gape.nn.encoder import Encoder


class DegreeAndDistance(Encoder):
    """Embedded in- and out-degrees, added, and a learned attention bias per shortest-path distance and head.

    The encodings of Graphormer (Ying et al., 2021), named SPD+C in Soga & Chiang (2023). Attention over
    neighbours only meets pairs at distance 1 (0 for a self-loop), so there the bias is one number per head,
    which the softmax cancels unless the clamp is active: what remains is the degree embedding. The distances
    do something when the model attends to all nodes (``attention="full"``), and have to be given then.

    Args:
        hidden: width of the model.
        heads: attention heads of the model.
        degrees: rows of the degree tables; larger degrees share the last row. Row 0 stays zero.
        distances: rows of the distance table; larger and negative numbers share the last row. Row 0, the distance
            of a node to itself, stays zero. :class:`gape.encodings.ShortestPath` says 510 of pairs without a path,
            which have that row to themselves if there are more than 510 rows, as by default.

    Example:
        >>> pattern = AttentionPattern(torch.tensor([[0], [1]]), num_nodes=2, heads=8, full=True)
        >>> encoder = DegreeAndDistance()
        >>> encoder(None, pattern).shape
        torch.Size([2, 80])
        >>> encoder.bias(torch.tensor([[[0, 510], [1, 0]]]), pattern).shape
        torch.Size([1, 8, 2, 2])
    """

    def __init__(self, hidden: int = 80, heads: int = 8, *, degrees: int = 128, distances: int = 512) -> None:
        super().__init__()
        if degrees < 2 or distances < 2:
            raise ValueError(
                f"degrees and distances need at least 2 rows, the first of which stays zero; "
                f"got degrees={degrees} and distances={distances}"
            )
        self.in_degree = nn.Embedding(degrees, hidden, padding_idx=0)
        self.out_degree = nn.Embedding(degrees, hidden, padding_idx=0)
        self.distance = nn.Embedding(distances, heads, padding_idx=0)

    def forward(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor:
        """The degrees of the graphs of ``pattern``, embedded: ``[num_nodes, hidden]``."""
        source, target = pattern.edge_index
        largest = self.in_degree.num_embeddings - 1
        arriving = torch.bincount(target, minlength=pattern.num_nodes).clamp(max=largest)
        leaving = torch.bincount(source, minlength=pattern.num_nodes).clamp(max=largest)
        output: Tensor = self.in_degree(arriving) + self.out_degree(leaving)
        return output

    def bias(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor:
        """Bias of every pair.

        Args:
            encoding: ``[num_graphs, n, n]`` integers, the distance from the column's node to the row's node,
                nodes numbered within their graph and padding arbitrary. Not read if ``pattern`` is not full.
            pattern: who attends to whom.

        Returns:
            ``[num_graphs, heads, n, n]``, or ``[num_pairs, heads]`` if ``pattern`` is not full.
        """
        if not pattern.full:
            source, target = pattern.edge_index
            between_neighbours: Tensor = self.distance((source != target).long())
            return between_neighbours
        if encoding is None or encoding.is_floating_point() or encoding.dim() != 3:
            got = "None" if encoding is None else f"{encoding.dtype} of shape {list(encoding.shape)}"
            raise ValueError(
                f"full attention needs the shortest-path distances, integers of shape [num_graphs, n, n]; got {got}"
            )
        last = self.distance.num_embeddings - 1
        rows = torch.where(encoding < 0, last, encoding).clamp(max=last)
        bias: Tensor = self.distance(rows).permute(0, 3, 1, 2)
        return bias
