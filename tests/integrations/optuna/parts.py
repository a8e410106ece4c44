"""Studies that the tests share."""

import optuna


def study_of(seed=0, **arguments):
    arguments.setdefault("sampler", optuna.samplers.TPESampler(seed=seed))
    return optuna.create_study(**arguments)


class AlwaysPrune(optuna.pruners.BasePruner):
    """Pruner that wants to stop every trial at its first report."""

    def prune(self, study, trial):
        """Return True."""
        return True
