"""Compare the classical error bounds of an SVM with its exact error as the cost grows."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

from span_hpo import RBF, SpanObjective, UniformCost, bounds, leave_one_out

X, y = load_breast_cancer(return_X_y=True)
X = minmax_scale(X)
kernel = RBF(gamma=1.0)
objective = SpanObjective(X, y, kernel=kernel, weighting=UniformCost())
diameter = bounds.enclosing_ball(kernel(X)).diameter
print(f"All rows lie in a ball of diameter {diameter:.3f}.")

print("     C   exact  span-rule  xi-alpha  span bound  support vectors  Opper-Winther")
for C in 10.0 ** np.arange(-2, 4):
    solution = objective.solution({"C": C})
    print(
        f"{C:6g}  {leave_one_out(solution, 'exact').error:.4f}     "
        f"{leave_one_out(solution).error:.4f}    {bounds.xi_alpha(solution):.4f}    "
        f"{bounds.span_bound(solution, diameter=diameter):8.4f}           "
        f"{bounds.support_vectors(solution):.4f}         {bounds.opper_winther(solution):.4f}"
    )
