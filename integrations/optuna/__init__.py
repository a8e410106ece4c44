"""Search with Optuna, as in ``study.optimize(OptunaObjective(objective), n_trials=200)``."""

try:
    import optuna as _  # noqa: F401  imported first, to explain how to install it
except ImportError as error:
    raise ImportError(
        "span_hpo.integrations.optuna needs Optuna: pip install 'span-hpo[optuna]'."
    ) from error

from span_hpo.integrations.optuna.gradient_sampler import (
    GradientSampler,
    asked_trial,
    wants_gradient,
)
from span_hpo.integrations.optuna.gradients import gradient_of, store_gradient
from span_hpo.integrations.optuna.points import search_points
from span_hpo.integrations.optuna.refinement import refine
from span_hpo.integrations.optuna.samplers import check_sampler
from span_hpo.integrations.optuna.selection import (
    best_ensemble,
    best_model,
    best_trial,
    honest_estimate,
    ranked_params,
)
from span_hpo.integrations.optuna.spaces import (
    enqueue_defaults,
    grid_sampler,
    params_of,
    search_space,
    suggest_params,
)
from span_hpo.integrations.optuna.stopping import StopWhenSettled, has_settled
from span_hpo.integrations.optuna.studies import (
    as_storage,
    delete_study,
    finished_trials,
    new_study,
    search,
    storage_errors,
    trial_count,
)
from span_hpo.integrations.optuna.trials import OptunaObjective, check_study
from span_hpo.integrations.optuna.workers import abandoned_trials

__all__ = [
    "GradientSampler",
    "OptunaObjective",
    "StopWhenSettled",
    "abandoned_trials",
    "as_storage",
    "asked_trial",
    "best_ensemble",
    "best_model",
    "best_trial",
    "check_sampler",
    "check_study",
    "delete_study",
    "enqueue_defaults",
    "finished_trials",
    "gradient_of",
    "grid_sampler",
    "has_settled",
    "honest_estimate",
    "new_study",
    "params_of",
    "ranked_params",
    "refine",
    "search",
    "search_points",
    "search_space",
    "storage_errors",
    "store_gradient",
    "suggest_params",
    "trial_count",
    "wants_gradient",
]
