"""Diagonals of powers, by baby steps and giant steps, against the powers themselves."""

import pytest
import torch

from gape.linalg.powers import PowerDiagonals, baby_steps


@pytest.mark.parametrize("nodes", [1, 5, 70])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 20, 23])
@pytest.mark.parametrize("symmetric", [True, False])
def test_diagonals_are_those_of_the_powers(nodes, length, symmetric):
    generator = torch.Generator().manual_seed(nodes)
    diagonals = PowerDiagonals(length, torch.float64)
    for graphs in (3, 1):  # the second call uses the memory of the first
        matrices = torch.rand(graphs, nodes, nodes, dtype=torch.float64, generator=generator) / nodes
        matrices = (matrices + matrices.mT) / 2 if symmetric else matrices
        exact = [torch.linalg.matrix_power(matrices, t).diagonal(dim1=1, dim2=2) for t in range(1, length + 1)]
        torch.testing.assert_close(diagonals(matrices, symmetric=symmetric), torch.stack(exact, -1))


def test_twenty_powers_take_six_products():
    b = baby_steps(20)
    assert b - 1 + -(-20 // b) - 2 == 6
