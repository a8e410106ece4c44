import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC

from span_hpo import RBF, Linear, ScalingWarning, SpanSVC, UniformCost
from span_hpo.estimators.scaling_inside import (
    ScaledRows,
    as_scale_inside,
    defining_rows,
    exact_evaluation,
)
from tests.problems import two_moons

KERNELS = {"rbf": RBF(gamma=2.0), "linear": Linear()}
SVCS = {"rbf": {"kernel": "rbf", "gamma": 2.0}, "linear": {"kernel": "linear"}}
SVCS_OF_RANDOM = {"kernel": "rbf", "gamma": 1.3}
ugly = pytest.mark.parametrize("name", ["moons", "constants", "duplicates", "one row", "grid"])


def ugly_rows(name, n_classes=2):
    """Return features whose ranges depend on few or many rows, and labels."""
    rng = np.random.default_rng(5)
    count = 24 if n_classes == 2 else 30
    y = np.arange(count) % n_classes
    X = rng.normal(size=(count, 3)) + 0.8 * y[:, None]
    if name == "constants":
        X[:, 1] = 7.0
        X[:, 2] = 0.0
        X[4, 2] = 3.0  # the feature is constant without row 4
    elif name == "duplicates":
        X[count // 2 :] = X[: count - count // 2]
        y[count // 2 :] = y[: count - count // 2]
        X[0] = 9.0  # an only maximum among the duplicates
    elif name == "one row":
        X[3] = [100.0, -50.0, 20.0]
    elif name == "grid":
        X = np.round(X)  # ties of minima and maxima
    return X, y


def scaling_changes(X, scaler=MinMaxScaler):
    """Return the rows without which the fitted scaler has another offset or factor."""

    def fitted(rows):
        found = scaler().fit(rows)
        return [found.scale_, getattr(found, "min_", 0.0) + np.zeros(X.shape[1])]

    whole = fitted(X)
    others = [fitted(np.delete(X, row, axis=0)) for row in range(len(X))]
    return [row for row, one in enumerate(others) if not np.array_equal(one, whole)]


def by_brute_force(X, y, costs, rows, arguments, scaler=None):
    """Return the values of some rows: scale without each, fit SVC without it, and predict it."""
    values = []
    for row in rows:
        others = np.delete(np.arange(len(y)), row)
        fitted = (MinMaxScaler() if scaler is None else scaler).fit(X[others])
        svc = SVC(C=1.0, tol=1e-8, decision_function_shape="ovo", **arguments)
        svc.fit(fitted.transform(X[others]), y[others], sample_weight=costs[others])
        value = svc.decision_function(fitted.transform(X[[row]]))[0]
        values.append(value if value.ndim == 0 else -value)  # positive for the second class
    return np.array(values)


@ugly
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_by_brute_force(name, kernel, weighted):
    """Affected rows have the values of a loop that scales and fits without the row."""
    X, y = ugly_rows(name)
    weight = np.random.default_rng(1).uniform(0.3, 3.0, len(y)) if weighted else None
    settings = {"kernel": KERNELS[kernel], "weighting": UniformCost(1.5), "loo_method": "exact"}
    model = SpanSVC(**settings, scale_inside=True).fit(X, y, sample_weight=weight)
    assert model.scale_rows_.tolist() == scaling_changes(X)
    costs = 1.5 * (np.ones(len(y)) if weight is None else weight)
    # All rows, because the others must be right without a refit of their own.
    expected = by_brute_force(X, y, costs, range(len(y)), SVCS[kernel])
    np.testing.assert_allclose(model.loo_.decision_values, expected, atol=2e-3)
    wrong = model.loo_.y * model.loo_.decision_values <= 0
    clear = np.abs(expected) > 2e-3  # rows on a grid may have a value of 0, which rounding decides
    np.testing.assert_array_equal(wrong[clear], (np.where(y == 1, 1, -1) * expected <= 0)[clear])
    assert clear.sum() >= len(y) - 2
    assert model.loo_error_ == wrong.mean()
    assert model.loo_.certified[clear].all()
    unproven = np.mean(~model.loo_.certified)
    assert model.loo_bounds_ == pytest.approx((model.loo_error_ - unproven, model.loo_error_))


@ugly
@pytest.mark.parametrize("weighted", [False, True])
def test_several_classes_by_brute_force(name, weighted):
    """All pairs of classes are fitted without the row, also those without its class."""
    X, y = ugly_rows(name, n_classes=3)
    weight = np.random.default_rng(2).uniform(0.3, 3.0, len(y)) if weighted else None
    model = SpanSVC(RBF(gamma=2.0), UniformCost(1.5), loo_method="exact", scale_inside=True)
    model.fit(X, y, sample_weight=weight)
    costs = 1.5 * (np.ones(len(y)) if weight is None else weight)
    expected = by_brute_force(X, y, costs, range(len(y)), SVCS["rbf"])
    np.testing.assert_allclose(model.loo_.decision_values, expected, atol=2e-3)
    assert model.loo_bounds_ == pytest.approx((model.loo_error_,) * 2)


@pytest.mark.parametrize("scale", ["standard", RobustScaler()], ids=str)
def test_every_row_is_refitted_with_other_scalers(scale):
    """Any scaler is fitted without each row, and the warning counts the refits."""
    X, y = ugly_rows("one row")
    model = SpanSVC(RBF(gamma=2.0), UniformCost(1.5), scale=scale, scale_inside=True)
    with pytest.warns(ScalingWarning, match="refits") as caught:
        model.fit(X, y)
    scaler = StandardScaler() if scale == "standard" else RobustScaler()
    expected = by_brute_force(X, y, np.full(24, 1.5), range(24), SVCS["rbf"], scaler)
    np.testing.assert_allclose(model.loo_.decision_values, expected, atol=2e-3)
    assert model.scale_rows_.tolist() == list(range(24))
    fewer = len(scaling_changes(X))
    assert [str(one.message) for one in caught] == [
        "`scale_inside=True` makes 24 refits, one for every row, because every row takes part in "
        f"the scaling {scale}. With `scale='minmax'` it would make {fewer}."
    ]


def test_sparse_features_by_brute_force():
    """Sparse features that are scaled on request have rows that define their largest values."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.poisson(0.15, size=(40, 30)) * rng.choice([-1.0, 1.0, 2.0], size=(40, 30))
    X[:, 0] = y + rng.poisson(0.5, size=40)
    model = SpanSVC(Linear(), UniformCost(0.3), scale="minmax", loo_method="exact")
    with pytest.warns(ScalingWarning, match="alone define the largest absolute value of a feature"):
        model.fit(sparse.csr_array(X), y)
    inside = SpanSVC(**{**model.get_params(deep=False), "scale_inside": True})
    inside.fit(sparse.csr_array(X), y)
    costs = np.full(40, 0.3)
    expected = by_brute_force(X, y, costs, range(40), SVCS["linear"], MaxAbsScaler())
    np.testing.assert_allclose(inside.loo_.decision_values, expected, atol=2e-3)
    assert 0 < len(inside.scale_rows_) < 40


def texts(seed, count):
    """Return counts of words, of which most are rare and some rows repeat a word often."""
    rng, topics = np.random.default_rng(seed), np.random.default_rng(7).permutation(1000)
    y = np.arange(count) % 2
    shares = np.tile(1 / np.arange(3.0, 1003.0), (2, 1))
    for label in range(2):
        shares[label, topics[60 * label : 60 * label + 60]] *= 4
    shares /= shares.sum(axis=1, keepdims=True)
    words = np.array([rng.multinomial(5 + rng.poisson(40), shares[label]) for label in y])
    repeated = np.ceil(words * np.exp(rng.normal(size=words.shape)))
    return sparse.csr_array(repeated), y


def test_rare_words_hide_errors():
    """Scaled by all rows, sparse text looks better than it is; by default it is not scaled."""
    settings = {"kernel": Linear(), "weighting": UniformCost(0.1), "loo_method": "exact"}
    found = []
    for seed in range(3):
        X, y = texts(seed, 160)
        new, labels = texts(100 + seed, 1000)
        with pytest.warns(ScalingWarning, match=r"of 160 rows \(\d+ %\) alone define"):
            outside = SpanSVC(**settings, scale="minmax").fit(X, y)
        inside = SpanSVC(**settings, scale="minmax", scale_inside=True).fit(X, y)
        default = SpanSVC(**settings).fit(X, y)
        assert len(inside.scale_rows_) > 100
        assert len(default.scale_rows_) == 0
        models = (outside, inside, default)
        found.append([model.loo_error_ for model in models])
        found[-1] += [1 - model.score(new, labels) for model in models]
    too_low, right, plain, of_scaled, _, of_default = np.mean(found, axis=0)
    assert too_low < of_scaled - 0.02
    assert abs(right - of_scaled) < of_scaled - too_low
    assert abs(plain - of_default) < 0.03
    assert of_default < of_scaled - 0.03


@pytest.mark.parametrize("seed", range(25))
def test_random_problems_by_brute_force(seed):
    """Tiny and ugly problems have the values of a loop that scales and fits without each row."""
    rng = np.random.default_rng(seed)
    count, width = int(rng.integers(6, 16)), int(rng.integers(1, 5))
    y = rng.permutation(np.arange(count) % int(rng.integers(2, 4)))
    X = rng.normal(size=(count, width)) * 10.0 ** rng.integers(-3, 4, size=width)
    if seed % 2:
        X = np.round(X, -int(np.floor(np.log10(np.abs(X).max()))))  # ties and constant features
    again = rng.integers(0, count, size=(2, 2))
    X[again[0]], y[again[0]] = X[again[1]], y[again[1]]  # duplicates
    if min(np.bincount(y)[np.unique(y)]) < 2 or len(np.unique(y)) < 2:
        y = np.arange(count) % 2
    model = SpanSVC(RBF(gamma=1.3), UniformCost(0.9), scale_inside=True, loo_method="exact")
    model.fit(X, y)
    assert model.scale_rows_.tolist() == scaling_changes(X)
    expected = by_brute_force(X, y, np.full(count, 0.9), range(count), SVCS_OF_RANDOM)
    np.testing.assert_allclose(model.loo_.decision_values, expected, atol=2e-3)


@ugly
def test_defining_rows_are_those_whose_removal_changes_the_scaling(name):
    """Ties define nothing, and a unique extreme does, for arrays and for sparse rows."""
    X, _ = ugly_rows(name)
    X[np.abs(X) < 0.5] = 0.0
    assert defining_rows(MinMaxScaler().fit(X), X).tolist() == scaling_changes(X)
    by_size = scaling_changes(X, MaxAbsScaler)
    for rows in (X, sparse.csr_array(X)):
        assert defining_rows(MaxAbsScaler().fit(rows), rows).tolist() == by_size
    assert defining_rows(StandardScaler().fit(X), X).tolist() == list(range(len(X)))
    assert defining_rows(None, X).tolist() == []


def test_defining_rows_by_hand():
    """Row 0 has the only minimum and row 3 the only maximum of feature 0; feature 1 has ties."""
    X = np.array([[-1.0, 2.0, 5.0], [0.0, 2.0, 5.0], [0.0, 0.0, 5.0], [4.0, 0.0, 5.0]])
    assert defining_rows(MinMaxScaler().fit(X), X).tolist() == [0, 3]
    thin = sparse.csr_array(np.array([[0.0, 3.0, 0.0], [0.0, -3.0, 2.0], [0.0, 0.0, 0.0]]))
    assert defining_rows(MaxAbsScaler().fit(thin), thin).tolist() == [1]
    stored = sparse.csr_array((np.zeros(1), ([2], [0])), shape=(3, 3))
    assert defining_rows(MaxAbsScaler().fit(stored), stored).tolist() == []


@pytest.mark.parametrize("scale", [None, "minmax"])
def test_values_are_exact_whether_or_not_something_is_scaled(scale):
    """With `scale_inside`, bounds meet also where no row has to be refitted."""
    X, y = two_moons(80)
    model = SpanSVC(RBF(gamma=2.0), UniformCost(1.5), scale=scale, scale_inside=True).fit(X, y)
    assert model.loo_bounds_ == (model.loo_error_, model.loo_error_)


def test_rare_categories_define_nothing():
    """A single 1 among zeros is scaled alike without its row, which needs no refit."""
    X = np.eye(12)[:, :10]
    X[:, 9] = np.arange(12.0)
    assert defining_rows(MinMaxScaler().fit(X), X).tolist() == scaling_changes(X) == [0, 11]
    thin = sparse.csr_array(X[:, :9])
    assert defining_rows(MaxAbsScaler().fit(thin), thin).tolist() == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(np.vstack([X, X]), np.arange(24) % 2)


def test_a_share_above_a_tenth_is_reported_once():
    """The warning tells the share and the remedy; a tenth or less of the rows is no news."""
    X, y = two_moons(30)
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0))
    with pytest.warns(ScalingWarning) as caught:
        model.fit(X, y)
    assert [str(one.message) for one in caught] == [
        "4 of 30 rows (13 %) alone define the minimum or maximum of a feature. The scaling still "
        "depends on these rows when they are left out, so that the leave-one-out error may be too "
        "low. "
        "`scale_inside=True` refits them with a scaling of the other rows, and `scale=None` does "
        "not scale."
    ]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(*two_moons(40))
        SpanSVC(RBF(gamma=1.0), UniformCost(1.0), scale_inside=True).fit(X, y)
        for scale in (None, "standard", RobustScaler()):
            SpanSVC(RBF(gamma=1.0), UniformCost(1.0), scale=scale).fit(X, y)


def test_a_search_reports_the_share_once():
    """Trials do not repeat the warning."""
    with pytest.warns(ScalingWarning) as caught:
        SpanSVC(n_trials=3, random_state=0).fit(*two_moons(30))
    assert sum(issubclass(one.category, ScalingWarning) for one in caught) == 1


def test_what_refits_change():
    """The refits are in the result and in the calibration, but not in the loss of the search."""
    X, y = ugly_rows("moons")
    settings = {"kernel": RBF(gamma=2.0), "weighting": UniformCost(1.5), "loo_method": "exact"}
    outside = SpanSVC(**settings, scale=MinMaxScaler((-1, 1)))
    with pytest.warns(ScalingWarning, match="alone define the minimum or maximum"):
        outside.fit(X, y)
    inside = SpanSVC(**{**outside.get_params(deep=False), "scale_inside": True}).fit(X, y)
    assert inside.best_loss_ == outside.best_loss_
    np.testing.assert_array_equal(inside.decision_function(X), outside.decision_function(X))
    assert not np.array_equal(inside.predict_proba(X), outside.predict_proba(X))
    changed = inside.loo_.decision_values != outside.loo_.decision_values
    assert set(np.flatnonzero(changed)) == set(inside.scale_rows_)
    assert inside.loo_.exact[inside.scale_rows_].all()
    low, high = inside.loo_bounds_
    exact = exact_evaluation(inside, inside.scale_rows_)
    assert low <= exact.loo.error <= high
    nobody = exact_evaluation(outside, outside.scale_rows_[:0])
    assert nobody.loo.error == outside.objective_.evaluate({}, loo_method="exact").loo.error


def test_rows_without_weight_define_nothing():
    """Rows of weight 0 take no part in the scaling, and indices are those of all rows."""
    X, y = ugly_rows("one row")
    weight = np.ones(24)
    weight[[0, 3]] = 0
    model = SpanSVC(RBF(gamma=2.0), UniformCost(1.5), scale_inside=True)
    model.fit(X, y, sample_weight=weight)
    kept = np.flatnonzero(weight)
    assert model.scale_rows_.tolist() == kept[scaling_changes(X[kept])].tolist()
    small = SpanSVC(RBF(gamma=2.0), UniformCost(1.5), scale_inside=True).fit(X[kept], y[kept])
    np.testing.assert_allclose(model.loo_.decision_values, small.loo_.decision_values)


def test_the_last_row_of_a_class_is_an_error():
    """Without its only row a class cannot be predicted, whatever the scaling is."""
    X, y = ugly_rows("moons")
    y = np.where(np.arange(24) == 2, 1, 0)
    X[2] = 50.0
    model = SpanSVC(RBF(gamma=2.0), UniformCost(1.5), scale_inside=True).fit(X, y)
    assert 2 in model.scale_rows_
    assert model.loo_.decision_values[2] == -1.0


def test_nothing_to_scale_is_nothing_to_refit():
    """Without a scaler, `scale_inside` changes nothing."""
    X, y = two_moons(30)
    for scale in (None, "none"):
        model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0), scale=scale, scale_inside=True).fit(X, y)
        assert model.loo_.n_refit == 0
    kernel = SpanSVC("precomputed", UniformCost(1.0), scale_inside=True).fit(X @ X.T, y)
    assert len(kernel.scale_rows_) == 0


def test_iris_by_brute_force():
    """On real data with a search, the result is that of the chosen hyperparameters."""
    X, y = load_iris(return_X_y=True)
    model = SpanSVC("rbf", UniformCost(), n_trials=4, random_state=0, scale_inside=True).fit(X, y)
    rows, best = model.scale_rows_, model.best_params_
    assert rows.tolist() == scaling_changes(X)
    svc = {"kernel": "rbf", "gamma": best["gamma"]}
    expected = by_brute_force(X, y, np.full(150, best["C"]), rows, svc)
    np.testing.assert_allclose(model.loo_.decision_values[rows], expected, atol=5e-3)


def test_estimates_of_the_search_are_replaced_by_exact_values():
    """With the span-rule in the search, the final error is that of the method "exact"."""
    X, y = ugly_rows("moons")
    span, exact = (
        SpanSVC(RBF(gamma=2.0), UniformCost(1.5), loo_method=method, scale_inside=True).fit(X, y)
        for method in ("span", "exact")
    )
    np.testing.assert_array_equal(span.loo_.decision_values, exact.loo_.decision_values)
    assert (span.loo_error_,) * 2 == pytest.approx(span.loo_bounds_)
    expected = by_brute_force(X, y, np.full(24, 1.5), range(24), SVCS["rbf"])
    assert span.loo_error_ == np.mean(np.where(y == 1, 1, -1) * expected <= 0)


@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_scale_inside_is_true_or_false(wrong):
    """Anything else is refused by name."""
    with pytest.raises(TypeError, match="`scale_inside` must be True or False, got") as caught:
        SpanSVC(scale_inside=wrong).fit(*two_moons(30))
    assert str(caught.value).endswith(f"got {wrong!r}.")
    assert as_scale_inside(np.True_) is True


def test_features_without_a_row():
    """The scaler is fitted to the other rows, and scales the row as a new one."""
    X = np.array([[0.0], [1.0], [2.0], [10.0]])
    rows = ScaledRows.of("auto", X, np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(rows.features[:, 0], [0, 0.1, 0.2, 1])
    np.testing.assert_allclose(rows.features_without(3)[:, 0], [0, 0.5, 1, 5])
    assert rows.share == 0.5
    assert rows.name == "minmax"
