from html.parser import HTMLParser

import numpy as np

from span_hpo import SpanObjective
from tests.problems import two_moons


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.texts, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_evaluation_prints_loss_and_parameters():
    """As text and as HTML, with names escaped."""
    X, y = two_moons(40)
    objective = SpanObjective(X, np.where(y > 0, "<b>", "a"), metric=("error", "hinge"))
    evaluation = objective.evaluate({"gamma": 1.0, "C_a": 2.0, "C__b_": 0.123456789})
    text = repr(evaluation)
    for piece in ("error", "hinge", "gamma", "0.123457", "40 rows", "support vectors"):
        assert piece in text
    page = Cells()
    page.feed(evaluation._repr_html_())
    assert not page.open
    assert "0.123457" in page.texts
    assert "hinge" in page.texts
