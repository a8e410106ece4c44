"""Search with Ray Tune, as in ``tuner(objective, num_samples=64).fit()``."""

try:
    import ray.tune as _  # noqa: F401  imported first, to explain how to install it
except ImportError as error:
    raise ImportError(
        "span_hpo.integrations.ray needs Ray Tune: pip install 'span-hpo[ray]'."
    ) from error

from span_hpo.integrations.ray.searchers import StudySearch
from span_hpo.integrations.ray.selection import (
    best_model,
    best_result,
    finished_results,
    honest_estimate,
    params_of,
)
from span_hpo.integrations.ray.spaces import search_space
from span_hpo.integrations.ray.stopping import SettledStopper
from span_hpo.integrations.ray.trainable import SpanTrainable
from span_hpo.integrations.ray.tuners import cluster, has_run, restored_tuner, tuner

__all__ = [
    "SettledStopper",
    "SpanTrainable",
    "StudySearch",
    "best_model",
    "best_result",
    "cluster",
    "finished_results",
    "has_run",
    "honest_estimate",
    "params_of",
    "restored_tuner",
    "search_space",
    "tuner",
]
