"""Find the least value of a function of thirty rates, whose gradient is known."""

import math

import optuna
import optunahub

# A copy on this machine is loaded by
# optunahub.load_local_module("samplers/gradient_steps", registry_root="package").
module = optunahub.load_module("samplers/gradient_steps")


def objective(trial: optuna.Trial) -> float:
    """Return the sum of the squared logarithms of all rates."""
    is_step = module.wants_gradient(trial)
    rates = {f"rate_{k}": trial.suggest_float(f"rate_{k}", 1e-3, 1e3, log=True) for k in range(30)}
    if is_step:
        gradient = {name: 2 * math.log(rate) / rate for name, rate in rates.items()}
        module.store_gradient(trial, gradient)
    return sum(math.log(rate) ** 2 for rate in rates.values())


study = optuna.create_study(sampler=module.GradientSampler(seed=0))
study.optimize(objective, n_trials=60)
print(f"best value {study.best_value:.3g} in trial {study.best_trial.number}")
