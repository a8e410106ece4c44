import json

import numpy as np
import pytest
from scipy import sparse

from span_hpo import Linear, Predictor
from span_hpo.io.model_json import plain_number, read_vectors, written_vectors
from tests.io.models import fitted


def test_parameters_that_json_does_not_know(tmp_path):
    """What cannot be written is named, and leaves no file."""
    _, _, model = fitted(Linear(), "two", 60)
    predictor = Predictor.from_svc(model, parameters={"kernel": object()})
    with pytest.raises(TypeError, match="must be numbers or text, got object"):
        predictor.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def numbers(rng):
    """Return numbers of every size, with zeros among them."""
    return (
        rng.normal(size=(7, 5))
        * 10.0 ** rng.integers(-300, 300, (7, 5))
        * (rng.random((7, 5)) < 0.5)
    )


@pytest.mark.parametrize("seed", range(10))
def test_vectors_survive_a_file(seed):
    """Dense and sparse support vectors come back from JSON in their form, to the last bit."""
    vectors = numbers(np.random.default_rng(seed))
    dense = read_vectors(json.loads(json.dumps(written_vectors(vectors))))
    assert isinstance(dense, np.ndarray)
    np.testing.assert_array_equal(dense, vectors)
    written = json.loads(json.dumps(written_vectors(sparse.csr_array(vectors))))
    assert len(written["values"]) == np.count_nonzero(vectors)
    found = read_vectors(written)
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), vectors)


@pytest.mark.parametrize(
    "damage",
    [
        {"features": [0, 9]},
        {"features": [0, -1]},
        {"starts": [0, 1]},
        {"starts": [0, 5, 2]},
        {"values": [1.0]},
        {"values": ["a", "b"]},
        {"shape": [2]},
        {"shape": [1, 3]},
    ],
)
def test_damaged_sparse_vectors_are_refused(damage):
    """Parts that do not fit together raise instead of giving other vectors."""
    whole = {"shape": [2, 3], "starts": [0, 1, 2], "features": [0, 2], "values": [1.0, 2.0]}
    np.testing.assert_array_equal(read_vectors(whole).toarray(), [[1, 0, 0], [0, 0, 2]])
    with pytest.raises(ValueError):  # noqa: PT011  what SciPy and NumPy say
        read_vectors({**whole, **damage})


def test_numbers_of_numpy_become_plain():
    """JSON is given plain numbers, booleans and texts for those of NumPy, and nothing else."""
    for value, plain in ((np.float32(0.5), 0.5), (np.int8(3), 3), (np.bool_(True), True)):
        found = plain_number(value)
        assert (found, type(found)) == (plain, type(plain))
    assert json.loads(json.dumps({"C": np.int64(2)}, default=plain_number)) == {"C": 2}
    with pytest.raises(TypeError, match="must be numbers or text, got ndarray"):
        plain_number(np.ones(2))
