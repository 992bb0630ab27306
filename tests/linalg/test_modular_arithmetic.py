"""Arithmetic modulo a prime against Python's own integers."""

import numpy as np
import pytest
import torch

from gape.linalg.elimination import eliminate
from gape.linalg.selected_inverse import PRIME, ModularArithmetic, SparseMatrices, modular_inverse, selected_inverse

MODULAR = ModularArithmetic()
EDGES = [0, 1, -1, PRIME, PRIME - 1, -PRIME, 2 * PRIME, -2 * PRIME, 2**31, -(2**31), 2**50, -(2**50)]


def doubles(values):
    return torch.tensor(values, dtype=torch.float64)


def test_the_modulus_is_a_prime():
    assert PRIME < 2**25
    assert all(PRIME % divisor for divisor in range(2, 5793))


def test_remainders_are_pythons():
    generator = np.random.default_rng(0)
    values = [*EDGES, *generator.integers(-(2**50), 2**50, 1000).tolist()]
    assert MODULAR.remainder(doubles(values)).tolist() == [value % PRIME for value in values]
    ends = [0, 1, PRIME - 1, -PRIME + 1, 2 * PRIME - 1]
    a, b = ([*ends, *generator.integers(-PRIME, 2 * PRIME, 1000).tolist()] for _ in range(2))
    product = MODULAR.multiply(doubles(a), doubles(b))
    assert -PRIME <= float(product.min()) <= float(product.max()) < 2 * PRIME
    assert MODULAR.remainder(product).tolist() == [x * y % PRIME for x, y in zip(a, b, strict=True)]
    inverses = MODULAR.remainder(MODULAR.reciprocal(doubles(a[1:])))
    assert inverses.tolist() == [pow(x, -1, PRIME) for x in a[1:]]
    for zero in (0, PRIME, -PRIME):
        with pytest.raises(ZeroDivisionError, match="draw other random numbers"):
            MODULAR.reciprocal(doubles([5, zero]))


def exact_product(a, b):
    return (np.array(a.tolist(), dtype=object) @ np.array(b.tolist(), dtype=object)) % PRIME


def test_dense_inverse_times_matrix_is_the_identity():
    matrices = torch.randint(0, PRIME, (3, 6, 6), generator=torch.Generator().manual_seed(0))
    for matrix, inverse in zip(matrices, modular_inverse(matrices.double()), strict=True):
        assert (exact_product(matrix, inverse) == np.eye(6, dtype=int)).all()


@pytest.mark.parametrize("symmetric", [True, False])
def test_selected_inverse_is_exact_modulo_a_prime(symmetric):
    generator = np.random.default_rng(1)
    joined = np.triu(generator.random((14, 14)) < 0.2, 1)
    schedule = eliminate(np.stack(np.nonzero(joined)), np.array([14])).schedule(0, 1)
    dense = generator.integers(0, PRIME, (14, 14)) * (joined | joined.T)
    dense = np.triu(dense) + np.triu(dense).T if symmetric else dense
    np.fill_diagonal(dense, 1)
    dense = torch.from_numpy(dense).double()
    inside = dense[schedule.nodes][:, schedule.nodes].unsqueeze(-1)
    lower, upper = inside[schedule.target, schedule.pivot], inside[schedule.pivot, schedule.target]
    ones = torch.ones(14, 1, dtype=torch.float64)
    found = selected_inverse(schedule, SparseMatrices(ones, lower, None if symmetric else upper), MODULAR)
    expected = modular_inverse(dense[None])[0][schedule.nodes][:, schedule.nodes]
    assert MODULAR.remainder(found.diagonal).flatten().tolist() == expected.diagonal().tolist()
    assert MODULAR.remainder(found.lower).flatten().tolist() == expected[schedule.target, schedule.pivot].tolist()
