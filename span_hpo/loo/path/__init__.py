"""Dual paths: what happens to a fit while a row loses its say."""

from span_hpo.loo.path.follow import dual_path, follow_rows

__all__ = ["dual_path", "follow_rows"]
