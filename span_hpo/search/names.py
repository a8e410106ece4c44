"""The names by which samplers, pruners, schedulers and searches are chosen, in every adapter.

Nothing of a framework is imported here, so that the command line can offer the names at once.
"""

SAMPLERS = ("tpe", "random", "qmc", "cmaes", "gp")  # of Optuna
PRUNERS = ("none", "median", "percentile", "halving", "hyperband")  # of Optuna
SCHEDULERS = ("asha", "hyperband", "median", "pbt")  # of Ray Tune
SEARCHES = ("optuna", "random", "grid")  # of Ray Tune
