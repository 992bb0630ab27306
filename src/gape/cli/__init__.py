"""The ``gape`` command. Nothing here imports PyTorch before a command runs, so that ``gape --help`` is quick."""

from gape.cli.app import app, main

__all__ = ["app", "main"]
