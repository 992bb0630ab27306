"""A run whose time was over."""


class Unfinished(RuntimeError):
    """The time was over before the training was; the same call goes on from there."""
