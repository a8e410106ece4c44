"""The words that all adapters share."""

from span_hpo.search.written import option_labels, read_params, written_grid, written_params

__all__ = ["option_labels", "read_params", "written_grid", "written_params"]
