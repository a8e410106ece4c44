"""Search by gradients on the command line: no trials are kept, because it takes seconds."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from span_hpo.cli.options import SearchSettings
from span_hpo.estimators import GradientSearch, searched_by_gradients
from span_hpo.objective import SpanObjective
from span_hpo.runtime import ArgumentError
from span_hpo.selection import HonestEstimate


@dataclass
class GradientEngine:
    """Follow the gradient of the loss, or of a smooth error in its place."""

    in_folder: ClassVar[bool] = False
    search: ClassVar[str] = "gradients"
    settings: SearchSettings
    progress_bar: bool
    place: None = field(default=None, init=False)
    honest: HonestEstimate | str = field(
        default="none, because the path of a search by gradients is no sample of trials", init=False
    )
    found: GradientSearch | None = field(default=None, init=False)

    def prepare(self) -> None:
        """Raise if an option is given that needs trials which are kept."""
        given: dict[str, Any] = {
            "--patience": self.settings.patience,
            "--pruner": self.settings.pruner,
            "--budgets": self.settings.budgets,
            "--storage": self.settings.storage,
            "--resume": self.settings.resume or None,
        }
        for option, value in given.items():
            if value is not None:
                raise ArgumentError(
                    option,
                    "must not be given for a search by gradients, which keeps no trials, got "
                    f"{value!r}. Name a sampler, such as --sampler tpe.",
                )

    def chosen(self, objective: SpanObjective) -> dict[str, Any]:
        """Search and return the best hyperparameters."""
        return self.candidates(objective)[0]

    def candidates(self, objective: SpanObjective) -> list[dict[str, Any]]:
        """Search and return the best points of the path, best first."""
        points, self.found = searched_by_gradients(
            objective,
            self.settings.trials,
            timeout=self.settings.timeout,
            progress_bar=self.progress_bar,
        )
        return points

    def finished(self) -> int:
        """Return the number of evaluations."""
        return 0 if self.found is None else self.found.n_evaluations

    def settled(self) -> bool:
        """Return False: the path has a fixed length."""
        return False
