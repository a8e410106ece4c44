"""Optuna: ``study.optimize(OptunaObjective(objective), n_trials=200)``."""

from span_hpo.integrations.optuna.selection import best_model, best_trial
from span_hpo.integrations.optuna.spaces import (
    enqueue_defaults,
    grid_sampler,
    params_of,
    search_space,
    suggest_params,
)
from span_hpo.integrations.optuna.studies import new_study, search
from span_hpo.integrations.optuna.trials import OptunaObjective
from span_hpo.integrations.optuna.workers import abandoned_trials

__all__ = [
    "OptunaObjective",
    "abandoned_trials",
    "best_model",
    "best_trial",
    "enqueue_defaults",
    "grid_sampler",
    "new_study",
    "params_of",
    "search",
    "search_space",
    "suggest_params",
]
