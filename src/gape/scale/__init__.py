"""Beyond memory and beyond one machine: one graph on disk, encoded by one process or by several."""

from gape.scale.build import build
from gape.scale.disk_graph import DiskGraph
from gape.scale.encode import Katz, LargeResult, PersonalisedPageRank, ReturnEstimate, encode_large
from gape.scale.rmat import RMAT

__all__ = [
    "RMAT",
    "DiskGraph",
    "Katz",
    "LargeResult",
    "PersonalisedPageRank",
    "ReturnEstimate",
    "build",
    "encode_large",
]
