"""Node features to the width of the model."""

import torch
from torch import Tensor, nn

#: Categories of the nine columns of atom features as the package ``ogb`` makes them (``get_atom_feature_dims``): atomic
#: number, chirality, degree, formal charge, hydrogens, radical electrons, hybridisation, aromatic, in a ring. PyG and
#: :mod:`gape.data` number the same nine otherwise: for them there is :data:`gape.data.ATOM_CATEGORIES`.
OGB_ATOM = (119, 5, 12, 12, 10, 6, 6, 2, 2)

#: "constant", a number of categories, or the numbers of categories of several columns.
Inputs = str | int | tuple[int, ...]


class NodeInput(nn.Module):
    """Embeds the node features of a data set.

    Args:
        inputs: an integer, for that many categories (ZINC 28, PATTERN 3, CLUSTER 7; CSL 1, where all nodes
            share one embedding); a tuple, for several columns of categories whose embeddings are added
            (:data:`gape.data.ATOM_CATEGORIES` for molecules of ours and of PyG, :data:`OGB_ATOM` for those of the
            package ``ogb``); or "constant", for the number 1 at every node through a linear layer, as in
            CYCLES, CYCLES-V and PLANAR.
        width: number of channels out.

    Example:
        >>> NodeInput(28, width=80)(torch.tensor([0, 27, 5])).shape
        torch.Size([3, 80])
        >>> NodeInput((119, 5), width=80)(torch.tensor([[6, 0], [8, 1]])).shape
        torch.Size([2, 80])
        >>> NodeInput("constant", width=80)(torch.ones(3, 1)).shape
        torch.Size([3, 80])
    """

    first: Tensor
    sizes: Tensor

    def __init__(self, inputs: Inputs, width: int) -> None:
        super().__init__()
        self.inputs = inputs
        categories = (inputs,) if isinstance(inputs, int) else inputs
        self.columns = 1
        if categories == "constant":
            self.embedding: nn.Linear | nn.EmbeddingBag = nn.Linear(1, width)
            return
        if isinstance(categories, str) or not categories or min(categories) < 1:
            raise ValueError(
                f"inputs must be 'constant', a positive number of categories, or a tuple of these; got {inputs!r}"
            )
        # All columns in one table, one after the other, so that one look-up adds them up.
        self.columns = len(categories)
        self.embedding = nn.EmbeddingBag(sum(categories), width, mode="sum")
        if self.columns > 1:  # as the benchmark's own atom encoder starts
            for column in torch.split(self.embedding.weight.detach(), list(categories)):
                nn.init.xavier_uniform_(column)
        sizes = torch.tensor(categories)
        self.register_buffer("first", sizes.cumsum(0) - sizes, persistent=False)
        self.register_buffer("sizes", sizes, persistent=False)

    def forward(self, x: Tensor | None, num_nodes: int | None = None) -> Tensor:
        """``[num_nodes]`` or ``[num_nodes, columns]`` to ``[num_nodes, width]``; None for equal nodes."""
        if x is None:
            x = self._equal_nodes(num_nodes)
        rows = x[:, None] if x.dim() == 1 else x
        if rows.dim() != 2 or rows.shape[1] != self.columns:
            raise ValueError(
                f"inputs={self.inputs!r} takes x of shape [num_nodes, {self.columns}], got {list(x.shape)}"
            )
        if self.inputs == "constant":
            output: Tensor = self.embedding(rows.to(self.embedding.weight.dtype))
            return output
        rows = self._categories(rows)
        if rows.numel() and (int(rows.min()) < 0 or bool((rows >= self.sizes).any())):
            raise ValueError(
                f"inputs={self.inputs!r} takes categories from 0 to that number less 1 in each column, "
                f"got {rows.amin(0).tolist()} to {rows.amax(0).tolist()}"
            )
        output = self.embedding(rows + self.first)
        return output

    def _categories(self, rows: Tensor) -> Tensor:
        """The features as integers; floating-point ones are fine if they are whole."""
        if rows.is_floating_point() and len(places := (rows.frac() != 0).nonzero()):
            place = places[0].tolist()
            raise ValueError(
                f"inputs={self.inputs!r} takes categories, which are whole numbers, got {rows[*place].item():.6g} at "
                f"{place} of x; number the categories from 0, or sort real values into classes (torch.bucketize)"
            )
        return rows.long()

    def _equal_nodes(self, num_nodes: int | None) -> Tensor:
        if self.inputs not in ("constant", 1) or num_nodes is None:
            raise ValueError(
                f"x may be left out only for inputs='constant' or inputs=1, and then the number of nodes "
                f"must be known; here inputs={self.inputs!r} and num_nodes={num_nodes}"
            )
        device = next(self.parameters()).device
        return torch.full((num_nodes, 1), 1 if self.inputs == "constant" else 0, device=device)
