"""When to lower the learning rate."""

from __future__ import annotations

from collections.abc import Sequence

from gape.experiments.translation.settings import TrainingSettings


def next_rate(rate: float, history: Sequence[float], settings: TrainingSettings) -> float:
    """The learning rate after a look at the development text.

    It falls by ``decay`` when the newest BLEU is below the lowest of the ``patience`` before it, not below ``floor``.

    Args:
        rate: so far.
        history: development BLEU of all looks, the newest last.
        settings: of the training.

    Example:
        >>> settings = TrainingSettings(learning_rate=1.0, patience=2)
        >>> next_rate(1.0, [5.0, 7.0, 6.0], settings), next_rate(1.0, [5.0, 7.0, 4.0], settings)
        (1.0, 0.8)
    """
    if len(history) <= settings.patience:
        return rate
    *earlier, newest = history[-settings.patience - 1 :]
    return max(min(settings.floor, rate), rate * settings.decay) if newest < min(earlier) else rate
