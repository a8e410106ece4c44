"""Name the samplers, and let their draws depend on the seed and the history only.

A sampler of Optuna that is seeded once goes on with its random numbers from trial to trial, so that
a search that was killed cannot continue as if nothing had happened. Here each draw has a number and
a seed of its own: a trial that is repeated draws what the interrupted one has drawn.
"""

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np
import optuna
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import (
    BaseSampler,
    CmaEsSampler,
    GPSampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)
from optuna.trial import FrozenTrial, TrialState

from span_hpo.integrations.optuna.delegating import DelegatingSampler
from span_hpo.integrations.optuna.gradient_sampler import GradientSampler
from span_hpo.integrations.optuna.workers import draw_of

SAMPLER_OF_NAME: dict[str, Callable[..., BaseSampler]] = {
    "tpe": TPESampler,
    "random": RandomSampler,
    "qmc": QMCSampler,
    "cmaes": CmaEsSampler,
    "gp": GPSampler,
    "gradient": GradientSampler,
}
# Modules that samplers import in their first trial, and how to install them.
_NEEDS = {
    "cmaes": ("cmaes", "pip install 'span-hpo[optuna]'"),
    "gp": ("torch", "pip install torch"),
}
_SPACE = dict[str, BaseDistribution]
_lock = Lock()  # of the points of quasi-random sequences


def check_sampler(name: str) -> None:
    """Raise before any trial if the sampler of this name needs a package that is not installed.

    Raises
    ------
    ImportError
        If a package is missing. The message says how to install it.

    Examples
    --------
    >>> from span_hpo.integrations.optuna import check_sampler
    >>> check_sampler("tpe")
    """
    if name not in _NEEDS:
        return
    module, command = _NEEDS[name]
    if find_spec(module) is None:
        raise ImportError(
            f"The sampler {name!r} needs the package {module}: {command}. The samplers 'tpe', "
            "'random' and 'qmc' need nothing else."
        )


def named_sampler(name: str, seed: int | None) -> BaseSampler:
    """Return the sampler of this name; one with a seed draws the same in a resumed search."""
    check_sampler(name)
    if name == "gradient":
        return GradientSampler(named_sampler("tpe", seed))
    if seed is None:
        return _new_sampler(name, None)
    return _SeededSequence(seed) if name == "qmc" else SeededSampler(name, seed)


class SeededSampler(DelegatingSampler):
    """Sampler of a name whose draws depend on the seed, the number of the draw and the history.

    Parameters
    ----------
    name
        Name of the sampler, a key of `SAMPLER_OF_NAME`.
    seed
        Random seed.
    """

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.seed = seed
        self._samplers: dict[tuple[int, int | None], BaseSampler] = {}  # those of running trials

    def sampler_for(self, trial: FrozenTrial) -> BaseSampler:
        """Return a new sampler for each trial, seeded by the number of its draw."""
        key = trial.number, draw_of(trial)
        if key not in self._samplers:
            self._samplers[key] = _new_sampler(self.name, _seed_of(self.seed, key[1] or 0))
        return self._samplers[key]

    def shown(self, trial: FrozenTrial) -> FrozenTrial:
        """Return the trial, for CMA-ES with the number of its draw, which it adds to its seed."""
        if self.name != "cmaes":
            return trial
        shown = copy.copy(trial)
        shown.number = draw_of(trial) or 0
        return shown

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Forget the sampler of the trial."""
        super().after_trial(study, trial, state, values)
        for key in [key for key in list(self._samplers) if key[0] == trial.number]:
            self._samplers.pop(key, None)


class _SeededSequence(SeededSampler):
    """Points of a quasi-random sequence, each with the number of its draw.

    Optuna counts the points in an attribute of the study, which also counts those of killed trials.
    """

    def __init__(self, seed: int) -> None:
        super().__init__("qmc", seed)
        self._points: list[dict[str, Any]] = []
        self._sequence: tuple[BaseSampler, Study] | None = None

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: _SPACE) -> Any:
        """Return the point of the sequence with the number of the draw."""
        if not search_space:
            return {}
        draw = draw_of(trial) or 0
        with _lock, quiet():
            if self._sequence is None:
                self._sequence = _new_sampler("qmc", self.seed), optuna.create_study()
            sampler, counter = self._sequence
            while len(self._points) <= draw:
                self._points.append(sampler.sample_relative(counter, trial, search_space))
        return self._points[draw]


class PlannedSampler(DelegatingSampler):
    """Sampler that waits for a plan: starts come first, and a draw is made when it has a number.

    Optuna draws while it creates a trial, before a search can say whether the trial is wanted.

    Parameters
    ----------
    sampler
        Sampler that draws the parameters of trials without a start.
    study
        Study of the trials.
    """

    def __init__(self, sampler: BaseSampler, study: Study) -> None:
        self.sampler = sampler
        self.starts: dict[int, dict[str, Any]] = {}  # parameters of trials that are not drawn
        self._study = study
        self._drawn: dict[int, dict[str, Any]] = {}

    def sampler_for(self, trial: FrozenTrial) -> BaseSampler:
        """Return the sampler of the study."""
        return self.sampler

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Wait until the parameters are drawn."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> _SPACE:
        """Return an empty space, so that nothing is drawn yet."""
        return {}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: _SPACE) -> Any:
        """Return no parameters."""
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        """Return the parameter of the start of the trial, or draw all that are drawn at once."""
        start = self.starts.get(trial.number)
        if start is not None:
            return start[param_name]
        if trial.number not in self._drawn:
            self.sampler.before_trial(study, trial)
            # The sampler may have written attributes.
            trial = self._study.get_trials(deepcopy=False)[trial.number]
            space = self.sampler.infer_relative_search_space(study, trial)
            self._drawn[trial.number] = self.sampler.sample_relative(study, trial, space)
        drawn = self._drawn[trial.number]
        if param_name in drawn:
            return drawn[param_name]
        return super().sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Forget the plan of the trial."""
        super().after_trial(study, trial, state, values)
        self.starts.pop(trial.number, None)
        self._drawn.pop(trial.number, None)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna from logging a line for each trial, and a traceback for an interrupted one.

    An exception is reported by whoever catches it, and a failed fit by an attribute of its trial.
    """
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(level, optuna.logging.ERROR))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)


def _seed_of(seed: int, draw: int) -> int:
    """Return the seed of a draw, such that those of different draws are independent."""
    return int(np.random.SeedSequence([seed, draw]).generate_state(1)[0])


def _new_sampler(name: str, seed: int | None) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return SAMPLER_OF_NAME[name](seed=seed)
