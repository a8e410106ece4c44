"""General helpers that know nothing of SVMs, for arrays, checks, threads, printing and so on."""

from span_hpo.runtime.accurate import (
    ROUNDING_UNIT,
    accurate_dots,
    are_short,
    exact_dots,
    exact_products,
)
from span_hpo.runtime.arrays import (
    Array,
    BoolArray,
    FloatArray,
    IndexArray,
    read_only,
    rows_of,
    sums_of_others,
    weighted_mean,
)
from span_hpo.runtime.checks import LARGEST_WHOLE, ArgumentError, make_plain, plain, real, whole
from span_hpo.runtime.compilation import (
    compiled,
    interpreted,
    load_compiled,
    runs_machine_code,
)
from span_hpo.runtime.deadlines import (
    Deadline,
    OutOfTimeError,
    check_time,
    over_at_ctrl_c,
    time_limit,
)
from span_hpo.runtime.memo import Memo, key_of
from span_hpo.runtime.printing import Printable, counted
from span_hpo.runtime.threads import OneBlasThread, blas_libraries, one_blas_thread, thread_count

__all__ = [
    "LARGEST_WHOLE",
    "ROUNDING_UNIT",
    "ArgumentError",
    "Array",
    "BoolArray",
    "Deadline",
    "FloatArray",
    "IndexArray",
    "Memo",
    "OneBlasThread",
    "OutOfTimeError",
    "Printable",
    "accurate_dots",
    "are_short",
    "blas_libraries",
    "check_time",
    "compiled",
    "counted",
    "exact_dots",
    "exact_products",
    "interpreted",
    "key_of",
    "load_compiled",
    "make_plain",
    "one_blas_thread",
    "over_at_ctrl_c",
    "plain",
    "read_only",
    "real",
    "rows_of",
    "runs_machine_code",
    "sums_of_others",
    "thread_count",
    "time_limit",
    "weighted_mean",
    "whole",
]
