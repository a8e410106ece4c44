import pytest

from tests.integrations.ray.parts import BUDGETS, moons

pytest.importorskip("ray")
from ray import tune

from span_hpo.integrations.ray import SpanTrainable

# Ray leaves sockets and files to the garbage collector, and uses what its own libraries deprecate.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_checkpoint_round_trip(cluster, tmp_path):
    """A trial goes on elsewhere after its last report; another configuration begins anew."""
    objective = moons()
    kind = tune.with_parameters(SpanTrainable, objective=objective, budgets=BUDGETS)
    config = objective.defaults()[0]
    first, second = kind(config), kind(config)
    reports = [first.train() for _ in range(2)]
    first.save(str(tmp_path))
    second.restore(str(tmp_path))
    last = second.train()
    assert [report["n_rows"] for report in (*reports, last)] == list(BUDGETS)
    assert [report["done"] for report in (*reports, last)] == [False, False, True]
    assert last["loss"] == objective(config)
    assert second.reports[0]["loss"] == reports[0]["loss"]
    other = {**config, "gamma": 2.0}
    assert second.reset(other)
    assert second.train()["loss"] == objective.evaluate(other, 40).loss
    third = tune.with_parameters(SpanTrainable, objective=objective, budgets=(60, 120))(config)
    with pytest.raises(ValueError, match=r"`budgets` must be those of the checkpoint, \[40, 80"):
        third.restore(str(tmp_path))
    for trainable in (first, second, third):
        trainable.stop()


def test_reports_are_evaluations(cluster):
    """Each step evaluates one budget, the last one is done, and the actor can be used again."""
    objective = moons(metric=("smooth_error", "hinge"))
    config = objective.defaults()[0]
    kind = tune.with_parameters(SpanTrainable, objective=objective, budgets=BUDGETS)
    trainable = kind(config)
    for rows in BUDGETS:
        report = trainable.step()
        evaluation = objective.evaluate(config, rows)
        assert report["loss"] == evaluation.loss
        assert report["losses"] == evaluation.losses
        assert report["n_support"] == evaluation.n_support
        assert report["n_rows"] == rows
        assert report["done"] == (rows == 120)
    assert trainable.reset_config({**config, "gamma": 2.0})
    assert trainable.step()["loss"] == objective.evaluate({**config, "gamma": 2.0}, 40).loss
    trainable.stop()
