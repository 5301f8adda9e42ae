"""
Order tests in batches
======================

A blood sample goes to the laboratory, and its result is there tomorrow. Three tests ordered together cost
one wait, three tests one after the other cost three. With ``round_cost`` a policy decides what to order
together. The table is heart disease: it has four tests whose results are there at once, and nine
that take a wait. A test costs up to 102.90, so errors cost more than on the other pages, 4,000 each.
"""

import matplotlib.pyplot as plt
import numpy as np
from adacos import Acquire, AdaCOSClassifier, Costs, load_heart
from adacos.metrics import total_costs

X, y, prices, panels, *_ = load_heart()
AT_ONCE = ["age", "sex", "cp", "trestbps"]
errors = {"false_positive": 4000, "false_negative": 4000}
waiting = Costs(
    prices,
    panels=panels,
    **errors,
    round_cost=50,  # what a wait costs
    immediate=AT_ONCE,  # what is there without a wait
)
train = np.arange(len(y)) % 3 > 0
policy = AdaCOSClassifier(waiting).fit(X[train], y[train])

# %%
# One patient
# -----------
# A step is a set of tests. When their results are there, the policy decides again.

patient = X[~train].iloc[19]
consultation = policy.consultation()
while isinstance(step := consultation.next(), Acquire):
    print(step)
    consultation.observe({name: patient[name] for name in step.covariates})
print(step)
print("waits:", consultation.rounds)

# %%
# All patients
# ------------
# The same models without the cost of a wait ask for one test after the other. Each of their waits is charged
# here.

result = policy.acquire(X[~train])
single = Costs(prices, panels=panels, **errors)
ignoring = AdaCOSClassifier(single).from_model(policy).acquire(X[~train])
delayed = [name not in AT_ONCE for name in X.columns]
waits = ignoring.acquired[:, delayed].sum(axis=1)
counted = total_costs(result, y[~train], waiting)
ignored = total_costs(ignoring, y[~train], single) + 50 * waits
print(f"wait counted {counted.mean():.0f}, ignored {ignored.mean():.0f}")

figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
most = waits.max() + 1
axes.hist(waits, bins=np.arange(most + 1) - 0.5, color="#0072B2")
axes.set_xlabel("waits of a patient where the wait is ignored")
axes.set_ylabel("patients")
plt.show()
