"""Conclusions from all trials of a search, as functions of arrays and sequences."""

from span_hpo.selection.patience import PATIENCE, is_settled, trials_since_best

__all__ = ["PATIENCE", "is_settled", "trials_since_best"]
