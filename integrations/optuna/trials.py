"""Turn a `SpanObjective` into the objective function of an Optuna study."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from optuna import Study, TrialPruned
from optuna.exceptions import ExperimentalWarning
from optuna.study import StudyDirection
from optuna.trial import BaseTrial

from span_hpo.errors import SolverError
from span_hpo.integrations.optuna.gradient_sampler import wanted_of
from span_hpo.integrations.optuna.pruners import (
    NamedPruner,
    budgets_for,
    may_be_pruned,
    warn_of_idle_pruner,
)
from span_hpo.integrations.optuna.spaces import as_objective, suggest_params
from span_hpo.integrations.optuna.workers import FAILURE, sign, warn_of_abandoned
from span_hpo.objective import SpanObjective, check_same
from span_hpo.runtime import Memo, check_time, one_blas_thread, whole
from span_hpo.search import evaluated_step, has_gradient, penalty_at


@dataclass(frozen=True)
class _Outcome:
    """Losses and attributes that a trial takes from an evaluation, or the reason of its failure."""

    losses: tuple[float, ...]
    attributes: dict[str, Any]


# Results that this process has computed, shared by all adapters of the same objective.
_lock = Lock()
_outcomes: WeakKeyDictionary[SpanObjective, Memo[_Outcome]] = WeakKeyDictionary()
_met: WeakKeyDictionary[Study, WeakSet[SpanObjective]] = WeakKeyDictionary()
SUPPORT_LIMIT = "n_support"  # constraint: support vectors beyond the largest number
_ATTRIBUTE = "span_hpo"  # attribute of a study that describes its objective
_IN_WORDS = "description"  # attribute that does so in words


class OptunaObjective:
    """Objective function of an Optuna study, for ``study.optimize``.

    A trial whose fit raises a `SolverError` is reported to Optuna as failed, with the message in
    its attribute `failure`; other exceptions surface. Equal hyperparameters are evaluated only
    once. The function may be called from several threads (``n_jobs``), and can be pickled for
    several processes.

    Parameters
    ----------
    objective
        Objective that is minimised. With several metrics, the study needs as many directions.
    budgets
        Numbers of rows, or shares of all rows, in increasing order. The loss of each budget is
        reported at a step equal to its number of rows, so that any pruner can stop the trial; the
        loss of the last budget counts. Several budgets need a single metric, because Optuna cannot
        prune trials that have several. By default, trials use all rows, and with a pruner that was
        given to `new_study` by name 1/8, 1/4, 1/2 and all rows. Whatever the pruner, enqueued
        points and defaults are never stopped, and at least a quarter of the trials is complete.
    max_support
        Largest number of support vectors that a model may have, as a constraint of the trial. For
        a pruned trial, the number is extrapolated in proportion to its rows.

    Attributes
    ----------
    objective, budgets, max_support
        Arguments of the constructor, with budgets as numbers of rows or None.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or there are several metrics and several budgets.

    Examples
    --------
    >>> import optuna
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import OptunaObjective
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study()
    >>> function = OptunaObjective(SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1]))
    >>> study.optimize(function, n_trials=3)
    >>> [trial.user_attrs["n_rows"] for trial in study.trials]
    [4, 4, 4]
    """

    def __init__(
        self,
        objective: SpanObjective,
        budgets: Sequence[float] | None = None,
        max_support: int | None = None,
    ) -> None:
        objective = self.objective = as_objective(objective)
        self.budgets = None if budgets is None else objective.budget_rows(budgets)
        if self.budgets is not None and len(self.budgets) > 1 and len(objective.metrics) > 1:
            raise ValueError(
                "`budgets` must hold one budget if there are several metrics, because Optuna "
                f"cannot prune such trials, got {list(self.budgets)} rows."
            )
        if max_support is not None:
            max_support = whole("max_support", max_support, at_least=2)
        self.max_support = max_support

    def __call__(self, trial: BaseTrial) -> float | tuple[float, ...]:
        """Return the loss, or the losses, of the hyperparameters that a trial suggests.

        Raises
        ------
        optuna.TrialPruned
            If the pruner stops the trial at a smaller budget.
        ValueError
            If the study does not minimise as many values as there are metrics.
        """
        study = getattr(trial, "study", None)
        budgets = self._budgets_in(study)
        wanted = None
        if study is not None:
            self._meet(study, budgets)
            sign(trial)
            wanted = wanted_of(trial, has_gradient=has_gradient(self.objective))
        params = suggest_params(trial, self.objective)
        if wanted is not None:
            if wanted.is_step:
                return self._stepped(trial, params, budgets[-1], wanted.penalty)
            for name, extra in penalty_at(self.objective, params, wanted.penalty).items():
                trial.set_user_attr(name, extra)
        for n_rows in budgets:
            check_time()
            is_last = n_rows == budgets[-1]
            outcome = self._outcome(params, dict(trial.params), n_rows, is_last)
            if FAILURE in outcome.attributes:
                break
            if len(outcome.losses) == 1:
                trial.report(outcome.losses[0], step=n_rows)
                # The pruner is asked in any case, because it also notes what it is asked about.
                is_poor = not is_last and trial.should_prune()
                if is_poor and (study is None or may_be_pruned(trial, study)):
                    self._write(trial, outcome, budgets[-1])
                    raise TrialPruned
        self._write(trial, outcome, budgets[-1])
        return outcome.losses if len(outcome.losses) > 1 else outcome.losses[0]

    def _stepped(
        self, trial: BaseTrial, params: dict[str, Any], n_rows: int, penalty: float
    ) -> float:
        """Return the loss of a step of a descent, and record its gradient."""
        outcome = self._outcome(params, dict(trial.params), n_rows, True, penalty)
        trial.report(outcome.losses[0], step=n_rows)
        self._write(trial, outcome, n_rows)
        return outcome.losses[0]

    def _budgets_in(self, study: Study | None) -> tuple[int, ...]:
        """Return the budgets of the trials of a study, or of a trial without one."""
        if self.budgets is not None:
            return self.budgets
        if study is None:
            return self.objective.budget_rows((1.0,))
        return budgets_for(study, self.objective)

    def _write(self, trial: BaseTrial, outcome: _Outcome, last: int) -> None:
        for name, value in outcome.attributes.items():
            trial.set_user_attr(name, value)
        if self.max_support is not None and "n_support" in outcome.attributes:
            # A smaller budget is extrapolated to the last one in proportion to its rows.
            share = outcome.attributes["n_rows"] / last
            excess = outcome.attributes["n_support"] / share - self.max_support
            trial.set_constraint(SUPPORT_LIMIT, float(excess))

    def _outcome(
        self,
        params: dict[str, Any],
        written: dict[str, Any],
        n_rows: int,
        is_last: bool,
        penalty: float | None = None,
    ) -> _Outcome:
        """Evaluate, unless that has been done or another thread is doing it."""
        key = (
            n_rows,
            is_last,
            penalty,
            *((name, type(value), value) for name, value in sorted(written.items())),
        )
        with _lock:
            outcomes = _outcomes.setdefault(self.objective, Memo())
        return outcomes.get(key, lambda: self._evaluated(params, n_rows, is_last, penalty))

    @one_blas_thread
    def _evaluated(
        self, params: dict[str, Any], n_rows: int, certify: bool, penalty: float | None
    ) -> _Outcome:
        slopes: dict[str, Any] = {}
        try:
            if penalty is not None:
                evaluation, slopes = evaluated_step(self.objective, params, n_rows, penalty)
            else:
                # Proofs take as long as a fit of few rows, so that small budgets leave them out.
                evaluation = self.objective.evaluate(params, n_rows, certify=certify)
        except SolverError as error:
            # NaN is Optuna's own sign for a failed trial.
            losses = (math.nan,) * len(self.objective.metrics)
            return _Outcome(losses, {FAILURE: str(error)})
        return _Outcome(tuple(evaluation.losses.values()), {**evaluation.figures(), **slopes})

    def _meet(self, study: Study, budgets: tuple[int, ...]) -> None:
        """Refuse a study of another objective, and warn once of what is wrong with it."""
        if isinstance(study.pruner, NamedPruner):
            study.pruner.fit_to(budgets)
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
            warn_of_idle_pruner(study, budgets)


def check_study(study: Study, objective: SpanObjective) -> None:
    """Check that a study minimises the losses of an objective, and record this in a new study.

    A new study also gets the names of its metrics, which dashboards show, and the attribute
    `description`, which says in words what is minimised.

    Parameters
    ----------
    study
        Study of Optuna.
    objective
        Objective whose losses the study shall minimise.

    Raises
    ------
    ValueError
        If the study has other directions, or its trials belong to other data or losses.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import check_study, new_study
    >>> study = new_study()
    >>> check_study(study, SpanObjective([[0], [1]], [0, 1]))
    >>> check_study(study, SpanObjective([[0], [2]], [0, 1]))
    Traceback (most recent call last):
        ...
    ValueError: ...
    """
    wanted = len(objective.metrics)
    if study.directions != [StudyDirection.MINIMIZE] * wanted:
        got = [direction.name.lower() for direction in study.directions]
        raise ValueError(
            f"`study` must have directions={['minimize'] * wanted}, one for each of the "
            f"metrics {[metric.name for metric in objective.metrics]}, got {got}."
        )
    if _ATTRIBUTE in study.user_attrs:
        check_owner(study, objective)
    else:
        study.set_user_attr(_ATTRIBUTE, objective.description())
        _show_in_dashboards(study, objective)


def check_owner(study: Study, objective: SpanObjective) -> None:
    """Raise if a study has recorded that its trials belong to another objective."""
    known = study.user_attrs.get(_ATTRIBUTE)
    if known is not None:
        check_same(f"`study` {study.study_name!r}", known, objective.description())


def _show_in_dashboards(study: Study, objective: SpanObjective) -> None:
    """Record what the values of a study are, by name and in words, unless a user has done so."""
    if _IN_WORDS not in study.user_attrs:
        study.set_user_attr(_IN_WORDS, objective.in_words())
    if study.metric_names is None:
        with warnings.catch_warnings():  # Optuna calls the method experimental
            warnings.simplefilter("ignore", ExperimentalWarning)
            study.set_metric_names(objective.loss_names)
