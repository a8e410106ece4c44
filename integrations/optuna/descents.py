"""Follow descents through the trials of a study.

A descent is a sequence of trials that begins at the point of an earlier trial, its start. Where it
stands follows from the gradients of its trials alone: no process keeps anything, so that any
process can take the next step of any descent, also after a break.

An attribute of each trial of a descent says which step it is. A point without a gradient, and one
that has failed, was stopped by a pruner or violates a constraint, is stepped over: the descent goes
back half of the way to the last point that was none of these. After a quarter of its steps without
a lower value, a descent returns to its best point.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from optuna.trial import FrozenTrial, TrialState

from span_hpo.integrations.optuna.gradients import alike_in, gradient_of, real_names
from span_hpo.integrations.optuna.workers import is_abandoned, is_interrupted
from span_hpo.objective import model_rank
from span_hpo.runtime import FloatArray
from span_hpo.search import PENALTY, Coordinates, Descent
from span_hpo.space import searched

DESCENT = "descent"  # attribute of a trial that says which step of which descent it is
# After a quarter of its steps without a lower value, a descent returns to its best point, and its
# steps are shorter by this factor. A return after three steps in a row is too early for a descent
# of dozens of widths, and without any return half of the refinements of three hyperparameters
# find nothing better.
_LEGS, _LEAST_PATIENCE = 4, 3
_SHORTER = 0.4
_ATTEMPTS = 2  # how often a step is begun whose processes are interrupted


@dataclass(frozen=True)
class Pace:
    """How descents are made.

    Attributes
    ----------
    n_steps
        Number of trials of a descent.
    penalty
        Strength of the penalty that the gradients contain.
    is_uphill
        Whether the study maximises its value.
    """

    n_steps: int
    penalty: float
    is_uphill: bool = False


class Step(NamedTuple):
    """A step that can be taken: number of the start, number of the step, and its point."""

    start: int
    number: int
    params: dict[str, Any]
    pace: Pace

    def label(self) -> dict[str, Any]:
        """Return the attribute of the trial that takes the step."""
        pace = {"of": self.pace.n_steps, "penalty": self.pace.penalty}
        return {"start": self.start, "step": self.number, **pace}


class Standing(NamedTuple):
    """Where a descent stands.

    Attributes
    ----------
    step
        The next step, or None if the descent has ended or another trial is taking it.
    is_over
        Whether the descent has ended.
    n_gradients
        Number of its points with a gradient.
    """

    step: Step | None
    is_over: bool
    n_gradients: int


class Descents:
    """All descents of one pace in the trials of a study.

    Parameters
    ----------
    trials
        Trials of the study without the one that asks for a step.
    pace
        How the descents are made; those of another pace are left alone.
    penalty_of
        Function that returns the penalty at a trial, by default that of its attribute.
    """

    def __init__(
        self,
        trials: Iterable[FrozenTrial],
        pace: Pace,
        penalty_of: Callable[[FrozenTrial], float] | None = None,
    ) -> None:
        self.pace = pace
        self._penalty_of = _noted_penalty if penalty_of is None else penalty_of
        self.trials = {trial.number: trial for trial in trials}
        self.steps: dict[int, dict[int, list[FrozenTrial]]] = {}  # by start and by number
        for trial in self.trials.values():
            label = label_of(trial)
            if label is not None and _is_of(label, pace):
                of_start = self.steps.setdefault(label["start"], {})
                of_start.setdefault(label["step"], []).append(trial)

    def standings(self) -> dict[int, Standing]:
        """Return where each descent stands, by the number of its start, in this order."""
        starts = sorted(start for start in self.steps if start in self.trials)
        return {start: self.standing(start) for start in starts}

    def standing(self, number: int) -> Standing:
        """Return where the descent from a trial stands."""
        start, steps = self.trials[number], self.steps.get(number, {})
        last = _representative(steps.get(self.pace.n_steps - 1, []))
        if last is not None and last.state.is_finished():
            return Standing(None, True, _count_of_gradients(steps))
        return self._walked(start, {step: _representative(tried) for step, tried in steps.items()})

    def best(self, *, but_not_of: Iterable[int] | None = None) -> list[int]:
        """Return the numbers of the trials at which a descent may begin, the best first.

        What is best is judged with the penalty, as in a descent.

        Parameters
        ----------
        but_not_of
            Starts of descents at whose points no other one may begin; by default all.
        """
        closed = None if but_not_of is None else set(but_not_of)
        found = []
        for trial in self.trials.values():
            label = label_of(trial)
            is_free = label is None or (closed is not None and label["start"] not in closed)
            if is_free and is_sound(trial) and real_names(trial) and trial.number not in self.steps:
                found.append(trial)
        return [trial.number for trial in sorted(found, key=self.rank)]

    def rank(self, trial: FrozenTrial) -> tuple[float, float, float, int]:
        """Return the key by which sound trials are sorted, those with the least loss first."""
        assert trial.value is not None  # a sound trial has a value
        value = -trial.value if self.pace.is_uphill else trial.value
        return *model_rank(value + self._penalty_of(trial), trial.user_attrs), trial.number

    def _walked(self, start: FrozenTrial, steps: Mapping[int, FrozenTrial | None]) -> Standing:
        """Repeat the steps of a descent, and return where it stands."""
        space = searched(start.distributions)
        first = {name: part.nearest(start.params[name]) for name, part in space.items()}
        coordinates = Coordinates.of(space, first)
        walk = _Walk(coordinates, coordinates.point(first), self.pace.n_steps)
        for number in range(self.pace.n_steps):
            trial = steps.get(number)
            if number == 0 and gradient_of(start) is not None:
                trial = start  # there is nothing that a repetition would add
            if trial is None:
                params = coordinates.params(walk.descent.point) if number else first
                return Standing(Step(start.number, number, params, self.pace), False, walk.count)
            if not trial.state.is_finished():
                return Standing(None, False, walk.count)
            slopes = self._slopes(trial, coordinates)
            if slopes is not None:
                point, left = coordinates.point(trial.params), self.pace.n_steps - number
                walk.alike = coordinates.places(alike_in(trial))
                walk.follow(point, slopes, self.rank(trial)[:-1], left)
            elif walk.last is not None:
                walk.go_back()
            else:
                break  # there is no gradient at the start
        return Standing(None, True, walk.count)

    def _slopes(self, trial: FrozenTrial, coordinates: Coordinates) -> FloatArray | None:
        """Return the gradient that a descent may follow at a trial, or None."""
        by_name = gradient_of(trial) if is_sound(trial) else None
        if by_name is None or not set(coordinates.names) <= set(by_name):
            return None
        slopes = coordinates.gradient(trial.params, by_name)
        return -slopes if self.pace.is_uphill else slopes


class _Walk:
    """A descent that returns to its best point, with shorter steps, if it does not get lower.

    A leave-one-out loss may rise at its jumps while it falls between them, so that near a minimum
    the gradient may lead away from it for as long as one follows it.

    Attributes
    ----------
    descent
        Where the descent stands.
    last
        The last point that was followed, or None.
    count
        Number of points with a gradient.
    alike
        Positions of coordinates that share the units of their steps; see `Descent`.
    """

    def __init__(self, coordinates: Coordinates, point: FloatArray, n_steps: int) -> None:
        self.descent, self.count = Descent.at(point), 0
        self.alike: list[int] = []
        self.last: FloatArray | None = None
        self._lower, self._upper = coordinates.lower, coordinates.upper
        self._patience = max(_LEAST_PATIENCE, n_steps // _LEGS)
        self._steps, self._length, self._in_vain = n_steps, 1.0, 0
        self._best: tuple[tuple[float, ...], FloatArray, FloatArray] | None = None

    def follow(
        self, point: FloatArray, slopes: FloatArray, rank: tuple[float, ...], left: int
    ) -> None:
        """Make a step from a point with a gradient, or from the best one if that is long ago."""
        self.count += 1
        if self._best is None or rank < self._best[0]:
            self._best, self._in_vain = (rank, point, slopes), 0
        else:
            self._in_vain += 1
        if self._in_vain >= self._patience:
            _, point, slopes = self._best
            self.descent, self._steps = Descent.at(point), left
            self._length, self._in_vain = _SHORTER * self._length, 0
        descent = replace(self.descent, point=point, alike=tuple(self.alike))
        moved = descent.moved(slopes, self._steps, self._lower, self._upper)
        self.descent = moved.at_point(point + self._length * (moved.point - point))
        self.last = point

    def go_back(self) -> None:
        """Go back half of the way to the last point that was followed."""
        assert self.last is not None
        self.descent = self.descent.at_point((self.descent.point + self.last) / 2)


def label_of(trial: FrozenTrial) -> dict[str, Any] | None:
    """Return which step of a descent a trial is, or None if it is none."""
    label = trial.user_attrs.get(DESCENT)
    return label if isinstance(label, dict) and {"start", "step"} <= set(label) else None


def is_sound(trial: FrozenTrial) -> bool:
    """Return whether a trial is complete, has a finite value and keeps its constraints."""
    if trial.state != TrialState.COMPLETE or trial.value is None:
        return False
    return math.isfinite(trial.value) and all(c <= 0 for c in trial.constraints.values())


def _noted_penalty(trial: FrozenTrial) -> float:
    return float(trial.user_attrs.get(PENALTY, 0.0))


def _is_of(label: Mapping[str, Any], pace: Pace) -> bool:
    return label.get("of") == pace.n_steps and label.get("penalty") == pace.penalty


def _representative(tried: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """Return the trial that counts as a step, or None if the step is to be taken once more."""
    interrupted = [trial for trial in tried if _was_interrupted(trial)]
    others = [trial for trial in tried if not _was_interrupted(trial)]
    # Of trials that two processes have begun at the same time, the first one counts.
    if others:
        return min(others, key=lambda trial: (not trial.state.is_finished(), trial.number))
    return interrupted[-1] if len(interrupted) >= _ATTEMPTS else None


def _was_interrupted(trial: FrozenTrial) -> bool:
    if trial.state == TrialState.RUNNING:
        return is_abandoned(trial)
    return is_interrupted(trial)


def _count_of_gradients(steps: Mapping[int, Sequence[FrozenTrial]]) -> int:
    return sum(any(gradient_of(trial) for trial in tried) for tried in steps.values())
