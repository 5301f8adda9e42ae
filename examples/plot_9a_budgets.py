"""
Keep a budget
=============

Costs decide which questions are worth paying for. A budget limits what may be paid, whatever it is worth:
for each patient, or in the mean over patients.
"""

import matplotlib.pyplot as plt
from adacos import (
    AdaCOSClassifier,
    Costs,
    TradeOffDisplay,
    load_pima,
    paper_folds,
)
from adacos.metrics import total_cost

X, y, prices, panels, *_ = load_pima(zeros="missing")
costs = Costs(prices, false_positive=100, false_negative=1000, panels=panels)
new = paper_folds("pima") == 0

# %%
# A limit for each patient, and a mean
# ------------------------------------
# Without a budget some patients have the glucose test, for 17.61. A limit of 10 rules it out for everyone. A
# mean of 2 leaves it to the patients for whom it is worth most.

policies = {
    "no budget": AdaCOSClassifier(costs),
    "at most 10 for each": AdaCOSClassifier(costs, budget=10),
    "at most 2 in the mean": AdaCOSClassifier(costs, mean_budget=2),
}
for name, policy in policies.items():
    result = policy.fit(X[~new], y[~new]).acquire(X[new])
    asked = result.acquired[:, X.columns.get_loc("Glucose")].mean()
    print(
        f"{name}: {result.cost.mean():.2f} paid in the mean, "
        f"{result.cost.max():.2f} at most, glucose for {asked:.0%}, "
        f"total cost {total_cost(result, y[new], costs):.1f}"
    )

# %%
# How the mean is kept: covariate costs count this many times more when they are weighed. What is paid stays
# the same.

print(1 + policies["at most 2 in the mean"].multiplier_)

# %%
# What more spending saves
# ------------------------
# One fit serves every mean budget. Each point is a budget: what patients pay on average, and what errors
# then cost.

TradeOffDisplay.from_estimator(
    policies["no budget"], X[new], y[new], points=12
)
plt.show()
