"""The probability that the label of a row is wrong, and the rows to check."""

from span_hpo.suspects.densities import density_scores
from span_hpo.suspects.wrong_labels import listed, wrong_label_probabilities

__all__ = ["density_scores", "listed", "wrong_label_probabilities"]
