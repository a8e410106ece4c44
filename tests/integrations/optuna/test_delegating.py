"""Samplers that let others draw."""

from optuna.samplers import BaseSampler
from optuna.trial import TrialState

from span_hpo.integrations.optuna import new_study
from span_hpo.integrations.optuna.delegating import DelegatingSampler


class Fixed(BaseSampler):
    """Sampler that draws 0.25 at once for x, and 0.5 for all others, and notes what it is asked."""

    def __init__(self):
        self.calls = []

    def before_trial(self, study, trial):
        """Note the call."""
        self.calls.append("before")

    def infer_relative_search_space(self, study, trial):
        """Return no space on the first trial, and that of x later."""
        return {} if trial.number == 0 else {"x": study.trials[0].distributions["x"]}

    def sample_relative(self, study, trial, search_space):
        """Draw 0.25."""
        return dict.fromkeys(search_space, 0.25)

    def sample_independent(self, study, trial, param_name, param_distribution):
        """Draw 0.5."""
        return 0.5

    def after_trial(self, study, trial, state, values):
        """Note how the trial has ended."""
        self.calls.append((state, values))


class Passing(DelegatingSampler):
    """Sampler that lets one sampler draw all trials."""

    def __init__(self, sampler):
        self.sampler = sampler

    def sampler_for(self, trial):
        """Return the sampler."""
        return self.sampler


def test_every_call_is_passed_on():
    """Draws at once, single draws and what follows a trial come from the other sampler."""
    sampler = Fixed()
    study = new_study(sampler=Passing(sampler))
    for _ in range(2):
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        trial.suggest_float("y", 0, 1)
        study.tell(trial, 1.0)
    assert [trial.params for trial in study.trials] == [{"x": 0.5, "y": 0.5}, {"x": 0.25, "y": 0.5}]
    assert sampler.calls == ["before", (TrialState.COMPLETE, [1.0])] * 2
