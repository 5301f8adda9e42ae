"""
A recall instead of a cost
==========================

What a missed case costs is often hard to say; that 90% of them must be found is not. This example
asks for a recall, has it certified, and looks at what a higher one would cost.
"""

import matplotlib.pyplot as plt
import numpy as np
from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier, load_pima
from adacos.metrics import operation_cost, recall, recall_interval
from adacos.policies.recall_choices import recall_choices

X, y, prices, *_ = load_pima(zeros="missing")
rng = np.random.default_rng(0)
part = rng.permutation(np.arange(len(y)) % 3)
costs = Costs(prices, false_positive=100)  # no false-negative cost

# %%
# An estimate
# -----------
# With a target alone, the false-negative cost is found that reaches it on cross-validated
# probabilities.

clf = TargetRecallClassifier(AdaCOSClassifier(costs), target_recall=0.9)
clf.fit(X[part == 0], y[part == 0])
print(
    f"a missed case counts as {clf.false_negative_cost_:.0f}, a false alarm as 100"
)
print(f"positive at a probability of {clf.threshold_:.3f} or above")

# %%
# A certificate
# -------------
# Rows that took part in nothing so far prove a recall with a stated confidence, or the attempt fails
# with an error that says what would be needed.

clf.calibrate(X[part == 1], y[part == 1], confidence=0.9)
print(clf.certificate_)

# %%
# On the rows that are left:

out = clf.acquire(X[part == 2])
low, high = recall_interval(out, y[part == 2])
print(
    f"recall {recall(out, y[part == 2]):.3f}, 95% interval {low:.3f} to {high:.3f}"
)
print(
    f"operation cost {operation_cost(out, y[part == 2], costs):.2f} per patient"
)

# %%
# What a higher recall costs
# --------------------------
# The operation cost counts covariates and false alarms. A recall chosen by looking at this picture has
# to be certified on other rows.

wanted = [0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
choices = recall_choices(clf, X[part == 1], y[part == 1], recalls=wanted)
figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
axes.errorbar(
    [100 * c.certificate.recall for c in choices],
    [c.cost for c in choices],
    yerr=[c.cost_error for c in choices],
    color="#0072B2",
    marker="o",
    capsize=3,
)
axes.set_xlabel("certified recall in %, at 90% confidence")
axes.set_ylabel("mean operation cost ± standard error")
axes.set_ylim(bottom=0)
plt.show()
