"""Beyond memory and beyond one machine: graphs on disk, encoded by one process or by several."""

from gape.scale.build import build
from gape.scale.disk_graph import DiskGraph
from gape.scale.rmat import RMAT

__all__ = ["RMAT", "DiskGraph", "build"]
