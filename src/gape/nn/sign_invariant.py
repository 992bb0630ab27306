"""An encoder of eigenvectors that does not depend on their signs."""

import torch
from torch import Tensor, nn

from gape._internal.validation import positive, whole_number
from gape.nn.attention.pattern import AttentionPattern
from gape.nn.encoders import Encoder


class SignInvariantEncoder(Encoder):
    """Encoder of eigenvectors with the same output for v and -v: ρ([φ(v) + φ(-v)]) (SignNet; Lim et al., 2023).

    φ is a message-passing network over the entries of one eigenvector at a time, the same for all of them: without
    messages it would see the size of every entry only, and not which neighbours have the same sign. ρ is a feed-forward
    network over the results for all eigenvectors. Signs are free per graph and eigenvector; the bases of multiple
    eigenvalues are not.

    Args:
        vectors: number of eigenvectors k, as of :class:`gape.encodings.Laplacian`.
        hidden: width of the output.
        width: width of φ.
        layers: number of rounds of messages in φ.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> encoder, vectors = SignInvariantEncoder(vectors=2, hidden=16), torch.randn(3, 2)
        >>> torch.equal(encoder(vectors, path), encoder(vectors * torch.tensor([-1.0, 1.0]), path))
        True
    """

    def __init__(self, vectors: int, hidden: int = 80, *, width: int = 16, layers: int = 2) -> None:
        super().__init__()
        self.vectors, width = positive(vectors, "vectors"), positive(width, "width")
        layers = whole_number(layers, "layers", at_least=0)
        self.entry = nn.Linear(1, width)
        self.messages = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.output = nn.Sequential(
            nn.Linear(vectors * width, hidden), nn.ReLU(), nn.Linear(hidden, positive(hidden, "hidden"))
        )

    def forward(self, encoding: Tensor | None, pattern: AttentionPattern | Tensor) -> Tensor:
        """Map eigenvectors ``[num_nodes, vectors]`` to ``[num_nodes, hidden]``; ``pattern`` may be ``edge_index``."""
        edges = pattern if isinstance(pattern, Tensor) else pattern.edge_index
        if encoding is None or encoding.dim() != 2 or encoding.shape[1] != self.vectors:
            got = "None" if encoding is None else f"shape {list(encoding.shape)}"
            raise ValueError(f"encoding must have shape [num_nodes, {self.vectors}], one column per vector, got {got}")
        entries = encoding.to(self.entry.weight.dtype).unsqueeze(-1)
        found: Tensor = self.output((self._phi(entries, edges) + self._phi(-entries, edges)).flatten(1))
        return found

    def _phi(self, entries: Tensor, edges: Tensor) -> Tensor:
        """Map ``[num_nodes, vectors, 1]`` to ``[num_nodes, vectors, width]``."""
        states = torch.relu(self.entry(entries))
        degree = torch.bincount(edges[1], minlength=len(entries)).clamp(min=1).view(-1, 1, 1)
        for layer in self.messages:
            heard = torch.zeros_like(states).index_add_(0, edges[1], states[edges[0]]) / degree
            states = torch.relu(layer(torch.cat([states, heard], -1)))
        return states
