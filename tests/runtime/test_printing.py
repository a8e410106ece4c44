from html.parser import HTMLParser

from span_hpo import RBF, SpanObjective
from span_hpo.runtime.printing import Printable, counted
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


class Result(Printable):
    """A result of two lines."""

    def _summary(self):
        return "What <came> out", {"a": "1 & 2", "longer name": "<b>"}


def test_text_is_a_title_and_aligned_lines():
    """Names are padded to the longest, so that all values begin in one column."""
    assert repr(Result()).splitlines() == [
        "What <came> out",
        "  a            1 & 2",
        "  longer name  <b>",
    ]
    assert str(Result()) == repr(Result())


def test_html_is_a_table_of_the_same_lines():
    """A parser finds the title, and every name and value, none of which has become markup."""

    class Texts(HTMLParser):
        found = []  # noqa: RUF012  of one page

        def handle_data(self, data):
            self.found.append(data)

    page = Texts()
    page.feed(Result()._repr_html_())
    assert page.found == ["What <came> out", "a", "1 & 2", "longer name", "<b>"]
