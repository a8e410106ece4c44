import pytest

from span_hpo.integrations.optuna.studies import PRUNER_OF_NAME, SAMPLER_OF_NAME, new_study
from span_hpo.search import PRUNERS, SAMPLERS


def test_every_name_has_its_sampler_and_pruner():
    """The adapter makes exactly the samplers and pruners that have names."""
    assert tuple(SAMPLER_OF_NAME) == SAMPLERS
    assert tuple(PRUNER_OF_NAME) == PRUNERS


@pytest.mark.parametrize(("argument", "names"), [("sampler", SAMPLERS), ("pruner", PRUNERS)])
def test_unknown_names_are_refused(argument, names):
    """The message lists the names that there are."""
    with pytest.raises(ValueError, match=f"`{argument}` must be one of Optuna's or of") as raised:
        new_study(**{argument: "nothing"})
    assert str(list(names)) in str(raised.value)
