"""Learning μ and α: one batch of the case that ran out of memory in the paper (PATTERN, 26 graphs, k = 32).

Forward and backward through our solver on a basis computed once, against the differentiable Kronecker solve graph by
graph (the paper's "vec trick": torch.linalg.solve on n·k unknowns). The slow solve is timed on a few graphs and
extrapolated. Prints milliseconds, the ratio and the extra memory.

    python benchmarks/learning.py [--graphs 26] [--states 32] [--slow-graphs 2]
"""

import argparse
import threading
import time
import warnings

import psutil
import torch

import gape
from gape.experiments.runtime.measurement import best_of
from gape.experiments.runtime.workloads import workload
from gape.solvers import AlgebraicOnlyWarning, Krylov


class PeakMemory:
    """Peak memory of the process while the block runs, beyond what it had before."""

    def __enter__(self) -> "PeakMemory":
        self._process = psutil.Process()
        self._before = self.peak = self._process.memory_info().rss
        self._running = True
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while self._running:
            self.peak = max(self.peak, self._process.memory_info().rss)
            time.sleep(0.001)

    def __exit__(self, *error: object) -> None:
        self._running = False
        self._thread.join()
        self.extra = (self.peak - self._before) / 2**20


def kronecker_step(mu: torch.Tensor, alpha: torch.Tensor, matrix: torch.Tensor) -> None:
    """Solve (I - Aᵀ ⊗ μᵀ) vec X = vec S of one graph and differentiate through it by plain autograd."""
    n, k = len(matrix), len(mu)
    system = torch.eye(n * k, dtype=mu.dtype) - torch.kron(matrix.T.contiguous(), mu.T.contiguous())
    x = torch.linalg.solve(system, alpha[:, 0].repeat(n))
    x.square().sum().backward()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=26)
    parser.add_argument("--states", type=int, default=32)
    parser.add_argument("--slow-graphs", type=int, default=2)
    options = parser.parse_args()
    work = workload("PATTERN", graphs=300)
    batch = work.graph().slice(0, options.graphs)
    start = gape.Automaton.random(states=options.states, damping=0.02, seed=0)
    generator = torch.Generator().manual_seed(0)
    # A learned matrix is no longer orthogonal: perturb it, since a normal matrix would be easier.
    disturbed = start.transition + 1e-3 * torch.randn(start.transition.shape, generator=generator, dtype=torch.float64)
    mu, alpha = disturbed.requires_grad_(), start.initial.clone().requires_grad_()

    begin = time.perf_counter()
    basis = gape.prepare(batch, solver=Krylov(max_steps=20))
    prepared = time.perf_counter() - begin
    residuals: list[float] = []

    def ours() -> None:
        mu.grad = alpha.grad = None
        solution = gape.solve(gape.Automaton(alpha, mu), batch, basis=basis)
        residuals.append(float(solution.residual.max()))
        solution.weights.square().sum().backward()

    with warnings.catch_warnings(action="ignore", category=AlgebraicOnlyWarning):
        ours()
        assert mu.grad is not None
        learned = mu.grad.clone()
        with PeakMemory() as memory:
            seconds = best_of(10, ours)

    sizes = batch.sizes[: options.slow_graphs].tolist()
    matrices = [batch.slice(i, i + 1).walk().dense()[0] for i in range(options.slow_graphs)]
    mu.grad = alpha.grad = None
    begin = time.perf_counter()
    with PeakMemory() as slow_memory:
        for matrix in matrices:
            kronecker_step(mu, alpha, matrix)
    elapsed = time.perf_counter() - begin
    # The cost grows with the cube of n, so the sample is scaled by that and not by the number of graphs.
    cubes = batch.sizes.double().pow(3)
    slow = elapsed * float(cubes.sum() / cubes[: options.slow_graphs].sum())

    few = batch.slice(0, options.slow_graphs)
    reference = mu.grad.clone()
    mu.grad = None
    with warnings.catch_warnings(action="ignore", category=AlgebraicOnlyWarning):
        gape.solve(gape.Automaton(alpha, mu), few, solver=Krylov()).weights.square().sum().backward()
    error = float((mu.grad - reference).abs().max() / reference.abs().max())

    print(f"PATTERN, {options.graphs} graphs ({batch.num_nodes} nodes, {batch.num_edges} edges), k = {options.states}")
    print(f"basis, once:             {1e3 * prepared:8.1f} ms (20 Krylov vectors per graph)")
    print(
        f"ours, forward+backward:  {1e3 * seconds:8.1f} ms, residual ≤ {max(residuals):.0e}, "
        f"{memory.extra:.0f} MB extra"
    )
    print(
        f"Kronecker, graph by graph: {slow:6.1f} s (from {options.slow_graphs} graphs of {sizes} nodes, "
        f"{slow_memory.extra:.0f} MB extra)"
    )
    print(f"ratio: {slow / seconds:.0f}×; gradients of μ agree to {error:.0e}; |∂μ| = {float(learned.norm()):.3g}")


if __name__ == "__main__":
    main()
