"""FLAML: an SVM that competes with its learners, judged by leave-one-out."""

try:
    from flaml.automl.model import SKLearnEstimator as _  # noqa: F401  the extra is there
except ImportError as error:
    raise ImportError(
        "span_hpo.integrations.flaml needs FLAML: pip install 'span-hpo[flaml]'."
    ) from error

from span_hpo.integrations.flaml.learners import LooMetric, SpanLearner

__all__ = ["LooMetric", "SpanLearner"]
