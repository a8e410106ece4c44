"""Stop bad trials early: many trials see only an eighth of the rows, and good ones all of them.

With ``pruner="halving"`` a trial reports its loss at 250, 500, 1000 and 2000 rows, and is stopped
as soon as it is not among the better half. The defaults are never stopped, and at least a quarter
of the trials is complete. The same search without pruning is run for comparison.
"""

import time

from optuna.trial import TrialState
from sklearn.datasets import make_moons

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import best_trial, new_study, search

X, y = make_moons(2000, noise=0.3, random_state=0)

# The first fits import what they need, which must not count as time of a search.
small = SpanObjective(X[:200], y[:200])
small.evaluate({name: values[0] for name, values in small.grid(2).items()})
small.evaluate(small.defaults()[0])

print("search            pruned   full fits   seconds   leave-one-out error")
for title, pruner in (("all rows", "none"), ("with pruning", "halving")):
    objective = SpanObjective(X, y)  # a new objective has an empty kernel cache
    study = new_study(pruner=pruner, seed=0)
    start = time.perf_counter()
    search(study, objective, n_trials=60)
    seconds = time.perf_counter() - start
    pruned, complete = (
        len(study.get_trials(states=(state,))) for state in (TrialState.PRUNED, TrialState.COMPLETE)
    )
    print(f"{title:14}{pruned:10}{complete:12}{seconds:10.2f}{best_trial(study).value:22.4f}")
