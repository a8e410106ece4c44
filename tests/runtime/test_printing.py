from span_hpo import RBF, SpanObjective
from span_hpo.runtime.printing import counted
from tests.problems import two_moons


def test_html_escapes_names():
    """A name cannot become markup."""
    X, y = two_moons(20)
    fixed = SpanObjective(X, y, kernel=RBF(gamma=1.0), metric=lambda y, f: 0.5)
    html = fixed.evaluate({"C_-1": 1.0, "C_1": 1.0})._repr_html_()
    assert "&lt;lambda&gt;" in html
    assert "<lambda>" not in html


def test_counted():
    """One is singular, and thousands are separated."""
    assert (counted(1, "row"), counted(0, "row"), counted(1234, "row")) == (
        "1 row",
        "0 rows",
        "1,234 rows",
    )
