"""Run the search of `SpanSearchCV`: a grid, scikit-learn's random candidates, or Optuna's."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from span_hpo.estimators.candidates import (
    DrawnSpace,
    checked_n_iter,
    combinations,
    drawn_space,
    grid_candidates,
    random_candidates,
)
from span_hpo.estimators.outcomes import (
    Outcome,
    outcome_of,
    outcomes_in_batches,
    outcomes_in_order,
)
from span_hpo.estimators.pipelines import checked_arguments
from span_hpo.estimators.searches import optuna_adapter, sampler_seed
from span_hpo.estimators.shared_objectives import SharedObjectives
from span_hpo.estimators.svc_arguments import SVCArguments
from span_hpo.runtime import Array, real, thread_count, whole
from span_hpo.search import SAMPLERS
from span_hpo.selection import is_settled
from span_hpo.space import Choice

GRID, RANDOM = "grid", "random"
KINDS = (GRID, RANDOM, *(name for name in SAMPLERS if name != RANDOM))


@dataclass(frozen=True, eq=False)
class CandidateSearch:
    """A search that is ready to run.

    Attributes
    ----------
    kind
        "grid", "random" or the name of a sampler of Optuna.
    candidates
        All candidates, or None if a sampler draws them.
    space
        Space that a sampler draws from, or None.
    n_iter
        Number of candidates that a sampler draws.
    threads
        Number of threads.
    timeout, patience
        Seconds, and number of candidates without a lower loss, after which the search ends; or
        None.
    random_state
        Random state or seed.
    """

    kind: str
    candidates: list[dict[str, Any]] | None
    space: DrawnSpace | None
    n_iter: int
    threads: int
    timeout: float | None
    patience: int | None
    random_state: Any

    @classmethod
    def of(cls, settings: Any, parts: Sequence[dict[str, Any]]) -> "CandidateSearch":
        """Return the search that the arguments of an estimator ask for.

        Parameters
        ----------
        settings
            Estimator with the arguments of `SpanSearchCV`.
        parts
            Checked dictionaries of lists and distributions.

        Raises
        ------
        ValueError
            If an argument is not valid, or arguments contradict each other.
        """
        kind = settings.search
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"`search` must be one of {list(KINDS)}, got {kind!r}.")
        n_iter = checked_n_iter(settings.n_iter)
        patience, timeout = settings.patience, settings.timeout
        if patience is not None:
            patience = whole("patience", patience, at_least=1)
            if kind == GRID:
                raise ValueError(
                    "`patience` must be None for search='grid', whose order says nothing about "
                    f"the candidates, got {patience}. Use search='random' or 'tpe' with it."
                )
        if timeout is not None:
            timeout = real("timeout", timeout, above=0)
        candidates = space = None
        if kind not in (GRID, RANDOM) and combinations(parts) <= n_iter:
            kind = RANDOM  # which tries every combination once
        if kind == GRID:
            candidates = grid_candidates(parts)
        elif kind == RANDOM:
            candidates = random_candidates(parts, n_iter, settings.random_state)
        else:
            space = drawn_space(parts, kind)
        threads = 1 if settings.n_jobs is None else thread_count("n_jobs", settings.n_jobs)
        return cls(
            kind,
            candidates,
            space,
            n_iter,
            threads,
            timeout,
            patience,
            settings.random_state,
        )

    @property
    def count(self) -> int:
        """Number of candidates, if nothing ends the search before."""
        return self.n_iter if self.candidates is None else len(self.candidates)

    def check_arguments(self, given: Mapping[str, Any], prefix: str) -> None:
        """Check the arguments that the SVM will have, before anything is fitted.

        Parameters
        ----------
        given
            Arguments of the SVM that no candidate changes.
        prefix
            What the names of the parameters of the SVM begin with.

        Raises
        ------
        ValueError, TypeError
            If an argument is not valid, or asks for what a leave-one-out fit cannot do.
        """
        for candidate in self.candidates or self._examples():
            own = {
                name.removeprefix(prefix): value
                for name, value in candidate.items()
                if name.startswith(prefix)
            }
            checked_arguments({**given, **own})

    def run(self, shared: SharedObjectives, prefix: str) -> tuple[list[Outcome], Any]:
        """Return the outcomes in the order of the candidates, and the study of Optuna or None.

        Weights of classes that are not in the data are refused before anything is fitted. Ctrl-C
        ends the search with a warning, if there is an outcome.
        """
        self._check_class_weights(shared.rows.y, prefix)
        found: dict[int, Outcome] = {}
        study = None
        try:
            if self.candidates is None:
                study = self._new_study()
                self._run_study(study, shared, found)
            elif self.timeout is None and self.patience is None:
                outcomes_in_batches(
                    shared, self.candidates, prefix=prefix, threads=self.threads, found=found
                )
            else:
                outcomes_in_order(
                    shared,
                    self.candidates,
                    threads=self.threads,
                    is_over=self._end(found),
                    found=found,
                )
        except KeyboardInterrupt:
            if not found:
                raise
            warnings.warn(
                f"The search was interrupted after {len(found)} candidates. The model is that of "
                "the best one so far.",
                stacklevel=3,
            )
        return [found[number] for number in sorted(found)], study

    def _check_class_weights(self, y: Array, prefix: str) -> None:
        """Raise if the weights of classes that are searched name a label that there is not."""
        name = f"{prefix}class_weight"
        searched = [one[name] for one in self.candidates or self._examples() if name in one]
        for weights in {id(weights): weights for weights in searched}.values():
            SVCArguments.of({"class_weight": weights}).class_weights(y)

    def _examples(self) -> list[dict[str, Any]]:
        """Return candidates that each have one option of a list, or one end of a range."""
        assert self.space is not None
        examples = []
        for name, part in self.space.dimensions.items():
            options = part.options if isinstance(part, Choice) else part.grid(2)
            examples += [{name: self.space.value(name, option)} for option in options]
        return examples

    def _end(self, found: Mapping[int, Outcome]) -> Callable[[], bool]:
        """Return a function that returns whether to begin no more candidates."""
        end = None if self.timeout is None else time.monotonic() + self.timeout

        def is_over() -> bool:
            if end is not None and time.monotonic() > end:
                return True
            losses = [one.losses[0] for one in list(found.values()) if one.failure is None]
            return self.patience is not None and is_settled(losses, self.patience)

        return is_over

    def _adapter(self) -> Any:
        return optuna_adapter(
            f"search={self.kind!r} needs Optuna: pip install 'span-hpo[optuna]'. search='grid' and "
            "'random' need nothing else."
        )

    def _new_study(self) -> Any:
        return self._adapter().new_study(sampler=self.kind, seed=sampler_seed(self.random_state))

    def _run_study(self, study: Any, shared: SharedObjectives, found: dict[int, Outcome]) -> None:
        space = self.space
        assert space is not None

        def evaluate(number: int, point: dict[str, Any]) -> tuple[float, Mapping[str, Any]]:
            outcome = found[number] = outcome_of(shared, space.candidate(point))
            if outcome.failure is not None:
                return outcome.losses[0], {"failure": outcome.failure}
            return outcome.losses[0], outcome.figures

        self._adapter().search_points(
            study,
            space.dimensions,
            evaluate,
            n_trials=self.n_iter,
            timeout=self.timeout,
            patience=self.patience,
            n_jobs=self.threads,
        )
