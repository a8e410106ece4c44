"""Decide that a search has settled, because its last trials have brought no lower loss."""

from collections.abc import Iterable

PATIENCE = 40  # finished trials without a lower loss, after which a search has settled


def trials_since_best(losses: Iterable[float | None]) -> int:
    """Return how many trials have finished since the last one with a lower loss than all before.

    Parameters
    ----------
    losses
        Loss of each finished trial, in the order in which they have finished. None stands for a
        trial that counts but brings no loss, such as one that a pruner has stopped. An equal loss
        is no lower loss.

    Returns
    -------
    Number of trials after the best one; 0 if no trial has brought a loss yet, because a search that
    has found nothing has not settled.

    Examples
    --------
    >>> from span_hpo.selection import trials_since_best
    >>> trials_since_best([0.3, 0.1, None, 0.1, 0.2])
    3
    >>> trials_since_best([None, None])
    0
    """
    best, since = None, 0
    for loss in losses:
        if loss is not None and (best is None or loss < best):
            best, since = loss, 0
        elif best is not None:
            since += 1
    return since


def is_settled(losses: Iterable[float | None], patience: int = PATIENCE) -> bool:
    """Return whether the last `patience` finished trials have brought no lower loss.

    Parameters
    ----------
    losses
        Losses in the order in which the trials have finished; see `trials_since_best`.
    patience
        Number of finished trials without a lower loss.

    Examples
    --------
    >>> from span_hpo.selection import is_settled
    >>> is_settled([0.3, 0.1, 0.2, 0.1], patience=2)
    True
    >>> is_settled([0.3, 0.1, 0.2, 0.05], patience=2)
    False
    """
    return trials_since_best(losses) >= patience
