"""Beyond memory and beyond one machine: one graph on disk, or millions of small ones, by one process or by several."""

from gape.scale.build import build
from gape.scale.disk_graph import DiskGraph
from gape.scale.encode import LargeResult, encode_large
from gape.scale.encodings import Katz, PersonalisedPageRank, ReturnEstimate
from gape.scale.manifest import Reading
from gape.scale.rmat import RMAT
from gape.scale.shards import ShardsFailed, ShardsResult, encode_shards

__all__ = [
    "RMAT",
    "DiskGraph",
    "Katz",
    "LargeResult",
    "PersonalisedPageRank",
    "Reading",
    "ReturnEstimate",
    "ShardsFailed",
    "ShardsResult",
    "build",
    "encode_large",
    "encode_shards",
]
