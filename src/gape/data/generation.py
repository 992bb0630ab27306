"""Generate graphs: in worker processes, in pairs of two classes, and cached on disk by their settings."""

import dataclasses
import hashlib
import multiprocessing
import shutil
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from gape._internal.files import cache_folder, file_lock, replacing
from gape._internal.progress import progress_bars
from gape.data.dataset import GraphDataset, Split, Task
from gape.data.flat import Array, FlatGraphs

Piece = TypeVar("Piece")
Result = TypeVar("Result")

# Part of every cache key. Raise it when a generator or the file layout changes; old files are then ignored.
CACHE_VERSION = 1


def check_even(train: int, val: int, test: int) -> None:
    """Raise an error unless all three parts have a positive even number of graphs, as needed for pairs."""
    for name, count in (("train", train), ("val", val), ("test", test)):
        if count < 2 or count % 2:
            raise ValueError(f"{name} must be an even number of graphs (they come in pairs), got {count}")


class PairedGraphs(ABC):
    """Base of datasets that are generated in pairs of a graph of class 1 and one of class 0.

    Subclasses are frozen dataclasses whose settings include the numbers of graphs ``train``, ``val`` and ``test``.
    """

    train: int
    val: int
    test: int
    TASK: ClassVar[Task]
    #: How the graphs came about, for their provenance.
    ORIGIN: ClassVar[str] = "generated"

    @abstractmethod
    def generate(self) -> FlatGraphs:
        """Generate :attr:`pairs` pairs, those for training first, then those for validation and testing."""

    @property
    def directed(self) -> bool:
        return False

    @property
    def pairs(self) -> int:
        """Number of pairs of all three parts."""
        return (self.train + self.val + self.test) // 2

    def build(self, data_dir: str | Path | None = None, *, cache: bool = True) -> GraphDataset:
        """Generate the graphs, or read them from the cache. ``data_dir`` is not used."""
        graphs = cached(self, self.generate) if cache else self.generate()
        split = Split.contiguous(self.train, self.val, self.test)
        return GraphDataset(graphs, self.TASK, [split], f"{self.ORIGIN}: {self!r}", directed=self.directed)


def shuffled_pairs(
    generator: np.random.Generator, draw: Callable[[], Sequence[tuple[int, Array]]], pairs: int
) -> FlatGraphs:
    """Draw pairs of a graph of class 1 and a graph of class 0, and shuffle the node numbers of each graph.

    Args:
        generator: source of the node permutations.
        draw: returns (number of nodes, edges) of the graph of class 1, then of the graph of class 0.
        pairs: number of pairs.
    """
    sizes, edges = [], []
    for _ in range(pairs):
        for nodes, graph in draw():
            sizes.append(nodes)
            edges.append(generator.permutation(nodes)[graph])
    return FlatGraphs.from_edges(sizes, edges, y=np.tile([1, 0], pairs))


def write_graphs(path: Path, graphs: FlatGraphs, settings: str) -> None:
    """Write graphs to an ``.npz`` file atomically, so that a reader never sees a partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {
        field.name: getattr(graphs, field.name)
        for field in dataclasses.fields(graphs)
        if getattr(graphs, field.name) is not None
    }
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, settings=np.array(settings), **arrays)


def read_graphs(path: Path) -> FlatGraphs:
    """Read a file of :func:`write_graphs`, without pickle."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return FlatGraphs(**{key: file[key] for key in file.files if key != "settings"})
    except (zipfile.BadZipFile, ValueError, TypeError, EOFError) as error:
        raise ValueError(
            f"cannot read cached graphs {path}: {error}. Delete the file; it is then generated again"
        ) from error


def cache_path(settings: object, folder: Path | None = None) -> Path:
    """Return the cache file of these settings."""
    key = hashlib.sha256(_key(settings).encode()).hexdigest()[:16]
    return (folder or cache_folder("data")) / f"{type(settings).__name__.lower()}-{key}.npz"


def pieces_folder(settings: object, folder: Path | None = None) -> Path:
    """Return the folder of finished pieces of that file, from which an interrupted generation resumes."""
    return cache_path(settings, folder).with_suffix(".parts")


def _key(settings: object) -> str:
    return f"{settings!r} format={CACHE_VERSION}"


def cached(settings: object, make: Callable[[], FlatGraphs], folder: Path | None = None) -> FlatGraphs:
    """Return ``make()``, or read its result from disk if the same settings were generated before.

    Processes that ask for the same settings at the same time wait for the first one.

    Args:
        settings: a frozen dataclass whose ``repr`` is the cache key.
        make: called if there is no file yet.
        folder: default :func:`~gape._internal.files.cache_folder`.
    """
    path = cache_path(settings, folder)
    if path.is_file():
        return read_graphs(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(path.with_name(f".{path.stem}.lock")):
        if path.is_file():  # written by another process while this one waited for the lock
            return read_graphs(path)
        graphs = make()
        write_graphs(path, graphs, _key(settings))
        shutil.rmtree(pieces_folder(settings, folder), ignore_errors=True)
    return graphs


@dataclasses.dataclass(frozen=True)
class CachedPieces(Generic[Piece]):
    """Wrap a function from pieces to graphs, so that each result is cached in ``folder`` by the piece's number.

    Args:
        work: the function.
        folder: folder of results; None caches nothing.
    """

    work: Callable[[Piece], FlatGraphs]
    folder: Path | None

    def __call__(self, numbered: tuple[int, Piece]) -> FlatGraphs:
        """Read the result of piece ``number`` if it is cached, else compute and write it."""
        number, piece = numbered
        if self.folder is None:
            return self.work(piece)
        path = self.folder / f"{number:06d}.npz"
        if path.is_file():
            return read_graphs(path)
        graphs = self.work(piece)
        write_graphs(path, graphs, "one piece")
        return graphs


@contextmanager
def progress(title: str, total: int, show: bool = True) -> Iterator[Callable[[int], None]]:
    """Show a progress bar with the remaining time on stderr; yield the function that advances it.

    >>> with progress("counting", total=3, show=False) as advance:
    ...     advance(1)
    """
    if not show:
        yield lambda amount: None
        return
    with progress_bars(keep=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda amount: bar.advance(task, amount)


def map_pieces(
    work: Callable[[Piece], Result],
    pieces: Sequence[Piece],
    *,
    title: str,
    weights: Sequence[int] | None = None,
    processes: int = 2,
    show: bool = True,
) -> list[Result]:
    """Compute ``[work(piece) for piece in pieces]`` in several processes, with a progress bar.

    The result does not depend on the number of processes if ``work`` depends on its piece only.

    Args:
        work: a function at module level.
        pieces: its arguments, one per call.
        title: title of the progress bar.
        weights: progress per piece (default 1 each).
        processes: number of processes; 1 works in this process.
        show: False hides the progress bar.

    Example:
        >>> map_pieces(abs, [-1, 2, -3], title="absolute", processes=1, show=False)
        [1, 2, 3]
    """
    if processes < 1:
        raise ValueError(f"processes must be at least 1, got {processes}")
    amounts = list(weights) if weights is not None else [1] * len(pieces)
    results: list[Result] = []
    with progress(title, sum(amounts), show) as advance:
        if processes == 1 or len(pieces) < 2:
            for amount, result in zip(amounts, map(work, pieces), strict=True):
                results.append(result)
                advance(amount)
            return results
        # spawn, not fork: a fork would copy PyTorch's thread state of the parent without its threads.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(processes, len(pieces)), context) as pool:
            try:
                for amount, result in zip(amounts, pool.map(work, pieces), strict=True):
                    results.append(result)
                    advance(amount)
            except BrokenProcessPool as error:
                raise RuntimeError(
                    f"{title}: a process ended early. If that is because it ran this script again, put the call under "
                    "`if __name__ == '__main__':`, or pass processes=1"
                ) from error
    return results
