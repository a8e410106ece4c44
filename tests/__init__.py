"""Tests of span_hpo; `problems` holds what they share."""
