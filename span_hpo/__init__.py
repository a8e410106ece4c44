"""Tune weighted support vector machines by leave-one-out estimates from one fit per trial."""

# Before anything that takes time, so that Ctrl-C ends the command line with one line.
from span_hpo import ctrl_c as _ctrl_c  # noqa: F401

# isort: split
import logging as _logging

from span_hpo import bounds
from span_hpo.data import Dataset
from span_hpo.errors import LeakWarning, ScalingWarning, SolverError
from span_hpo.estimators import (
    AllRows,
    LooSVC,
    SpanSearchCV,
    SpanSVC,
    SVMPlus,
    costs_from_svm_plus,
    loo_scorer,
)
from span_hpo.io import EnsemblePredictor, Predictor, Scaling
from span_hpo.kernels import ARD, RBF, FunctionKernel, Laplacian, Linear, Polynomial, Precomputed
from span_hpo.loo import (
    LeaveOneOut,
    box_squared_spans,
    free_squared_spans,
    leave_one_out,
    span_exists,
)
from span_hpo.objective import (
    CrossValidation,
    Evaluation,
    RadiusMargin,
    SpanObjective,
    ValueAndGradient,
    feature_relevance,
)
from span_hpo.runtime import blas_libraries as _blas_libraries
from span_hpo.runtime import load_compiled as _load_compiled
from span_hpo.search import Minimum, minimize
from span_hpo.solver import DualSolution, Problem, solve
from span_hpo.space import Choice, Float, Int
from span_hpo.weighting import (
    ClassCosts,
    GroupCosts,
    ImbalanceCost,
    KnotScore,
    LabelConfidence,
    PowerScore,
    SigmoidScore,
    UniformCost,
    Weighting,
)

__version__ = "0.1.0"

_logging.getLogger(__name__).addHandler(_logging.NullHandler())
# Every fit needs these, and the first one should not take longer than others. Libraries of NumPy
# and SciPy can be found only now, when both have been imported.
_load_compiled()
_blas_libraries()

__all__ = [
    "ARD",
    "RBF",
    "AllRows",
    "Choice",
    "ClassCosts",
    "CrossValidation",
    "Dataset",
    "DualSolution",
    "EnsemblePredictor",
    "Evaluation",
    "Float",
    "FunctionKernel",
    "GroupCosts",
    "ImbalanceCost",
    "Int",
    "KnotScore",
    "LabelConfidence",
    "Laplacian",
    "LeakWarning",
    "LeaveOneOut",
    "Linear",
    "LooSVC",
    "Minimum",
    "Polynomial",
    "PowerScore",
    "Precomputed",
    "Predictor",
    "Problem",
    "RadiusMargin",
    "SVMPlus",
    "Scaling",
    "ScalingWarning",
    "SigmoidScore",
    "SolverError",
    "SpanObjective",
    "SpanSVC",
    "SpanSearchCV",
    "UniformCost",
    "ValueAndGradient",
    "Weighting",
    "bounds",
    "box_squared_spans",
    "costs_from_svm_plus",
    "feature_relevance",
    "free_squared_spans",
    "leave_one_out",
    "loo_scorer",
    "minimize",
    "solve",
    "span_exists",
]


def __dir__() -> list[str]:
    """Return the public names, so that completion shows them and nothing else."""
    return [*__all__, "__version__"]
