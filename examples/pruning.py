"""Stop bad trials early: most trials see only an eighth of the rows, and good ones all of them.

A trial reports its loss at 250, 500, 1000 and 2000 rows, and successive halving stops it as soon as
it is not among the better half. The same search without pruning is run for comparison.
"""

import time

import optuna
from optuna.pruners import NopPruner, SuccessiveHalvingPruner
from optuna.trial import TrialState
from sklearn.datasets import make_moons

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, best_trial

X, y = make_moons(2000, noise=0.3, random_state=0)
BUDGETS = (0.125, 0.25, 0.5, 1.0)  # shares of the rows
HALVING = SuccessiveHalvingPruner(min_resource=250, reduction_factor=2)  # min_resource counts rows

# The first fits import what they need, which must not count as time of a search.
small = SpanObjective(X[:200], y[:200])
small.evaluate({name: values[0] for name, values in small.grid(2).items()})
small.evaluate(small.defaults()[0])

optuna.logging.set_verbosity(optuna.logging.WARNING)
print("search            pruned   full fits   seconds   leave-one-out error")
for title, budgets, pruner in (
    ("all rows", (1.0,), NopPruner()),
    ("with pruning", BUDGETS, HALVING),
):
    objective = SpanObjective(X, y)  # a new objective has an empty kernel cache
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0), pruner=pruner)
    start = time.perf_counter()
    study.optimize(OptunaObjective(objective, budgets=budgets), n_trials=60)
    seconds = time.perf_counter() - start
    pruned, complete = (
        len(study.get_trials(states=(state,))) for state in (TrialState.PRUNED, TrialState.COMPLETE)
    )
    print(f"{title:14}{pruned:10}{complete:12}{seconds:10.2f}{best_trial(study).value:22.4f}")
