"""Parts of a model that do not fit together."""

from dataclasses import replace

import numpy as np
import pytest

from span_hpo import Linear, Predictor, Scaling
from span_hpo.io.parts import check_parts
from tests.io.models import fitted


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"labels": np.array([0, 1, 2])}, "n_support"),
        ({"offsets": np.zeros(2)}, "offsets"),
        ({"kernel_parameters": {"gamma": 1.0}}, "kernel_parameters"),
        ({"scaling": Scaling(np.zeros(3), np.ones(3))}, "scaling"),
        ({"sigmoids": ()}, "sigmoids"),
        ({"offsets": np.array([np.nan])}, "all numbers must be finite"),
    ],
)
def test_what_does_not_fit_is_named(change, name):
    """A whole model passes, and each change of a part is found."""
    predictor = Predictor.from_svc(fitted(Linear(), "two", 60)[2])
    check_parts(predictor)
    with pytest.raises(ValueError, match=name):
        check_parts(replace(predictor, **change))
