"""Dual paths: how a fit changes while the dual variable of one row falls to zero."""

from span_hpo.loo.path.follow import dual_path, follow_rows

__all__ = ["dual_path", "follow_rows"]
