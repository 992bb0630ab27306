"""The processes that share a graph: one, or those that ``torchrun`` starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import torch
import torch.distributed as dist
from numpy.typing import NDArray

# A rank may wait for another that sorts the edges. torchrun ends all ranks if one fails: nothing waits for a dead one.
TIMEOUT = timedelta(days=30)
_CPU = torch.device("cpu")
_CALLS = count()


@dataclass(frozen=True)
class Ranks:
    """This process among those that work on one graph.

    Args:
        rank: number of this process.
        size: how many there are.
        device: of the tensors that are exchanged: the CPU for gloo, a GPU for NCCL.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = _CPU

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sum(self, *values: float) -> list[float]:
        """Add up each value over all ranks."""
        return self._reduce(values, dist.ReduceOp.SUM)

    def max(self, *values: float) -> list[float]:
        return self._reduce(values, dist.ReduceOp.MAX)

    def _reduce(self, values: tuple[float, ...], operation: Any) -> list[float]:
        if self.size == 1:
            return list(values)
        held = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(held, operation)
        return held.tolist()

    def exchange(self, rows: NDArray[Any], bounds: list[int]) -> None:
        """Fill ``rows`` ``[n, m]``, of which rank r has the rows ``bounds[r] … bounds[r + 1]``, on every rank."""
        if self.size == 1:
            return
        held = torch.from_numpy(rows)
        parts = [held[bounds[r] : bounds[r + 1]] for r in range(self.size)]
        moved = [part.to(self.device) for part in parts]
        work = [dist.broadcast(part, r, async_op=True) for r, part in enumerate(moved) if part.numel()]
        for each in work:
            each.wait()
        if self.device.type != "cpu":
            for part, result in zip(parts, moved, strict=True):
                part.copy_(result)

    def barrier(self) -> None:
        self.sum(0.0)

    def agree(self, value: Any) -> Any:
        """Return the value of the first rank, on all ranks."""
        if self.size == 1:
            return value
        held = [value]
        dist.broadcast_object_list(held, 0, device=self.device)
        return held[0]


def launched() -> bool:
    """Return whether ``torchrun`` started this process as one of several."""
    return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def _join(backend: str) -> None:
    store, rank, size = next(dist.rendezvous("env://", timeout=TIMEOUT))  # type: ignore[attr-defined]
    # A store of its own for every group: in a shared one, processes would find the addresses of those before a restart
    # (without --rdzv-id), or of an earlier call in the same program.
    prefix = f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}-call-{next(_CALLS)}"
    store = dist.PrefixStore(prefix, store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT)


@contextmanager
def ranks() -> Iterator[Ranks]:
    """Join the other processes of ``torchrun``, if it started this one: by gloo, or by NCCL where there are GPUs."""
    if not launched():
        yield Ranks()
        return
    device = _CPU
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    mine = not dist.is_initialized()
    if mine:
        _join("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size(), device)
    finally:
        if mine:
            dist.destroy_process_group()
