"""Name the pruners, and keep pruning within limits, so that a search always ends with a model.

The settings of named pruners are those that the pruning benchmark measures (``python -m benchmarks
pruning``, see docs/search.md). Successive halving and Hyperband take the first budget as their
least resource and the growth of the budgets as their reduction factor. Optuna's own defaults know
nothing of rows: successive halving takes a hundredth of all rows as the least resource and 4 as the
reduction factor. The first budget, an eighth of the rows, then passes two rungs at once, and only
one trial in sixteen goes on.
"""

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Lock
from weakref import WeakSet

from optuna import Study
from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    MedianPruner,
    NopPruner,
    PercentilePruner,
    SuccessiveHalvingPruner,
)
from optuna.trial import BaseTrial, FrozenTrial, TrialState

from span_hpo.integrations.optuna.workers import is_abandoned, start_of
from span_hpo.objective import SpanObjective
from span_hpo.search import DEFAULT_BUDGETS, default_budgets

# Least share of the finished trials of a study that are complete. A tenth of 50 trials would hardly
# be more than the defaults, and half of them would leave little time to save.
LEAST_COMPLETE = 0.25
# Settings of the pruning benchmark: complete trials before the first one is stopped, and percent of
# the trials that pass a budget.
_STARTUP_TRIALS = 10
_PERCENTILE = 10.0
_LEAST_REDUCTION = 2  # least reduction factor that Optuna accepts
_lock = Lock()
_given: WeakSet[MedianPruner] = WeakSet()  # those that were passed to `new_study`


class NamedPruner(BasePruner):
    """Pruner that was chosen by its name, and takes its settings from the budgets of the trials."""

    _budgets: tuple[int, ...] | None = None

    def fit_to(self, budgets: tuple[int, ...]) -> None:
        """Take the settings that belong to budgets in rows, unless they are already taken."""
        with _lock:
            if self._budgets != budgets:
                self._take(budgets)
                self._budgets = budgets

    def _take(self, budgets: tuple[int, ...]) -> None:
        """Take the settings that belong to budgets; by default, there are none."""


class _Median(NamedPruner, MedianPruner):
    """Stop a trial that is worse than the median of the complete ones."""

    def __init__(self) -> None:
        super().__init__(n_startup_trials=_STARTUP_TRIALS)


class _Percentile(NamedPruner, PercentilePruner):
    """Stop a trial that is not among the best tenth of the complete ones."""

    def __init__(self) -> None:
        super().__init__(_PERCENTILE, n_startup_trials=_STARTUP_TRIALS)


class _Halving(NamedPruner, SuccessiveHalvingPruner):
    """Stop about half of the trials at each budget, if budgets double."""

    def __init__(self) -> None:
        super().__init__(reduction_factor=_LEAST_REDUCTION)

    def _take(self, budgets: tuple[int, ...]) -> None:
        super().__init__(min_resource=budgets[0], reduction_factor=_reduction(budgets))


class _Hyperband(NamedPruner, HyperbandPruner):
    """Stop trials as successive halving does, in groups that begin at different budgets."""

    def __init__(self) -> None:
        super().__init__(reduction_factor=_LEAST_REDUCTION)

    def _take(self, budgets: tuple[int, ...]) -> None:
        super().__init__(
            min_resource=budgets[0],
            max_resource=budgets[-1],
            reduction_factor=_reduction(budgets),
        )


PRUNER_OF_NAME: dict[str, Callable[[], BasePruner]] = {
    "none": NopPruner,
    "median": _Median,
    "percentile": _Percentile,
    "halving": _Halving,
    "hyperband": _Hyperband,
}


def note_given(pruner: BasePruner) -> None:
    """Note that a user has passed a pruner, which may be equal to the one that Optuna chooses."""
    if isinstance(pruner, MedianPruner):
        _given.add(pruner)


def budgets_for(study: Study, objective: SpanObjective) -> tuple[int, ...]:
    """Return the budgets, in rows, of trials for which none were given.

    They are those of the pruning benchmark for a pruner that was chosen by its name, and otherwise
    all rows. Trials with several metrics cannot be pruned.
    """
    may_stop = isinstance(study.pruner, NamedPruner) and len(objective.metrics) == 1
    return default_budgets(objective, may_stop=may_stop)


def warn_of_idle_pruner(study: Study, budgets: Sequence[int]) -> None:
    """Warn if a pruner was asked for that can stop no trial, because there is only one budget.

    The pruner that Optuna chooses if none is given is not worth a warning.
    """
    pruner = study.pruner
    is_wanted = not isinstance(pruner, NopPruner) and not _is_default(pruner)
    if is_wanted and len(budgets) == 1 and len(study.directions) == 1:
        warnings.warn(
            f"`budgets` must have several numbers or shares of rows so that the pruner "
            f"{_name(pruner)} can stop a trial, got {list(budgets)} rows: pass, for example, "
            f"{', '.join(map(str, DEFAULT_BUDGETS))}, or no pruner.",
            stacklevel=2,
        )


def may_be_pruned(trial: BaseTrial, study: Study) -> bool:
    """Return whether a trial may be stopped that the pruner of its study wants to stop.

    A trial whose parameters were not drawn, such as a default, is never stopped. Another one is
    stopped only if at least the share `LEAST_COMPLETE` of all trials is complete even if it and all
    others that are running are stopped. Because a process counts what others may be about to do,
    the share holds for any number of processes: the last one that stops a trial has counted all the
    others.
    """
    trials = study.get_trials(deepcopy=False)
    if is_start(trials[trial.number]):
        return False
    complete = sum(other.state == TrialState.COMPLETE for other in trials)
    others = sum(_is_or_may_be_pruned(other) for other in trials)
    return complete >= LEAST_COMPLETE * (complete + others)


def is_start(trial: FrozenTrial) -> bool:
    """Return whether a trial was enqueued, or has a point at which a search begins."""
    return "fixed_params" in trial.system_attrs or start_of(trial) is not None


def _is_or_may_be_pruned(trial: FrozenTrial) -> bool:
    if trial.state == TrialState.RUNNING:
        return not is_abandoned(trial)
    return trial.state == TrialState.PRUNED


def _reduction(budgets: tuple[int, ...]) -> int:
    """Return the reduction factor with which a trial passes one rung at each budget.

    The rungs are the first budget times the powers of the factor.
    """
    growth = [later // earlier for earlier, later in pairwise(budgets)]
    return max(_LEAST_REDUCTION, min(growth, default=_LEAST_REDUCTION))


def _is_default(pruner: BasePruner) -> bool:
    """Return whether Optuna has chosen a pruner by itself, as it does if none is given."""
    if type(pruner) is not MedianPruner or pruner in _given:
        return False
    return vars(pruner) == vars(MedianPruner())


def _name(pruner: BasePruner) -> str:
    names = [name for name, kind in PRUNER_OF_NAME.items() if type(pruner) is kind]
    return repr(names[0]) if names else type(pruner).__name__
