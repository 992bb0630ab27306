"""Names of the choices that several files share."""

from typing import Literal

MatrixName = Literal["adjacency", "random_walk", "random_walk_in", "symmetric", "laplacian", "normalized_laplacian"]
ReadoutName = Literal["node", "closed", "pair"]
OnSingular = Literal["raise", "least_squares"]
