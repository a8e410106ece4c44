"""Objectives that candidates share."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler, TargetEncoder
from sklearn.svm import SVC

from span_hpo import FunctionKernel, Laplacian, LooSVC, SpanObjective, SpanSearchCV, UniformCost
from span_hpo.estimators.search_rows import TrainingRows
from span_hpo.estimators.shared_objectives import SharedObjectives
from span_hpo.estimators.svc_arguments import SVCArguments
from tests.problems import two_moons


def shared_for(estimator, X, y, weight=None, **settings):
    rows = TrainingRows(X, y, weight, weight is not None, {})
    given = {"metrics": ("error",), "loo_method": "span", "memory_limit": None}
    return SharedObjectives(estimator, rows, **(given | settings))


def evaluated(shared, candidate):
    placed = shared.placed(candidate)
    return placed.objective.evaluate(placed.point)


CANDIDATES = [
    {"svc__C": 3.0, "svc__gamma": 0.7},
    {"svc__C": 0.5, "svc__gamma": "scale", "svc__class_weight": {-1.0: 2.0}},
    {"svc__gamma": "auto", "svc__class_weight": "balanced"},
    {"svc__kernel": "linear", "svc__C": 2.0},
    {"svc__kernel": "poly", "svc__degree": 2, "svc__coef0": 1.0, "svc__gamma": 0.3},
    {"svc__kernel": laplacian_kernel},
    {"svc__kernel": Laplacian(gamma=0.4), "svc__C": 4.0},
    {"standardscaler": "passthrough", "svc__gamma": 2.0},
    {"standardscaler": MinMaxScaler(), "svc__gamma": 2.0},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("candidate", CANDIDATES)
def test_points_are_candidates(candidate, weighted):
    """A point has the leave-one-out values of an objective for this candidate alone."""
    X, y = two_moons(60)
    X = X * [1.0, 20.0]
    weight = np.linspace(0.1, 3, 60) if weighted else None
    pipeline = make_pipeline(StandardScaler(), SVC())
    found = evaluated(shared_for(pipeline, X, y, weight), candidate)
    configured = pipeline.set_params(**candidate)
    features = configured[:-1].fit_transform(X)
    arguments = SVCArguments.of(configured[-1].get_params())
    costs = arguments.class_costs(y)
    model = SpanObjective(
        features,
        y,
        kernel=arguments.kernel_of(features),
        weighting=PerRow(
            np.array([costs[label] for label in y]) * (1 if weight is None else weight)
        ),
        metric_weight=weight,
    )
    expected = model.evaluate({})
    np.testing.assert_allclose(
        found.loo.decision_values, expected.loo.decision_values, rtol=1e-9, atol=1e-9
    )
    assert found.loss == pytest.approx(expected.loss)


class PerRow:
    """A weighting of given costs."""

    space: dict = {}  # noqa: RUF012  nothing is searched

    def __init__(self, costs):
        self.given = costs

    def costs(self, data, params):
        return self.given


def test_widths_and_costs_share_an_objective():
    """Candidates that differ in widths, costs and class weights have one distance matrix."""
    X, y = two_moons(40)
    shared = shared_for(SVC(), X, y)
    points = [{"C": 1.0}, {"C": 2.0, "gamma": 3.0}, {"class_weight": "balanced"}]
    assert len({id(shared.placed(point).objective) for point in points}) == 1
    assert shared.placed({"kernel": "linear"}).objective is not shared.placed({}).objective
    same = [shared.placed({"C": C, "gamma": 1.0}).batch for C in (1.0, 2.0)]
    assert same[0] == same[1] != shared.placed({"gamma": 2.0}).batch


class Product:
    """A kernel that is an object."""

    def __init__(self, shift):
        self.shift = shift

    def __call__(self, X, Z):
        return X @ Z.T + self.shift


def test_kernels_of_ones_own_are_shared_by_their_clones():
    """A function, or an object with the same state, is the same kernel in every candidate."""
    X, y = two_moons(40)
    shared = shared_for(SVC(), X, y)
    kernels = [laplacian_kernel, Product(1.0), FunctionKernel(lambda X, Z: X @ Z.T), Product(2.0)]
    found = [[shared.placed({"kernel": one, "C": C}).objective for C in (1, 2)] for one in kernels]
    assert all(first is second for first, second in found)
    assert len({id(first) for first, _ in found}) == len(kernels)


@pytest.mark.parametrize("limit", ["1", -1.0, np.nan])
def test_the_memory_limit_is_a_number(limit):
    """The message names the argument and what was received."""
    with pytest.raises(ValueError, match=f"`memory_limit` must be .*, got {limit!r}"):
        SpanSearchCV(SVC(), {"C": [1.0]}, search="grid", memory_limit=limit).fit(*two_moons(20))


class Counting(TransformerMixin, BaseEstimator):
    """A transformer that counts its fits of all rows."""

    fits = 0

    def __init__(self, power=1):
        self.power = power

    def fit(self, X, y=None):
        type(self).fits += 1
        return self

    def transform(self, X):
        return X**self.power


@pytest.mark.parametrize("estimator", [SVC, LooSVC])
@pytest.mark.parametrize("loo_method", ["span", "exact"])
def test_a_kernel_matrix_has_the_figures_of_its_features(estimator, loo_method):
    """Rows of weight 0 count nowhere, whether features or their kernel matrix are given."""
    X, y = two_moons(60, noise=0.4)
    weight = np.random.default_rng(0).uniform(0.5, 3, 60)
    weight[::3] = 0
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    settings = {"search": "grid", "loo_method": loo_method, "scoring": ["error", "hinge"]}
    grid = {"C": [0.1, 1.0, 10.0]}
    by_rows, by_matrix = (
        SpanSearchCV(estimator(**given), grid, refit="error", **settings).fit(
            rows, y, sample_weight=weight
        )
        for given, rows in (({"gamma": 1.0}, X), ({"kernel": "precomputed"}, K))
    )
    for name in ("loo_error", "smooth_error", "n_support", "mean_test_hinge", "std_test_error"):
        np.testing.assert_allclose(
            by_matrix.cv_results_[name], by_rows.cv_results_[name], rtol=1e-6
        )
    assert by_matrix.honest_error_ == pytest.approx(by_rows.honest_error_)
    np.testing.assert_array_equal(by_matrix.predict(K[:7]), by_rows.predict(X[:7]))


def test_features_are_made_once_for_each_setting():
    """Transformers are fitted again only where their own parameters differ."""
    X, y = two_moons(40)
    shared = shared_for(make_pipeline(Counting(), SVC()), X, y)
    shared.placed({"counting__power": 1})
    once = Counting.fits
    for C in (1.0, 2.0, 3.0):
        shared.placed({"counting__power": 1, "svc__C": C})
    assert Counting.fits == once
    shared.placed({"counting__power": 3})
    assert Counting.fits == 2 * once


def test_little_memory_keeps_one_objective():
    """Objectives beyond the memory limit are dropped, and made again when they are needed."""
    X, y = two_moons(60)
    pipeline = make_pipeline(Counting(), SVC())
    limit = 8e-6 * 60**2 * 3
    little = shared_for(pipeline, X, y, memory_limit=limit)
    candidates = [{"counting__power": power} for power in (1, 3, 1)]
    losses = [evaluated(little, candidate).loss for candidate in candidates]
    much = shared_for(pipeline, X, y)
    assert losses == [evaluated(much, candidate).loss for candidate in candidates]
    first = little.placed(candidates[0]).objective
    little.placed(candidates[1])
    assert little.placed(candidates[0]).objective is not first


@pytest.mark.parametrize(
    "transformer",
    [SelectKBest(k=5), LinearDiscriminantAnalysis(), TargetEncoder(random_state=0)],
)
def test_transformers_that_look_at_labels_are_refused(transformer):
    """The message names the step, its class, and what to use instead."""
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    X = rng.normal(size=(60, 300))
    if isinstance(transformer, TargetEncoder):
        X = rng.integers(0, 20, size=(60, 3))
    shared = shared_for(make_pipeline(transformer, SVC()), X, y)
    name = type(transformer).__name__
    message = rf"the step '{name.lower()}' \({name}\) does.*Use GridSearchCV with folds"
    with pytest.raises(ValueError, match=message):
        shared.placed({})


@pytest.mark.parametrize("transformer", [PCA(2), Nystroem(n_components=10, random_state=0)])
def test_transformers_of_features_are_allowed(transformer):
    """Projections and kernel approximations do not look at labels."""
    X, y = two_moons(60)
    assert evaluated(shared_for(make_pipeline(transformer, SVC()), X, y), {}).n_rows == 60


def test_transformers_must_keep_the_rows():
    """A transformer that drops rows would mix up their labels."""

    class Halving(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X[::2]

    X, y = two_moons(40)
    with pytest.raises(ValueError, match="keep all rows, got 20 rows from 40"):
        shared_for(make_pipeline(Halving(), SVC()), X, y).placed({})


def test_rows_without_weight_are_not_there():
    """Rows of weight 0 take no part, but they count in `gamma` and in balanced class weights."""
    X, y = two_moons(60)
    weight = np.ones(60)
    weight[::3] = 0
    candidate = {"class_weight": "balanced", "gamma": "scale"}
    found = evaluated(shared_for(SVC(), X, y, weight), candidate)
    assert found.n_rows == 40
    gamma, costs = 1 / (2 * X.var()), SVCArguments.of(candidate).class_costs(y)
    kept = weight > 0
    alone = SpanObjective(
        X[kept],
        y[kept],
        kernel=SVCArguments.of({"gamma": gamma}).kernel_of(X),
        weighting=(PerRow(np.array([costs[label] for label in y[kept]]))),
    ).evaluate({})
    np.testing.assert_allclose(found.loo.decision_values, alone.loo.decision_values, atol=1e-9)


def test_sparse_rows_and_kernel_matrices():
    """Sparse features stay sparse, and a kernel matrix is taken as it is."""
    X, y = two_moons(60)
    dense = evaluated(shared_for(SVC(gamma=1.0), X, y), {})
    sparse = evaluated(shared_for(SVC(gamma=1.0), csr_array(X), y), {})
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    weight = np.ones(60)
    kernel = evaluated(shared_for(SVC(kernel="precomputed"), K, y, weight), {})
    for other in (sparse, kernel):
        np.testing.assert_allclose(other.loo.decision_values, dense.loo.decision_values, atol=1e-6)
    weight[0] = 0
    assert evaluated(shared_for(SVC(kernel="precomputed"), K, y, weight), {}).n_rows == 59
    with pytest.raises(ValueError, match="square"):
        shared_for(SVC(kernel="precomputed"), K[:, :59], y, weight).placed({})


def test_the_first_objective_chooses_the_method():
    """With "auto" few rows are left out exactly, and all objectives have the same method."""
    X, y = two_moons(40)
    shared = shared_for(SVC(), X, y, loo_method="auto")
    objectives = [shared.placed({"kernel": kernel}).objective for kernel in ("rbf", "linear")]
    assert shared.loo_method == "exact"
    assert {objective.loo_method for objective in objectives} == {"exact"}


def test_weights_of_equal_size_change_nothing_but_costs():
    """A weight of 2 for all rows is a cost of 2 C."""
    X, y = two_moons(50)
    double = evaluated(shared_for(SVC(), X, y, np.full(50, 2.0)), {"C": 1.5, "gamma": 1.0})
    plain = SpanObjective(
        X, y, kernel=SVCArguments.of({"gamma": 1.0}).kernel_of(X), weighting=UniformCost(3.0)
    ).evaluate({})
    np.testing.assert_allclose(double.loo.decision_values, plain.loo.decision_values, atol=1e-9)
