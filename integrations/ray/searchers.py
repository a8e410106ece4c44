"""Use an Optuna study as a search algorithm of Ray Tune.

Ray's own `OptunaSearch` reports a trial that a scheduler has stopped to Optuna as complete, with
the loss of its few rows. Here, such a trial is pruned at the number of rows that it has reached.
Only the documented interface of Ray's search algorithms, and Optuna's ask and tell, are used.
"""

import math
import pickle
import uuid
from pathlib import Path
from typing import Any

from optuna import Study, Trial
from optuna.trial import TrialState
from ray.tune.search import Searcher

from span_hpo.integrations.optuna import asked_trial, check_study, enqueue_defaults, new_study
from span_hpo.integrations.ray.spaces import WANTED
from span_hpo.integrations.ray.trainable import LOSS, ROWS
from span_hpo.objective import SpanObjective
from span_hpo.search import ALIKE, GRADIENT, NO_GRADIENT, PENALTY, has_gradient

_OWNER = "search"  # attribute of a trial that names the search that has asked for it
_ATTRIBUTES = ("loo_error", "loo_error_bounds", "smooth_error", ROWS, "n_support", "n_in_bound")
# Attributes that only some metrics have, and those of the steps of a `GradientSampler`.
_OF_SOME = ("loo_standard_error", GRADIENT, PENALTY, ALIKE, NO_GRADIENT)


class StudySearch(Searcher):  # type: ignore[misc]  # Ray has no types
    """Let an Optuna study suggest the configurations of a `SpanTrainable`.

    The study then holds all trials that Ray has run: complete ones, pruned ones, which a scheduler
    has stopped, with all of their reports, and failed ones. The functions of
    `span_hpo.integrations.optuna`, such as `best_trial`, work on it.

    Parameters
    ----------
    objective
        Objective whose hyperparameters are searched.
    study
        Study of Optuna; by default a new one in memory. With ``new_study(sampler="gradient")``,
        trials may be steps along gradients; see `GradientSampler`.
    seed
        Random seed of the default study.
    with_defaults
        Begin with `SpanObjective.defaults`.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.ray import StudySearch, tuner
    >>> objective = SpanObjective([[0], [1]], [0, 1], kernel="linear")
    >>> results = tuner(objective, search=StudySearch(objective)).fit()  # doctest: +SKIP
    >>> StudySearch(objective).suggest("first trial")  # one of the defaults
    {'C_0': 1.0, 'C_1': 1.0}
    """

    def __init__(
        self,
        objective: SpanObjective,
        study: Study | None = None,
        *,
        seed: int | None = None,
        with_defaults: bool = True,
    ) -> None:
        super().__init__(metric=LOSS, mode="min")
        self.study = new_study(seed=seed) if study is None else study
        check_study(self.study, objective)
        self._space, self._has_gradient = objective.space, has_gradient(objective)
        self._all_rows = len(objective.data)
        self._running: dict[str, Trial] = {}
        self._last: dict[str, dict[str, Any]] = {}  # last reports of running trials
        self._id = uuid.uuid4().hex
        if with_defaults:
            enqueue_defaults(self.study, objective)

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Return whether the tuner minimises the loss and has no search space of its own."""
        return metric in (None, LOSS) and mode in (None, "min") and not config

    def suggest(self, trial_id: str) -> dict[str, Any]:
        """Return the next configuration."""
        trial, wanted = asked_trial(self.study, self._space, has_gradient=self._has_gradient)
        trial.set_user_attr(_OWNER, self._id)
        self._running[trial_id] = trial
        return dict(trial.params) if wanted is None else {**trial.params, WANTED: wanted._asdict()}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Report the loss to the study, at a step equal to its number of rows."""
        trial = self._running.get(trial_id)
        if trial is not None and LOSS in result:
            trial.report(float(result[LOSS]), step=int(result[ROWS]))
            self._last[trial_id] = result

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Report to the study how a trial has ended."""
        trial, last = self._running.pop(trial_id, None), self._last.pop(trial_id, None)
        if trial is None:
            return
        if result is None and not error:
            result = last  # Ray passes no result of a trial that it stops during a pause
        if error or not result or LOSS not in result or math.isnan(result[LOSS]):
            self.study.tell(trial, state=TrialState.FAIL)
            return
        if result is not last:
            trial.report(float(result[LOSS]), step=int(result[ROWS]))
        for name in _ATTRIBUTES:
            trial.set_user_attr(name, result[name])
        for name in _OF_SOME:
            if name in result:
                trial.set_user_attr(name, result[name])
        if result[ROWS] < self._all_rows:
            self.study.tell(trial, state=TrialState.PRUNED)
        else:
            self.study.tell(trial, float(result[LOSS]))

    def save(self, checkpoint_path: str) -> None:
        """Write the study and its running trials to a file."""
        state = (self.study, self._running, self._last, self._id)
        Path(checkpoint_path).write_bytes(pickle.dumps(state))

    def restore(self, checkpoint_path: str) -> None:
        """Continue from a file that `save` has written.

        A study in a storage may have changed since then. Trials that have finished are done.
        Trials that were asked for later are marked as failed, because nobody will finish them.
        """
        state = pickle.loads(Path(checkpoint_path).read_bytes())
        self.study, self._running, self._last, self._id = state
        own = {
            trial.number: trial.state
            for trial in self.study.get_trials(deepcopy=False)
            if trial.user_attrs.get(_OWNER) == self._id
        }
        self._running = {
            name: trial
            for name, trial in self._running.items()
            if own.get(trial.number) == TrialState.RUNNING
        }
        known = {trial.number for trial in self._running.values()}
        for number, trial_state in own.items():
            if trial_state == TrialState.RUNNING and number not in known:
                self.study.tell(number, state=TrialState.FAIL)
