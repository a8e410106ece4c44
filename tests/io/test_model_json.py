import pytest

from span_hpo import Linear, Predictor
from tests.io.models import fitted


def test_parameters_that_json_does_not_know(tmp_path):
    """What cannot be written is named, and leaves no file."""
    _, _, model = fitted(Linear(), "two", 60)
    predictor = Predictor.from_svc(model, parameters={"kernel": object()})
    with pytest.raises(TypeError, match="must be numbers and text, got object"):
        predictor.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())
