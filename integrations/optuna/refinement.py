"""Follow gradients from the best trials of a study."""

import copy
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from optuna import Study, Trial
from optuna.trial import FrozenTrial

from span_hpo.integrations.optuna.descents import Descents, Step, is_sound
from span_hpo.integrations.optuna.gradient_sampler import GradientSampler
from span_hpo.integrations.optuna.samplers import quiet
from span_hpo.integrations.optuna.selection import best_trial
from span_hpo.integrations.optuna.spaces import params_of
from span_hpo.integrations.optuna.trials import SUPPORT_LIMIT, OptunaObjective, check_study
from span_hpo.integrations.optuna.workers import (
    FAILURE,
    abandoned_trials,
    is_abandoned,
    is_own,
)
from span_hpo.objective import SpanObjective
from span_hpo.runtime import Deadline, OutOfTimeError, over_at_ctrl_c, real, time_limit
from span_hpo.search import (
    DEFAULT_PENALTY,
    NO_GRADIENT,
    PENALTY,
    check_gradient,
    penalty_at,
)


def refine(
    study: Study,
    objective: SpanObjective,
    *,
    n_steps: int = 20,
    n_starts: int = 1,
    penalty: float = DEFAULT_PENALTY,
    max_support: int | None = None,
    timeout: float | None = None,
    callbacks: Sequence[Callable[[Study, FrozenTrial], None]] = (),
    progress_bar: bool = False,
) -> FrozenTrial:
    """Follow gradients from the best trials of a study, and write the steps into it as trials.

    The steps are those of `span_hpo.minimize`, but after a quarter of them without a lower loss, a
    descent returns to its best point, and its steps become shorter. A descent that was interrupted
    is continued before another one is begun. Several processes may refine a study at the same time:
    each begins at other trials, and no two take the same step.

    Parameters
    ----------
    study
        Study with one metric, which has a trial that is complete and keeps its constraints.
    objective
        Objective whose hyperparameters the study has searched.
    n_steps
        Number of points of the descent from each start. It begins with the start itself, which is
        evaluated again only if it has no gradient yet. Steps become shorter towards the end.
    n_starts
        Number of starts, which are the best trials of the study.
    penalty
        Strength of the penalty on widths that differ from feature to feature; see `minimize`.
    max_support
        Largest number of support vectors that a model may have; see `OptunaObjective`. By default,
        it is that of the trials of the study, if they have one.
    timeout
        End after this many seconds. A trial that is running then is given up, and is repeated when
        the study is refined again.
    callbacks
        Functions that are called with the study and each trial that has ended.
    progress_bar
        Show a progress bar.

    Returns
    -------
    Copy of the best trial of the study by its loss plus the penalty. The trial with the least loss
    is still `best_trial`; both are the same if there is no penalty.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, the study has no trial to begin with, its trials have
        constraints of a user's own function, or the metric has no derivative.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import new_study, refine, search
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> objective = SpanObjective(X, y, weighting="uniform", metric="smooth_error")
    >>> study = new_study(sampler="random", seed=0)
    >>> search(study, objective, n_trials=10)
    >>> before = study.best_value
    >>> refine(study, objective, n_steps=15).value < before
    True
    """
    function = OptunaObjective(objective, max_support=max_support)
    objective = function.objective
    if timeout is not None:
        timeout = real("timeout", timeout, above=0)
    check_gradient(objective)
    check_study(study, objective)
    limit = _limit_of(best_trial(study))  # raises if there is none
    if max_support is None:
        function.max_support = limit
    abandoned_trials(study, fail=True)
    sampler = _Refinement(study, objective, n_steps=n_steps, n_starts=n_starts, penalty=penalty)
    deadline = Deadline(None if timeout is None else time.monotonic() + timeout)

    def stepped(trial: Trial) -> Any:
        with time_limit(deadline):
            return function(trial)

    def after(study: Study, trial: FrozenTrial) -> None:
        if sampler.is_done(study) or time.monotonic() > deadline.end:
            study.stop()

    given, study.sampler = study.sampler, sampler
    try:
        with quiet(), over_at_ctrl_c(deadline):
            if not sampler.is_done(study):
                study.optimize(
                    stepped,
                    catch=(_NothingLeftError, OutOfTimeError),
                    callbacks=[*callbacks, after],
                    show_progress_bar=progress_bar,
                )
    finally:
        study.sampler = given
    sampler.warn_of_no_gradient(study)
    return sampler.best_trial(study)


def _limit_of(trial: FrozenTrial) -> int | None:
    """Return the largest number of support vectors that a trial was allowed, or None."""
    own = sorted(set(trial.constraints) - {SUPPORT_LIMIT})
    if own:
        raise ValueError(
            "`study` must have no constraints but the number of support vectors, because the steps "
            f"could not keep them, got {own}: use a GradientSampler with your function."
        )
    if SUPPORT_LIMIT not in trial.constraints:
        return None
    return round(float(trial.user_attrs["n_support"]) - trial.constraints[SUPPORT_LIMIT])


class _NothingLeftError(Exception):
    """Another process has taken the last step."""


class _Refinement(GradientSampler):
    """Sampler that follows descents from the best trials of a study, and draws nothing.

    It first goes on with descents that were interrupted, and leaves those of other processes alone.
    """

    def __init__(
        self,
        study: Study,
        objective: SpanObjective,
        *,
        n_steps: int,
        n_starts: int,
        penalty: float,
    ) -> None:
        super().__init__(n_steps=n_steps, n_starts=n_starts, penalty=penalty)
        self._objective, self._pace = objective, self.pace(study)
        descents = self._descents(study.get_trials(deepcopy=False))
        unfinished = [
            start for start, standing in descents.standings().items() if not standing.is_over
        ]
        left = [start for start in unfinished if _is_left_behind(descents, start)]
        self._candidates = descents.best(but_not_of=unfinished)
        self._own = left[: self.n_starts]  # starts of the descents of this process

    def is_done(self, study: Study) -> bool:
        """Return whether all descents of this process have ended."""
        return self._peeked(study.get_trials(deepcopy=False)) is None

    def warn_of_no_gradient(self, study: Study) -> None:
        """Warn if no descent has got beyond its start."""
        descents = self._descents(study.get_trials(deepcopy=False))
        if any(descents.standing(start).n_gradients for start in self._own):
            return
        first = [trial for start in self._own for trial in descents.steps.get(start, {}).get(0, ())]
        reasons = [
            trial.user_attrs.get(NO_GRADIENT, trial.user_attrs.get(FAILURE)) for trial in first
        ]
        reason = next(filter(None, reasons), None)
        if reason is not None:
            warnings.warn(f"There is no gradient at the start: {reason}", stacklevel=3)

    def best_trial(self, study: Study) -> FrozenTrial:
        """Return a copy of the best trial of a study by its loss plus the penalty."""
        trials = study.get_trials(deepcopy=False)
        return copy.deepcopy(min(filter(is_sound, trials), key=self._descents(trials).rank))

    def _descents(self, trials: list[FrozenTrial]) -> Descents:
        return Descents(trials, self._pace, self._penalty_of)

    def _penalty_of(self, trial: FrozenTrial) -> float:
        params = params_of(trial, self._objective)
        return penalty_at(self._objective, params, self.penalty).get(PENALTY, 0.0)

    def _next_step(self, study: Study, trials: list[FrozenTrial]) -> Step | None:
        step = self._peeked(trials)
        if step is None:
            raise _NothingLeftError
        if step.start not in self._own:
            self._own.append(step.start)
        return step

    def _peeked(self, trials: list[FrozenTrial]) -> Step | None:
        """Return the next step that this process may take, or None if there is none."""
        descents = self._descents(trials)
        starts = list(self._own)
        if len(starts) < self.n_starts:
            starts += [start for start in self._candidates if start not in descents.steps]
        standings = (descents.standing(start) for start in starts)
        return next((standing.step for standing in standings if standing.step is not None), None)


def _is_left_behind(descents: Descents, start: int) -> bool:
    """Return whether the process that has taken the last step is gone, or is this one."""
    last = max(
        (trial for tried in descents.steps[start].values() for trial in tried),
        key=lambda trial: trial.number,
    )
    return is_own(last) or is_abandoned(last)
