"""Share the trials of a study among processes, so that it ends with exactly so many.

A trial is claimed by the process that has created it, before its parameters are drawn. Optuna
numbers trials in the order of their creation. A process waits until all trials with lower numbers
are claimed. It keeps its own if fewer than wanted of them are finished or being worked on, and
otherwise gives it up as failed. So two processes cannot both keep the last one, or draw the same.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from optuna import Study, Trial
from optuna.trial import FrozenTrial, TrialState

from span_hpo.integrations.optuna.samplers import PlannedSampler
from span_hpo.integrations.optuna.workers import (
    draw_of,
    is_abandoned,
    is_claimed,
    is_interrupted,
    is_own,
    is_signed,
    sign,
    start_of,
)

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
SECONDS_TO_SIGN = 3.0  # seconds within which a process signs a trial that it has created
_PAUSE = 0.05  # seconds between two looks at a trial that is about to be signed
# A trial of a process that cannot be judged counts for ten times the longest trial so far, at least
# ten minutes: a machine that is lost must not block a study for ever.
_TIMES_LONGEST, _LEAST_PATIENCE = 10, 600.0
_at_work: set[tuple[str, int]] = set()  # study and number of the trials of this process


class SurplusTrialError(Exception):
    """A trial is given up because others have been faster."""


class Claims:
    """Claims of one search on the trials of a study.

    Parameters
    ----------
    study
        Study of Optuna.
    n_trials
        Number of finished trials with which the study shall end; infinity for no limit.
    starts
        Parameters, as the storage holds them, that are tried before any are drawn.

    Attributes
    ----------
    study, n_trials
        Arguments of the constructor.
    sampler
        Sampler that the study must have while trials are claimed.
    surplus
        Number of trials that this search has given up.
    """

    def __init__(self, study: Study, n_trials: float, starts: Sequence[dict[str, Any]]) -> None:
        self.study = study
        self.n_trials = n_trials
        self.sampler = PlannedSampler(study.sampler, study)
        self.surplus = 0
        self._starts = starts
        self._strangers: set[int] = set()  # trials that nobody signs
        self._own: set[tuple[str, int]] = set()
        self._settle(self._trials())

    def taken(self) -> int:
        """Return the number of trials that are finished or being worked on."""
        return len(self._taken(self._trials()))

    def claimed(self, function: Callable[[Trial], Any]) -> Callable[[Trial], Any]:
        """Return the objective function, which raises for trials that are not wanted."""

        def claiming(trial: Trial) -> Any:
            self.claim(trial)
            return function(trial)

        return claiming

    def claim(self, trial: Trial) -> None:
        """Sign a trial, and plan its parameters.

        Raises
        ------
        SurplusTrialError
            If enough trials are finished or being worked on.
        """
        number = trial.number
        self._own.add((self.study.study_name, number))
        _at_work.add((self.study.study_name, number))
        self._settle(self._trials()[:number])
        trials = self._trials()
        if len(self._taken(trials[:number])) >= self.n_trials:
            self.surplus += 1
            sign(trial, draw=None)
            raise SurplusTrialError
        if "fixed_params" in trials[number].system_attrs:  # the user has asked for this point
            sign(trial, draw=None)
            return
        known = self._known([t for t in trials if t.number != number])
        start = self._next_start(known)
        if start is None:
            sign(trial, draw=self._next_draw(known))
        else:
            self.sampler.starts[number] = self._starts[start]
            sign(trial, draw=None, start=start)

    def release(self, number: int | None = None) -> None:
        """Note that a trial has ended; without a number, all trials of this search."""
        ended = {place for place in self._own if number in (None, place[1])}
        self._own -= ended
        _at_work.difference_update(ended)

    def _trials(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def _taken(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the trials that are finished or being worked on."""
        return [t for t in trials if t.state in FINISHED or self._is_live(t, trials)]

    def _is_live(self, trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> bool:
        """Return whether a process is working, or may be working, on one of the trials."""
        if trial.state != TrialState.RUNNING or trial.number in self._strangers:
            return False
        if is_own(trial) and is_claimed(trial):
            return (self.study.study_name, trial.number) in _at_work
        return not is_abandoned(trial) and _age(trial) < _patience(trials)

    def _settle(self, trials: Sequence[FrozenTrial]) -> None:
        """Wait until running trials are signed, or are too old to be signed any more."""
        end = time.monotonic() + SECONDS_TO_SIGN  # the clocks of other machines may be ahead
        while unsigned := self._unsigned(trials):
            is_over = time.monotonic() > end
            self._strangers |= {t.number for t in unsigned if is_over or _age(t) > SECONDS_TO_SIGN}
            time.sleep(_PAUSE)
            trials = self._trials()[: len(trials)]

    def _unsigned(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the running trials that a process may be about to sign."""
        running = [trial for trial in trials if trial.state == TrialState.RUNNING]
        return [t for t in running if not is_signed(t) and t.number not in self._strangers]

    def _known(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the trials whose parameters must not be tried again.

        Trials that were interrupted are not among them: they are repeated.
        """
        done = [t for t in trials if t.state == TrialState.WAITING]
        done += [t for t in trials if t.state == TrialState.FAIL and not is_interrupted(t)]
        return self._taken(trials) + done

    def _next_start(self, known: Sequence[FrozenTrial]) -> int | None:
        """Return the position of the first start that no other trial has."""
        taken = {start_of(trial) for trial in known}
        tried = [trial.params or trial.system_attrs.get("fixed_params") for trial in known]
        missing = [i for i, start in enumerate(self._starts) if start not in tried]
        return next((i for i in missing if i not in taken), None)

    def _next_draw(self, known: Sequence[FrozenTrial]) -> int:
        """Return the lowest number of a draw that no other trial has."""
        used = {draw_of(trial) for trial in known}
        return next(draw for draw in itertools.count() if draw not in used)


def _patience(trials: Sequence[FrozenTrial]) -> float:
    """Return for how many seconds a trial may run, which depends on how long others took."""
    durations = [t.duration.total_seconds() for t in trials if t.duration is not None]
    return max(_LEAST_PATIENCE, _TIMES_LONGEST * max(durations, default=0.0))


def _age(trial: FrozenTrial) -> float:
    """Return the seconds since a trial was begun."""
    begun = trial.datetime_start
    return 0.0 if begun is None else (datetime.now() - begun).total_seconds()
