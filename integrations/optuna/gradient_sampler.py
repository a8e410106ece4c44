"""A sampler that draws points, and then follows gradients from the best of them."""

import time
import warnings
from typing import Any

from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import StudyDirection
from optuna.trial import BaseTrial, FrozenTrial, TrialState

from span_hpo.integrations.optuna.delegating import DelegatingSampler
from span_hpo.integrations.optuna.descents import DESCENT, Descents, Pace, Step, label_of
from span_hpo.integrations.optuna.pruners import is_start
from span_hpo.integrations.optuna.spaces import suggest_all
from span_hpo.runtime import real, whole
from span_hpo.search import DEFAULT_PENALTY, Wanted
from span_hpo.space import Space, as_dimension

_SECONDS_TO_DECIDE = 3.0  # seconds within which a process says what a trial of its own will be
_PAUSE = 0.02  # seconds between two looks at a trial that is about to be decided on
_VAIN = 3  # descents without any gradient after which no further one is begun
_Place = tuple[str, int]  # study and number of a trial
_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


class GradientSampler(DelegatingSampler):
    """Sampler that draws points, and then follows gradients from the best of them.

    After `n_startup` finished trials of a global sampler, `n_steps` trials follow a descent by Adam
    from the best of them. The sampler then draws again, and so on. Unlike `span_hpo.minimize`, it
    makes no walk over scales before a descent, returns to the best point of a descent that gets no
    lower, and does not compare the result with equal widths. With one width for each feature,
    gradients usually find in dozens of trials better models than TPE in 150.

    The trials of an `OptunaObjective` bring their gradients. The objective computes them only in
    trials of a descent, which use all rows at once and are never stopped by its pruner. For an
    objective function of your own, see `wants_gradient`.

    Only real numbers without a step are moved; all other hyperparameters keep the values that they
    have at the start of the descent. A descent begins only at a trial that is complete and keeps
    its constraints. A step that has failed, was stopped by a pruner, violates a constraint or has
    no gradient is stepped over: the next one goes back half of the way. After a quarter of its
    steps without a lower loss, a descent returns to its best point, and its steps become shorter.
    If there is no gradient at the start of a descent, the global sampler goes on.

    Gradients are kept in the trials, and a descent is continued by whichever process asks next, so
    that studies can be shared by several processes and continued at any time. No two processes take
    the same step.

    Parameters
    ----------
    sampler
        Global sampler; by default Optuna's ``TPESampler``. With ``new_study(sampler="gradient",
        seed=0)``, a study that is continued draws what it would have drawn without the break.
    n_startup
        Number of finished trials of the global sampler before each round of descents.
    n_steps
        Number of trials of each descent. Steps become shorter towards its end.
    n_starts
        Number of descents in each round, one from each of the best points.
    penalty
        Strength of the penalty on widths that differ from feature to feature, which the gradients
        of an `OptunaObjective` contain; see `minimize`.
    seed
        Random seed of the default global sampler.

    Attributes
    ----------
    sampler, n_startup, n_steps, n_starts, penalty
        Arguments of the constructor.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; in the first trial also if the study has several
        directions.

    Examples
    --------
    >>> import optuna
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import ARD, SpanObjective
    >>> from span_hpo.integrations.optuna import GradientSampler, OptunaObjective
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> objective = SpanObjective(*load_iris(return_X_y=True), kernel=ARD(), metric="smooth_error")
    >>> study = optuna.create_study(sampler=GradientSampler(n_startup=5, n_steps=15, seed=0))
    >>> study.optimize(OptunaObjective(objective), n_trials=20)
    >>> study.best_trial.user_attrs["descent"]["step"] > 0
    True
    """

    def __init__(
        self,
        sampler: BaseSampler | None = None,
        *,
        n_startup: int = 15,
        n_steps: int = 40,
        n_starts: int = 1,
        penalty: float = DEFAULT_PENALTY,
        seed: int | None = None,
    ) -> None:
        if sampler is not None and not isinstance(sampler, BaseSampler):
            raise TypeError(
                f"`sampler` must be a sampler of Optuna, got {type(sampler).__name__}. The sampler "
                'of a name is that of new_study(sampler="tpe").'
            )
        if sampler is not None and seed is not None:
            raise ValueError(
                f"`seed` must be None if there is a `sampler`, which has its own, got {seed!r}."
            )
        self.sampler = TPESampler(seed=seed) if sampler is None else sampler
        self.n_startup = whole("n_startup", n_startup, at_least=1)
        self.n_steps = whole("n_steps", n_steps, at_least=1)
        self.n_starts = whole("n_starts", n_starts, at_least=1)
        self.penalty = real("penalty", penalty, at_least=0)
        # Running trials, by study and number: their steps, and what was drawn for them at once.
        self._decided: dict[_Place, Step | None] = {}
        self._drawn: dict[_Place, dict[str, Any]] = {}
        self._strangers: set[_Place] = set()  # trials that nobody decides on
        self._is_heeded = True  # whether the objective function asks for steps

    def sampler_for(self, trial: FrozenTrial) -> BaseSampler:
        """Return the global sampler."""
        return self.sampler

    def reseed_rng(self) -> None:
        """Reseed the global sampler."""
        self.sampler.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Check the study; nothing is drawn before the first hyperparameter is suggested."""
        if len(study.directions) > 1:
            raise ValueError(
                "`study` must have one direction for a GradientSampler, got "
                f"{len(study.directions)}: use another sampler, or a single metric."
            )

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return an empty space, so that nothing is drawn yet."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return no hyperparameters."""
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        """Return the hyperparameter at the step of a descent, or let the global sampler draw it."""
        step = self.step_of(study, trial.number)
        if step is not None and param_name in step.params:
            part = as_dimension(param_distribution)
            assert part is not None  # every distribution is a dimension
            return part.nearest(step.params[param_name])
        place = study.study_name, trial.number
        if place not in self._drawn:
            self.sampler.before_trial(study, trial)
            space = self.sampler.infer_relative_search_space(study, trial)
            self._drawn[place] = self.sampler.sample_relative(study, trial, space)
        if param_name in self._drawn[place]:
            return self._drawn[place][param_name]
        return super().sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Any) -> None:
        """Forget what was decided on the trial."""
        place = study.study_name, trial.number
        if self._drawn.pop(place, None) is not None:
            super().after_trial(study, trial, state, values)
        step = self._decided.pop(place, None)
        if step is not None and state == TrialState.COMPLETE and label_of(trial) is None:
            self._is_heeded = False
            warnings.warn(
                "The objective function must ask wants_gradient(trial) for a GradientSampler to "
                "follow gradients. All further trials are drawn.",
                stacklevel=2,
            )

    def step_of(self, study: Study, number: int) -> Step | None:
        """Return the step that a running trial takes, or None if it is drawn."""
        place = study.study_name, number
        if place not in self._decided:
            self._settle(study, number)
            trials = study.get_trials(deepcopy=False)
            own = next(trial for trial in trials if trial.number == number)
            others = [trial for trial in trials if trial.number != number]
            is_drawn = is_start(own) or not self._is_heeded
            self._decided[place] = None if is_drawn else self._next_step(study, others)
        return self._decided[place]

    def draw(self, study: Study, number: int) -> None:
        """Let the global sampler draw a running trial, which can have no gradient."""
        self._decided[study.study_name, number] = None
        if self._is_heeded:
            self._is_heeded = False
            warnings.warn(
                "The loss has no gradient that a GradientSampler could follow: all trials are "
                'drawn. Use, for example, metric="smooth_error" and loo_method="span".',
                stacklevel=2,
            )

    def pace(self, study: Study) -> Pace:
        """Return how the descents of a study are made."""
        uphill = study.direction == StudyDirection.MAXIMIZE
        return Pace(self.n_steps, self.penalty, uphill)

    def _next_step(self, study: Study, trials: list[FrozenTrial]) -> Step | None:
        """Return the next step of a descent, or None if a point is to be drawn."""
        descents = Descents(trials, self.pace(study))
        standings = descents.standings()
        for standing in standings.values():
            if standing.step is not None:
                return standing.step
        over = [standing for standing in standings.values() if standing.is_over]
        if len(over) >= _VAIN and not any(standing.n_gradients for standing in over):
            return None
        drawn = sum(trial.state in _FINISHED and label_of(trial) is None for trial in trials)
        if len(standings) >= self.n_starts * (drawn // self.n_startup):
            return None
        # A start that has its gradient already may be followed by the next step at once.
        begun = (descents.standing(start) for start in descents.best())
        return next((standing.step for standing in begun if standing.step is not None), None)

    def _settle(self, study: Study, number: int) -> None:
        """Wait until earlier trials have their steps or points, or nobody decides on them."""
        end = time.monotonic() + _SECONDS_TO_DECIDE
        while undecided := self._undecided(study, number):
            if time.monotonic() > end:
                self._strangers |= {(study.study_name, stranger) for stranger in undecided}
            time.sleep(_PAUSE)

    def _undecided(self, study: Study, number: int) -> set[int]:
        """Return the numbers of earlier trials that may be about to take a step."""
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        name = study.study_name
        known = {
            place for place, step in list(self._decided.items()) if step is None
        } | self._strangers
        return {
            trial.number
            for trial in running
            if trial.number < number and (name, trial.number) not in known and _is_open(trial)
        }


def _is_open(trial: FrozenTrial) -> bool:
    """Return whether a running trial shows no sign of what it will be."""
    return not trial.params and label_of(trial) is None and not is_start(trial)


def wants_gradient(trial: BaseTrial) -> bool:
    """Return whether a trial is a step of a descent, so that its gradient is needed.

    Call it before the trial suggests its first hyperparameter if several processes share the study:
    it records which step of which descent the trial takes.

    Parameters
    ----------
    trial
        Trial of a study, with any sampler.

    Examples
    --------
    >>> import optuna
    >>> from span_hpo.integrations.optuna import GradientSampler, store_gradient, wants_gradient
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def function(trial):
    ...     is_step = wants_gradient(trial)
    ...     x = trial.suggest_float("x", -2.0, 2.0)
    ...     if is_step:
    ...         store_gradient(trial, {"x": 2 * (x - 1)})
    ...     return (x - 1) ** 2
    >>> study = optuna.create_study(sampler=GradientSampler(n_startup=5, n_steps=25, seed=0))
    >>> study.optimize(function, n_trials=30)
    >>> study.best_value < 1e-3
    True
    """
    if DESCENT in trial.user_attrs:
        return True
    if not isinstance(trial, Trial):
        return False
    sampler = gradient_sampler_of(trial.study)
    step = None if sampler is None else sampler.step_of(trial.study, trial.number)
    if step is None:
        return False
    trial.set_user_attr(DESCENT, step.label())
    return True


def wanted_of(trial: BaseTrial, *, has_gradient: bool) -> Wanted | None:
    """Return what the `GradientSampler` of a study wants to know of a trial; None without one.

    Parameters
    ----------
    trial
        Trial that has not suggested any hyperparameter yet.
    has_gradient
        Whether the loss has a gradient. If it has none, the sampler draws the trial.
    """
    if not isinstance(trial, Trial):
        return None
    sampler = gradient_sampler_of(trial.study)
    if sampler is not None and not has_gradient:
        sampler.draw(trial.study, trial.number)
    if not has_gradient or (sampler is None and DESCENT not in trial.user_attrs):
        return None
    if wants_gradient(trial):
        return Wanted(float(trial.user_attrs[DESCENT]["penalty"]), is_step=True)
    return None if sampler is None else Wanted(sampler.penalty, is_step=False)


def asked_trial(study: Study, space: Space, *, has_gradient: bool) -> tuple[Trial, Wanted | None]:
    """Return a new trial of a study, and what its `GradientSampler` wants to know of it.

    This is ``study.ask`` for programs that evaluate trials elsewhere, such as the workers of Ray.

    Parameters
    ----------
    study
        Study of Optuna.
    space
        Space of the objective, which the trial has suggested then.
    has_gradient
        Whether the loss has a gradient. If it has none, the trial is drawn.

    Returns
    -------
    The trial; and the strength of the penalty with whether the trial is a step of a descent, or
    None if the study has another sampler.

    Examples
    --------
    >>> from span_hpo import Float
    >>> from span_hpo.integrations.optuna import asked_trial, new_study
    >>> study = new_study(sampler="gradient", seed=0)
    >>> trial, wanted = asked_trial(study, {"C": Float(1.0, 8.0)}, has_gradient=True)
    >>> list(trial.params), wanted.is_step
    (['C'], False)
    """
    trial = study.ask()
    wanted = wanted_of(trial, has_gradient=has_gradient)
    suggest_all(trial, space)
    return trial, wanted


def gradient_sampler_of(study: Study) -> GradientSampler | None:
    """Return the `GradientSampler` of a study, also if a search has planned it; None if none."""
    sampler: Any = study.sampler
    while isinstance(sampler, DelegatingSampler) and not isinstance(sampler, GradientSampler):
        sampler = getattr(sampler, "sampler", None)
    return sampler if isinstance(sampler, GradientSampler) else None
