"""Turn a `SpanObjective` into a trainable of Ray Tune."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ray import tune

from span_hpo.integrations.ray.spaces import WANTED, config_params
from span_hpo.objective import Evaluation, SpanObjective
from span_hpo.search import DEFAULT_BUDGETS, Wanted, budgets_to_all_rows, evaluated_step, penalty_at

LOSS, ROWS = "loss", "n_rows"
_STATE = "state.json"


class SpanTrainable(tune.Trainable):  # type: ignore[misc]  # Ray has no types
    """Evaluate a configuration on more and more rows, with one budget in each step.

    Use it as ``tune.with_parameters(SpanTrainable, objective=objective)``, so that the data travel
    only once, through the object store. The kernel cache lives with the actor, which is reused for
    other configurations. Each step reports the `loss`, the `losses` of all metrics, and the figures
    of `Evaluation.figures`: `n_rows`, `loo_error`, `n_support`, `n_in_bound`, `seconds` and others.
    A fit that fails is an error of its trial. From the second budget on, every report is kept in a
    checkpoint, from which a trial continues after a pause or the loss of its process. A trial that
    is a step of a descent, as a `StudySearch` may ask for, uses all rows at once and also reports
    its `gradient`.

    Examples
    --------
    For a `SpanObjective` named ``objective``:

    >>> from ray import tune
    >>> from span_hpo.integrations.ray import SpanTrainable, search_space
    >>> space = search_space(objective)  # doctest: +SKIP
    >>> trainable = tune.with_parameters(SpanTrainable, objective=objective)  # doctest: +SKIP
    >>> results = tune.Tuner(trainable, param_space=space).fit()  # doctest: +SKIP
    """

    def setup(
        self,
        config: dict[str, Any],
        *,
        objective: SpanObjective,
        budgets: Sequence[float] = DEFAULT_BUDGETS,
    ) -> None:
        """Store the objective and the budgets, which `budgets_to_all_rows` describes."""
        self.objective = objective
        self.budgets = budgets_to_all_rows(objective, budgets)
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Begin another configuration in the same process."""
        self.params = config_params(self.objective, new_config)
        self.wanted = Wanted(**new_config[WANTED]) if WANTED in new_config else None
        self.reports: list[dict[str, Any]] = []
        return True

    def step(self) -> dict[str, Any]:
        """Evaluate the configuration on the rows of the next budget."""
        is_step = self.wanted is not None and self.wanted.is_step
        n_rows = self.budgets[-1 if is_step else len(self.reports)]
        is_last = n_rows == self.budgets[-1]
        evaluation, slopes = self._evaluated(n_rows, certify=is_last)
        losses = {LOSS: evaluation.loss, "losses": evaluation.losses}
        report = {**losses, **evaluation.figures(), **slopes}
        # The first budget takes no longer to repeat than to restore, and the last one is the end.
        is_worth_keeping = bool(self.reports) and not is_last
        self.reports.append(report)
        return {**report, "done": is_last, "should_checkpoint": is_worth_keeping}

    def _evaluated(self, n_rows: int, *, certify: bool) -> tuple[Evaluation, dict[str, Any]]:
        """Return an evaluation, and what a `GradientSampler` wants to know of it."""
        objective, params, wanted = self.objective, self.params, self.wanted
        if wanted is None:
            return objective.evaluate(params, n_rows, certify=certify), {}
        if wanted.is_step:
            return evaluated_step(objective, params, n_rows, wanted.penalty)
        evaluation = objective.evaluate(params, n_rows, certify=certify)
        return evaluation, penalty_at(objective, params, wanted.penalty)

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Write all reports so far, so that the trial can continue elsewhere."""
        state = {"budgets": self.budgets, "reports": self.reports}
        (Path(checkpoint_dir) / _STATE).write_text(json.dumps(state))

    def load_checkpoint(self, checkpoint: str) -> None:
        """Continue after the reports of a checkpoint."""
        state = json.loads((Path(checkpoint) / _STATE).read_text())
        if tuple(state["budgets"]) != self.budgets:
            raise ValueError(
                f"`budgets` must be those of the checkpoint, {state['budgets']} rows, got "
                f"{list(self.budgets)}."
            )
        self.reports = state["reports"]
