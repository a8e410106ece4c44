"""A `SpanObjective` as the objective of an Optuna study."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from optuna import Study, TrialPruned
from optuna.study import StudyDirection
from optuna.trial import BaseTrial

from span_hpo.errors import SolverError
from span_hpo.integrations.optuna.spaces import as_objective, suggest_params
from span_hpo.integrations.optuna.workers import sign, warn_of_abandoned
from span_hpo.objective import SpanObjective, check_same
from span_hpo.runtime import Memo, one_blas_thread, whole


@dataclass(frozen=True)
class _Outcome:
    """What a trial needs to know of an evaluation, or why there was none."""

    losses: tuple[float, ...]
    attributes: dict[str, Any]


# What this process knows already, also for another adapter of the same objective.
_lock = Lock()
_outcomes: WeakKeyDictionary[SpanObjective, Memo[_Outcome]] = WeakKeyDictionary()
_met: WeakKeyDictionary[Study, WeakSet[SpanObjective]] = WeakKeyDictionary()
_ATTRIBUTE = "span_hpo"  # of a study: what it is about


class OptunaObjective:
    """A function of a trial, for ``study.optimize``.

    A trial whose fit fails with a `SolverError` is told to Optuna as failed, with the message in
    its attribute `failure`; other exceptions surface. The same hyperparameters are evaluated once.
    It may be called from several threads (``n_jobs``), and pickled for several processes.

    Parameters
    ----------
    objective
        What is minimised. With several metrics the study needs as many directions.
    budgets
        Numbers of rows, or shares of all rows, in increasing order. The loss at each is reported
        at the step that is its number of rows, so that any pruner can end the trial; the last one
        counts. Only for one metric: Optuna cannot prune several.
    max_support
        Most support vectors that a model may have, as a constraint of the trial; of a pruned trial
        they are estimated in proportion to its rows.

    Attributes
    ----------
    objective, budgets, max_support
        The arguments, with budgets in rows.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.
    """

    def __init__(
        self,
        objective: SpanObjective,
        budgets: Sequence[float] = (1.0,),
        max_support: int | None = None,
    ) -> None:
        objective = self.objective = as_objective(objective)
        self.budgets = objective.budget_rows(budgets)
        if len(self.budgets) > 1 and len(objective.metrics) > 1:
            raise ValueError(
                "`budgets` must be one when there are several metrics, which Optuna cannot prune, "
                f"got {list(self.budgets)} rows."
            )
        if max_support is not None:
            max_support = whole("max_support", max_support, at_least=2)
        self.max_support = max_support

    def __call__(self, trial: BaseTrial) -> float | tuple[float, ...]:
        """Return the loss of what the trial suggests, or several losses.

        Raises
        ------
        optuna.TrialPruned
            If the pruner ends the trial at a smaller budget.
        ValueError
            If the study does not minimise as many values as there are metrics.
        """
        study = getattr(trial, "study", None)
        if study is not None:
            self._meet(study)
            sign(trial)
        params = suggest_params(trial, self.objective)
        for n_rows in self.budgets:
            outcome = self._outcome(params, dict(trial.params), n_rows)
            if "failure" in outcome.attributes:
                break
            if len(outcome.losses) == 1:
                trial.report(outcome.losses[0], step=n_rows)
                if n_rows < self.budgets[-1] and trial.should_prune():
                    self._write(trial, outcome)
                    raise TrialPruned
        self._write(trial, outcome)
        return outcome.losses if len(outcome.losses) > 1 else outcome.losses[0]

    def _write(self, trial: BaseTrial, outcome: _Outcome) -> None:
        for name, value in outcome.attributes.items():
            trial.set_user_attr(name, value)
        if self.max_support is not None and "n_support" in outcome.attributes:
            # At a smaller budget, what the last one would have in proportion.
            share = outcome.attributes["n_rows"] / self.budgets[-1]
            excess = outcome.attributes["n_support"] / share - self.max_support
            trial.set_constraint("n_support", float(excess))

    def _outcome(self, params: dict[str, Any], written: dict[str, Any], n_rows: int) -> _Outcome:
        """Evaluate, unless that has been done or another thread is about it."""
        last = n_rows == self.budgets[-1]
        key = (
            n_rows,
            last,
            *((name, type(value), value) for name, value in sorted(written.items())),
        )
        with _lock:
            outcomes = _outcomes.setdefault(self.objective, Memo())
        return outcomes.get(key, lambda: self._evaluated(params, n_rows, certify=last))

    @one_blas_thread
    def _evaluated(self, params: dict[str, Any], n_rows: int, certify: bool) -> _Outcome:
        try:
            # Proofs take as long as a fit of few rows: at a small budget they are left out.
            evaluation = self.objective.evaluate(params, n_rows, certify=certify)
        except SolverError as error:
            # NaN is Optuna's own sign for a failed trial.
            losses = (math.nan,) * len(self.objective.metrics)
            return _Outcome(losses, {"failure": str(error)})
        return _Outcome(tuple(evaluation.losses.values()), evaluation.figures())

    def _meet(self, study: Study) -> None:
        """Refuse a study of something else; look once for what others have left."""
        with _lock:
            met = _met.setdefault(study, WeakSet())
            if self.objective in met:
                return
            is_new = not met
        check_study(study, self.objective)
        with _lock:
            met.add(self.objective)
        if is_new:
            warn_of_abandoned(study)


def check_study(study: Study, objective: SpanObjective) -> None:
    """Raise if a study does not minimise the losses of this objective; else note what it is about.

    Raises
    ------
    ValueError
        If its directions are others, or its trials are about other data or losses.
    """
    wanted = len(objective.metrics)
    if study.directions != [StudyDirection.MINIMIZE] * wanted:
        got = [direction.name.lower() for direction in study.directions]
        raise ValueError(
            f"`study` must have directions={['minimize'] * wanted}, one for each of the "
            f"metrics {[metric.name for metric in objective.metrics]}, got {got}."
        )
    known, now = study.user_attrs.get(_ATTRIBUTE), objective.description()
    if known is None:
        study.set_user_attr(_ATTRIBUTE, now)
    else:
        check_same(f"`study` {study.study_name!r}", known, now)
