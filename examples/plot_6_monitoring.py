"""
Monitoring: does the policy cost what it promised?
==================================================

At each decision a policy states what it expects the total cost to be. Once the truth is known, the
promise can be checked. This example follows a policy over its cases, first among patients like those it
learned from, then after a change that it does not know of. A served model's case log holds the same
numbers (``GET /v1/cases/summary``).
"""

import matplotlib.pyplot as plt
import numpy as np
from adacos import AdaCOSClassifier, Costs, load_pima
from adacos.metrics import total_costs

X, y, prices, *_ = load_pima(zeros="missing")
costs = Costs(prices, false_positive=100, false_negative=1000)
rng = np.random.default_rng(2)
shuffled = rng.permutation(len(y))
train, later = shuffled[:400], shuffled[400:]
clf = AdaCOSClassifier(costs).fit(X.iloc[train], y[train])

# %%
# Expected and realised
# ---------------------

cases, truth = X.iloc[later], y[later]
result = clf.acquire(cases)
realised = total_costs(result, truth, costs)
error = realised.std(ddof=1) / np.sqrt(len(realised))
print(f"expected {result.expected_cost.mean():.1f}")
print(f"realised {realised.mean():.1f} ± {error:.1f}")

# %%
# A change nobody mentioned
# -------------------------
# From the middle on, a new form records weight in another unit, and the body mass index comes out
# at half of what it is.

middle = len(cases) // 2
drifted = cases.copy()
drifted.iloc[middle:, drifted.columns.get_loc("BMI")] *= 0.5
after = clf.acquire(drifted)

# %%
# The excess of realised over expected total cost, added up case by case, wanders around zero as long as
# the promise holds. The band is where 95% of such walks are at each case. The mistake shows after some
# dozens of cases, as soon as missed cases outweigh what is saved on the others.

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for out, label, color in (
    (result, "as in training", "#0072B2"),
    (after, "unit mistaken", "#D55E00"),
):
    excess = total_costs(out, truth, costs) - out.expected_cost
    axes.plot(np.cumsum(excess), color=color, label=label)
# Standard deviation of the cost of one case by the model's own probability.
p, wrong = result.probability, np.where(result.label == 1, 100.0, 1000.0)
chance = np.where(result.label == 1, 1 - p, p)
band = 1.96 * np.sqrt(np.cumsum(chance * (1 - chance) * wrong**2))
axes.fill_between(
    np.arange(len(cases)),
    -band,
    band,
    color="0.9",
    label="95% if the promise holds",
)
axes.axvline(middle, color="0.5", linestyle=":")
axes.set_xlabel("case")
axes.set_ylabel("realised − expected cost, added up")
axes.legend(frameon=False, loc="lower left")
plt.show()

# %%
# Calibration
# -----------
# The same question asked of the probabilities: among cases with about the same probability, as many
# should be positive.

figure, axes = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
for out, label, color in (
    (result, "as in training", "#0072B2"),
    (after, "unit mistaken", "#D55E00"),
):
    groups = np.array_split(np.argsort(out.probability), 6)
    predicted = [out.probability[group].mean() for group in groups]
    observed = [truth[group].mean() for group in groups]
    axes.plot(predicted, observed, "o-", color=color, label=label)
axes.plot([0, 1], [0, 1], color="0.7", zorder=0)
axes.set_xlabel("predicted probability")
axes.set_ylabel("share of positive cases")
axes.legend(frameon=False)
plt.show()
