"""Objectives, studies and test errors that several searches share."""

import functools
from typing import Any

import numpy as np
import optuna
from sklearn.svm import SVC

from benchmarks.harness.data import Split, load
from span_hpo import RBF, Float, SpanObjective
from span_hpo.integrations import optuna as adapter
from span_hpo.integrations.optuna import best_model

WIDTHS = Float(2.0**-6, 2.0**4, log=True)  # gamma, where it is searched


@functools.lru_cache(maxsize=1)
def first_split(name: str) -> Split:
    """Return the first split of a data set; the one returned last is kept in memory."""
    return load(name)


def new_objective(name: str, **settings: Any) -> SpanObjective:
    """Return the objective of a data set's training rows, by default with gamma searched."""
    split = first_split(name)
    return SpanObjective(split.X_train, split.y_train, **({"kernel": RBF(gamma=WIDTHS)} | settings))


def new_study(seed: int, *, sampler: str = "tpe", **settings: Any) -> optuna.Study:
    """Return a study with a sampler of this name and seed."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return adapter.new_study(sampler=sampler, seed=seed, **settings)


def error_on_test_rows(name: str, study: optuna.Study, objective: SpanObjective) -> float:
    """Return the error of a study's best model on the test rows."""
    return model_error(name, best_model(study, objective))


def model_error(name: str, model: SVC) -> float:
    """Return the error of a model on the test rows of a data set."""
    split = first_split(name)
    return float(np.mean(model.predict(split.X_test) != split.y_test))
