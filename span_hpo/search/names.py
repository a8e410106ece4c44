"""Name the samplers, pruners, schedulers and searches that users can choose.

No framework is imported here, so that the command line can list the names without delay.
"""

SAMPLERS = ("tpe", "random", "qmc", "cmaes", "gp", "gradient")  # samplers of Optuna
PRUNERS = ("none", "median", "percentile", "halving", "hyperband")  # pruners of Optuna
SCHEDULERS = ("asha", "hyperband", "median", "pbt")  # schedulers of Ray Tune
SEARCHES = ("optuna", "random", "grid")  # searches of Ray Tune
