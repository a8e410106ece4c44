"""Fit one weighted SVM: the problem, its solution, and the solvers behind it."""

from span_hpo.solver.active_set import DualPoint, polished
from span_hpo.solver.box_qp import BoxQP
from span_hpo.solver.centred_gram import (
    CentredGram,
    check_definite,
    doubly_centred,
    factored_gram,
    independent_rows,
)
from span_hpo.solver.extended import ONE_ROUNDING, ExtendedPoint
from span_hpo.solver.fit import (
    DEFAULT_MAX_ITER,
    DEFAULT_TOL,
    SOLVERS,
    as_solver,
    solution_of,
    solve,
)
from span_hpo.solver.gaps import NEGLIGIBLE_GAP, curved_gap, row_gaps
from span_hpo.solver.lapack import solve_triangular
from span_hpo.solver.libsvm_fit import checked_max_iter, one_class_weights
from span_hpo.solver.offsets import offset_ends
from span_hpo.solver.optimal_face import reported_alpha
from span_hpo.solver.pairwise import (
    PairwiseSolution,
    decided,
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
    FEW_OPERATIONS,
    INDEFINITE,
    ROUNDED_UP,
    dot_rounding,
    kernel_rounding,
    margin_noise,
    margin_rounding,
    zero_width,
)
from span_hpo.solver.smo import shortened_in_box
from span_hpo.solver.svm_plus import SVMPlusSolution, solve_svm_plus

__all__ = [
    "ALPHA_ROUNDING",
    "DEFAULT_MAX_ITER",
    "DEFAULT_TOL",
    "FEW_OPERATIONS",
    "INDEFINITE",
    "NEGLIGIBLE_GAP",
    "ONE_ROUNDING",
    "ROUNDED_UP",
    "SOLVERS",
    "BoxQP",
    "CentredGram",
    "DualPoint",
    "DualSolution",
    "ExtendedPoint",
    "PairwiseSolution",
    "Problem",
    "SVMPlusSolution",
    "as_solver",
    "check_definite",
    "checked_costs",
    "checked_max_iter",
    "curved_gap",
    "decided",
    "dot_rounding",
    "doubly_centred",
    "factored_gram",
    "independent_rows",
    "is_wrong",
    "kernel_rounding",
    "margin_noise",
    "margin_rounding",
    "n_classes_of",
    "n_pairs_of",
    "offset_ends",
    "one_class_weights",
    "pairs_of",
    "polished",
    "reported_alpha",
    "row_gaps",
    "rows_of_pairs",
    "shortened_in_box",
    "solution_of",
    "solve",
    "solve_pairs",
    "solve_svm_plus",
    "solve_triangular",
    "voted",
    "zero_width",
]
