"""
A first policy
==============

A table, a price list and what a wrong answer costs: that is all a policy needs. It then decides for
each row which covariate to acquire next, and when to stop.
"""

# %%
# The data
# --------
# Pima diabetes: 768 women, eight covariates. Most cost 1 (a question or a tape measure), the two blood
# tests 17.61 and 22.78. Zeros that stand for values that were not recorded are missing. A fifth of the
# rows is held out.

import matplotlib.pyplot as plt
import numpy as np
from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    load_pima,
    paper_folds,
)
from adacos.metrics import recall, total_cost, total_costs

X, y, prices, *_ = load_pima(zeros="missing")
new = paper_folds("pima") == 0
prices

# %%
# The costs
# ---------
# A false alarm costs 100, a missed diabetic 1,000.

costs = Costs(prices, false_positive=100, false_negative=1000)
clf = AdaCOSClassifier(costs).fit(X[~new], y[~new])

# %%
# What it does
# ------------
# :meth:`~adacos.AdaCOSClassifier.acquire` walks every row to its decision and says what was acquired,
# in which order, and what it cost.

result = clf.acquire(X[new])
for row in (0, 4, 18, 72):
    asked = ", ".join(result.covariates(row)) or "nothing"
    print(
        f"patient {row}: {asked} for {result.cost[row]:.2f} -> {result.label[row]}"
    )

# %%
# Most patients need few covariates; unclear cases get more.

share = result.acquired.mean(axis=0)
order = np.argsort(share)
figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
axes.barh(np.array(result.names)[order], 100 * share[order], color="#0072B2")
axes.set_xlabel("patients for whom it is acquired, in %")
axes.set_xlim(0, 100)
plt.show()

# %%
# Is it worth it?
# ---------------
# COS asks everyone for the same covariates, the full model asks for all of them. Both are made from
# the model that is fitted already.

policies = {
    "AdaCOS": clf,
    "COS": COSClassifier(costs).from_model(clf),
    "Full Model": FullModelClassifier(costs).from_model(clf),
}
print(f"{'':12}{'total cost':>12}{'covariates':>12}{'recall':>9}")
for name, policy in policies.items():
    out = policy.acquire(X[new])
    paid, found = out.cost.mean(), recall(out, y[new])
    print(
        f"{name:12}{total_cost(out, y[new], costs):12.2f}{paid:12.2f}{found:9.3f}"
    )

# %%
# Total cost is what was paid for covariates plus what the wrong answers cost.

figure, axes = plt.subplots(figsize=(6.5, 2.6), layout="constrained")
for position, (name, policy) in enumerate(reversed(policies.items())):
    out = policy.acquire(X[new])
    paid, total = out.cost.mean(), total_costs(out, y[new], costs).mean()
    axes.barh(
        name,
        paid,
        color="#0072B2",
        label="covariates" if position == 0 else None,
    )
    axes.barh(
        name,
        total - paid,
        left=paid,
        color="#E69F00",
        label=None if position else "wrong answers",
    )
axes.set_xlabel("mean cost per patient")
axes.legend(frameon=False, loc="lower right")
plt.show()
