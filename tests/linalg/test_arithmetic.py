"""Arithmetic modulo a prime against Python's own integers."""

import numpy as np
import pytest
import torch

from gape.linalg.arithmetic import PRIME, ModularArithmetic, modular_inverse
from gape.linalg.elimination import eliminate
from gape.solvers.selected_inverse import SparseMatrices, selected_inverse

MODULAR = ModularArithmetic()
EDGES = [0, 1, -1, PRIME, PRIME - 1, -PRIME, 2 * PRIME, -2 * PRIME, 2**31, -(2**31), 2**60, -(2**60)]


def test_remainders_are_pythons():
    generator = np.random.default_rng(0)
    values = [*EDGES, *generator.integers(-(2**60), 2**60, 1000).tolist()]
    assert MODULAR.normalise(torch.tensor(values)).tolist() == [value % PRIME for value in values]
    a, b = ([0, 1, PRIME - 1, *generator.integers(0, PRIME, 1000).tolist()] for _ in range(2))
    left, right = torch.tensor(a), torch.tensor(b)
    assert MODULAR.multiply(left, right).tolist() == [x * y % PRIME for x, y in zip(a, b, strict=True)]
    assert MODULAR.subtract(left, right).tolist() == [(x - y) % PRIME for x, y in zip(a, b, strict=True)]
    assert MODULAR.reciprocal(left[1:]).tolist() == [pow(x, -1, PRIME) for x in a[1:]]
    with pytest.raises(ZeroDivisionError, match="draw other random numbers"):
        MODULAR.reciprocal(left)


def exact_product(a, b):
    return (np.array(a.tolist(), dtype=object) @ np.array(b.tolist(), dtype=object)) % PRIME


def test_dense_inverse_times_matrix_is_the_identity():
    matrices = torch.randint(0, PRIME, (3, 6, 6), generator=torch.Generator().manual_seed(0))
    for matrix, inverse in zip(matrices, modular_inverse(matrices), strict=True):
        assert (exact_product(matrix, inverse) == np.eye(6, dtype=int)).all()


@pytest.mark.parametrize("symmetric", [True, False])
def test_selected_inverse_is_exact_modulo_a_prime(symmetric):
    generator = np.random.default_rng(1)
    joined = np.triu(generator.random((14, 14)) < 0.2, 1)
    schedule = eliminate(np.stack(np.nonzero(joined)), np.array([14])).schedule(0, 1)
    dense = generator.integers(0, PRIME, (14, 14)) * (joined | joined.T)
    dense = np.triu(dense) + np.triu(dense).T if symmetric else dense
    np.fill_diagonal(dense, 1)
    inside = torch.from_numpy(dense)[schedule.nodes][:, schedule.nodes].unsqueeze(-1)
    lower, upper = inside[schedule.target, schedule.pivot], inside[schedule.pivot, schedule.target]
    ones = torch.ones(14, 1, dtype=torch.int64)
    found = selected_inverse(schedule, SparseMatrices(ones, lower, None if symmetric else upper), MODULAR)
    expected = modular_inverse(torch.from_numpy(dense)[None])[0][schedule.nodes][:, schedule.nodes]
    assert found.diagonal.flatten().tolist() == expected.diagonal().tolist()
    assert found.lower.flatten().tolist() == expected[schedule.target, schedule.pivot].tolist()
