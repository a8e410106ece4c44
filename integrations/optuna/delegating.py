"""A sampler of Optuna that lets other samplers draw."""

from collections.abc import Sequence
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

_SPACE = dict[str, BaseDistribution]


class DelegatingSampler(BaseSampler):
    """Sampler that passes every call on to the sampler that `sampler_for` returns."""

    def sampler_for(self, trial: FrozenTrial) -> BaseSampler:
        """Return the sampler that draws the parameters of a trial."""
        raise NotImplementedError

    def shown(self, trial: FrozenTrial) -> FrozenTrial:
        """Return the trial as the sampler shall see it."""
        return trial

    def reseed_rng(self) -> None:
        """Do nothing: draws of several threads have different numbers."""

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Do what the sampler does before a trial."""
        self.sampler_for(trial).before_trial(study, self.shown(trial))

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> _SPACE:
        """Return the space that the sampler draws from at once."""
        return self.sampler_for(trial).infer_relative_search_space(study, self.shown(trial))

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: _SPACE) -> Any:
        """Draw the parameters of this space at once."""
        return self.sampler_for(trial).sample_relative(study, self.shown(trial), search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        """Draw one parameter."""
        return self.sampler_for(trial).sample_independent(
            study, self.shown(trial), param_name, param_distribution
        )

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Do what the sampler does after a trial."""
        self.sampler_for(trial).after_trial(study, self.shown(trial), state, values)
