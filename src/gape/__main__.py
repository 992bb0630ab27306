"""``python -m gape``: the ``gape`` command."""

from gape.cli import main

if __name__ == "__main__":
    main()
