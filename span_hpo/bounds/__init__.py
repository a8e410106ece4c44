"""Classical bounds and estimates of the leave-one-out error from one fit."""

from span_hpo.bounds.classical import (
    EnclosingBall,
    enclosing_ball,
    jaakkola_haussler,
    opper_winther,
    span_bound,
    support_vectors,
    xi_alpha,
)

__all__ = [
    "EnclosingBall",
    "enclosing_ball",
    "jaakkola_haussler",
    "opper_winther",
    "span_bound",
    "support_vectors",
    "xi_alpha",
]
