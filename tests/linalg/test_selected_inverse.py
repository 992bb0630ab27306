"""Selected inversion against dense inverses: values, residuals, gradients."""

import numpy as np
import pytest
import torch

from gape.linalg.elimination import eliminate
from gape.linalg.selected_inverse import SparseMatrices, inverse_diagonal, selected_inverse

LANES = 3


def drawn(sizes, probability, seed, symmetric):
    """A schedule for random graphs, and matrices I - M on it with ρ(|M|) < 0.95, as dense ones and on the pattern."""
    generator = np.random.default_rng(seed)
    starts, edges = np.cumsum(sizes) - sizes, []
    for start, size in zip(starts, sizes, strict=True):
        joined = generator.random((size, size)) < probability
        edges += [(start + u, start + v) for u, v in zip(*np.nonzero(joined), strict=True)]
    edges = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    schedule = eliminate(edges, np.array(sizes)).schedule(0, len(sizes))
    n = sum(sizes)
    dense = np.zeros((LANES, n, n))
    dense[:, edges[0], edges[1]] = generator.normal(size=(LANES, edges.shape[1]))
    if symmetric:
        dense += dense.transpose(0, 2, 1)
    dense *= 0.95 / max(np.abs(np.linalg.eigvals(np.abs(dense))).max(), 1e-9)
    system = torch.from_numpy(np.eye(n) - dense)
    return schedule, system


def on_pattern(schedule, system, symmetric):
    inside = system[:, schedule.nodes][:, :, schedule.nodes]
    lower = inside[:, schedule.target, schedule.pivot].T.contiguous()
    upper = inside[:, schedule.pivot, schedule.target].T.contiguous()
    return SparseMatrices(inside.diagonal(dim1=1, dim2=2).T.contiguous(), lower, None if symmetric else upper)


CASES = [([9], 0.2), ([1], 0.0), ([5, 1, 12, 0, 12], 0.15), ([30], 0.08), ([70, 3], 0.04), ([8], 1.0), ([4, 2], 0.0)]


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("sizes", "probability"), CASES)
def test_entries_are_those_of_the_dense_inverse(sizes, probability, symmetric):
    schedule, system = drawn(sizes, probability, 1, symmetric)
    matrices = on_pattern(schedule, system, symmetric)
    found, expected = selected_inverse(schedule, matrices), on_pattern(schedule, torch.linalg.inv(system), symmetric)
    for name in ("diagonal", "lower", "upper"):
        if getattr(expected, name) is not None:
            torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=1e-11, atol=1e-12)
    diagonal, residual = inverse_diagonal(schedule, matrices)
    torch.testing.assert_close(diagonal, expected.diagonal, rtol=1e-11, atol=1e-12)
    assert float(residual.max()) < 1e-13


def test_residual_shows_a_wrong_inverse():
    schedule, system = drawn([9], 0.3, 2, True)
    matrices = on_pattern(schedule, system, True)
    inverse = selected_inverse(schedule, matrices)
    wrong = SparseMatrices(inverse.diagonal * (1 + 1e-6), inverse.lower)
    assert float((wrong.product_diagonal(matrices, schedule) - 1.0).abs().max()) > 1e-7


@pytest.mark.parametrize("symmetric", [True, False])
def test_gradients_are_those_of_finite_differences_and_of_the_dense_inverse(symmetric):
    schedule, system = drawn([7, 1, 5], 0.35, 3, symmetric)
    matrices = on_pattern(schedule, system, symmetric)
    inputs = [part.requires_grad_() for part in vars(matrices).values() if part is not None]

    def diagonal(*parts):
        return inverse_diagonal(schedule, SparseMatrices(*parts))[0]

    assert torch.autograd.gradcheck(diagonal, inputs)
    weight = torch.randn(len(schedule.nodes), LANES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours = torch.autograd.grad((diagonal(*inputs) * weight).sum(), inputs[0])[0]
    system.requires_grad_()
    dense = torch.linalg.inv(system).diagonal(dim1=1, dim2=2).T[schedule.nodes]
    theirs = torch.autograd.grad((dense * weight).sum(), system)[0].diagonal(dim1=1, dim2=2).T[schedule.nodes]
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12)


def test_gradient_of_any_size_is_exact():
    schedule, system = drawn([7], 0.35, 4, True)
    matrices = on_pattern(schedule, system, True)
    diagonal = matrices.diagonal.requires_grad_()
    grads = []
    for size in (1e-250, 1.0, 1e250):
        out = inverse_diagonal(schedule, SparseMatrices(diagonal, matrices.lower))[0]
        grads.append(torch.autograd.grad(out, diagonal, torch.full_like(out, size))[0] / size)
    for grad in grads:
        torch.testing.assert_close(grad, grads[1], rtol=1e-12, atol=0)


def test_trees_have_no_fill_and_rings_one_entry_less_than_three_nodes():
    path = np.stack([np.arange(49), np.arange(1, 50)])
    assert eliminate(path, np.array([50])).schedule(0, 1).num_entries == 49
    ring = np.stack([np.arange(50), (np.arange(50) + 1) % 50])
    done = eliminate(ring, np.array([50]))
    assert len(done.pivot) == 50 + 47
    star = np.stack([np.zeros(80, np.int64), np.arange(1, 81)])
    assert len(eliminate(star, np.array([81])).pivot) == 80


def test_elimination_of_a_graph_does_not_depend_on_the_batch():
    generator = np.random.default_rng(0)
    edges = [generator.integers(0, n, (2, 2 * n)) for n in (9, 70, 5)]
    sizes, starts = np.array([9, 70, 5]), np.array([0, 9, 79])
    together = eliminate(np.concatenate([e + s for e, s in zip(edges, starts, strict=True)], 1), sizes)
    for number, (one, start) in enumerate(zip(edges, starts, strict=True)):
        alone = eliminate(one, sizes[number : number + 1])
        entries = slice(together.entry_ptr[number], together.entry_ptr[number + 1])
        assert (together.pivot[entries] - start).tolist() == alone.pivot.tolist()
        assert (together.target[entries] - start).tolist() == alone.target.tolist()
        assert together.work[number] == alone.work[0]
