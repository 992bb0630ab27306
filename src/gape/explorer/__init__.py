"""An explorer of graphs and their encodings: one HTML file that works without a server.

The function is ``gape.explore``; the package has another name, because a module ``gape.explore`` would hide it.
"""

from gape.explorer.gallery import GALLERY, Example, View, example
from gape.explorer.page import Explorer, explore

__all__ = ["GALLERY", "Example", "Explorer", "View", "example", "explore"]
