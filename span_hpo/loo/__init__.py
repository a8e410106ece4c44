"""Leave-one-out: the decision value that each row would get from a fit without that row."""

from span_hpo.loo.box_spans import box_squared_spans, largest_box_squared_span
from span_hpo.loo.certificates import certified, upper_bounds
from span_hpo.loo.left_out import RowValues, left_out_row, replaced_rows
from span_hpo.loo.methods import METHODS, leave_one_out
from span_hpo.loo.path import dual_path
from span_hpo.loo.result import LeaveOneOut
from span_hpo.loo.span_rule import free_squared_spans, independent_base, span_exists
from span_hpo.loo.stopping import TRIED, stopped_rows

__all__ = [
    "METHODS",
    "TRIED",
    "LeaveOneOut",
    "RowValues",
    "box_squared_spans",
    "certified",
    "dual_path",
    "free_squared_spans",
    "independent_base",
    "largest_box_squared_span",
    "leave_one_out",
    "left_out_row",
    "replaced_rows",
    "span_exists",
    "stopped_rows",
    "upper_bounds",
]
