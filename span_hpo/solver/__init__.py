"""Fit one weighted SVM: the problem, its solution, and the solvers behind it."""

from span_hpo.solver.active_set import DualPoint, polished
from span_hpo.solver.box_qp import BoxQP
from span_hpo.solver.centred_gram import CentredGram, factored_gram, independent_rows
from span_hpo.solver.fit import DEFAULT_MAX_ITER, DEFAULT_TOL, solve
from span_hpo.solver.lapack import solve_triangular
from span_hpo.solver.libsvm_fit import checked_max_iter, one_class_weights
from span_hpo.solver.offsets import offset_ends
from span_hpo.solver.pairwise import (
    PairwiseSolution,
    is_wrong,
    n_classes_of,
    n_pairs_of,
    pairs_of,
    rows_of_pairs,
    solve_pairs,
    voted,
)
from span_hpo.solver.problem import DualSolution, Problem, checked_costs
from span_hpo.solver.rounding import (
    ALPHA_ROUNDING,
    INDEFINITE,
    margin_noise,
    violation_limit,
    zero_width,
)
from span_hpo.solver.smo import shortened_in_box

__all__ = [
    "ALPHA_ROUNDING",
    "DEFAULT_MAX_ITER",
    "DEFAULT_TOL",
    "INDEFINITE",
    "BoxQP",
    "CentredGram",
    "DualPoint",
    "DualSolution",
    "PairwiseSolution",
    "Problem",
    "checked_costs",
    "checked_max_iter",
    "factored_gram",
    "independent_rows",
    "is_wrong",
    "margin_noise",
    "n_classes_of",
    "n_pairs_of",
    "offset_ends",
    "one_class_weights",
    "pairs_of",
    "polished",
    "rows_of_pairs",
    "shortened_in_box",
    "solve",
    "solve_pairs",
    "solve_triangular",
    "violation_limit",
    "voted",
    "zero_width",
]
