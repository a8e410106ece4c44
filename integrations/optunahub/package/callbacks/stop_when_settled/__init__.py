"""Stop an Optuna study after so many finished trials without a better value."""

from span_hpo.integrations.optuna import StopWhenSettled

__all__ = ["StopWhenSettled"]
