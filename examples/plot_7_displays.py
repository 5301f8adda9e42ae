"""
Figures for a notebook
======================

The figures of ``adacos report`` are also displays, as in scikit-learn. Each is made by
``from_estimator``, draws into axes of yours if you like, and keeps the numbers that it shows.
"""

import matplotlib.pyplot as plt
from adacos import (
    AcquisitionDisplay,
    AdaCOSClassifier,
    BranchingClassifier,
    CostCurveDisplay,
    Costs,
    TradeOffDisplay,
    TreeDisplay,
    load_pima,
    paper_folds,
)
from adacos.datasets import make_value_dependent_problem

X, y, prices, *_ = load_pima(zeros="missing")
new = paper_folds("pima") == 0
costs = Costs(prices, false_positive=100, false_negative=1000)
policy = AdaCOSClassifier(costs).fit(X[~new], y[~new])

# %%
# Who is asked what
# -----------------
# Each bar shows the rows that are still being asked. Colours show who stops there with which answer.

AcquisitionDisplay.from_estimator(policy, X[new])
plt.show()

# %%
# What each stop would cost
# -------------------------
# The curves are the mean cost if every row stopped after the covariate named. The dashed line is the
# policy, which stops row by row.

CostCurveDisplay.from_estimator(policy, X[new], y[new])
plt.show()

# %%
# What more spending saves
# ------------------------
# Two displays in one figure. Bars are standard errors: on 154 rows the curve is rough.

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
display = TradeOffDisplay.from_estimator(
    policy, X[new], y[new], points=12, ax=axes[0]
)
CostCurveDisplay.from_estimator(policy, X[new], y[new], ax=axes[1])
plt.show()

# %%
# The numbers are kept.

print(display.curve)

# %%
# A tree
# ------
# Where the order depends on the values, the tree of questions is drawn. The diabetes table has one order
# for everyone; in this made-up problem the first value says which of the others is worth its cost.

problem = make_value_dependent_problem()
rows, classes = problem.sample(500, seed=0)
branching = BranchingClassifier(
    Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
).fit(rows, classes)
TreeDisplay.from_estimator(branching)
plt.show()

# %%
# Results, steps, certificates and trees are shown by notebooks as HTML.

policy.acquire(X[new])
