"""End a run of Ray Tune when its last trials have brought no lower loss."""

from typing import Any

from ray import tune

from span_hpo.integrations.ray.trainable import LOSS
from span_hpo.runtime import whole
from span_hpo.selection import PATIENCE, is_settled


class SettledStopper(tune.Stopper, tune.Callback):  # type: ignore[misc]  # Ray has no types
    """End a run after so many finished trials without a lower loss.

    A trial counts once it has reported the loss of its last budget, in the order of these reports.
    An equal loss is not lower. Trials that a scheduler has ended before do not count, because Ray
    does not report this to a stopper; neither do failed trials. Trials that are running when the
    run ends are stopped.

    As a stopper of Ray, it is passed to ``tune.RunConfig(stop=...)``. It is also a callback: if it
    is passed to ``tune.RunConfig(callbacks=[...])`` as well, Ray keeps what it has counted, and a
    restored run goes on counting. `tuner` does both.

    Parameters
    ----------
    patience
        Number of finished trials without a lower loss, after which the run ends.

    Attributes
    ----------
    patience
        Argument of the constructor.
    losses
        Losses of the finished trials by their identifiers.

    Examples
    --------
    For a `SpanObjective` named ``objective``:

    >>> from span_hpo.integrations.ray import SettledStopper, tuner
    >>> results = tuner(objective, num_samples=200, patience=40).fit()  # doctest: +SKIP
    >>> stopper = SettledStopper(patience=2)
    >>> for trial, loss in enumerate([0.2, 0.1, 0.1]):
    ...     stopper(str(trial), {"loss": loss, "done": True})
    False
    False
    False
    >>> stopper.stop_all()
    False
    """

    def __init__(self, patience: int = PATIENCE) -> None:
        self.patience = whole("patience", patience, at_least=1)
        self.losses: dict[str, float] = {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Note a report of a trial, which is never stopped by itself."""
        if result.get("done") and LOSS in result:
            self.losses.setdefault(trial_id, float(result[LOSS]))
        return False

    def stop_all(self) -> bool:
        """Return whether the run has settled."""
        return is_settled(self.losses.values(), self.patience)

    def get_state(self) -> dict[str, Any]:
        """Return what Ray keeps with the run."""
        return {"losses": self.losses}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue the count of a restored run."""
        self.losses = dict(state["losses"])
