"""Let an SVM compete with the learners of FLAML, judged by its leave-one-out loss."""

try:
    from flaml.automl.model import SKLearnEstimator as _  # noqa: F401  to explain how to install it
except ImportError as error:
    raise ImportError(
        "span_hpo.integrations.flaml needs FLAML: pip install 'span-hpo[flaml]'."
    ) from error

from span_hpo.integrations.flaml.learners import LooMetric, SpanLearner

__all__ = ["LooMetric", "SpanLearner"]
