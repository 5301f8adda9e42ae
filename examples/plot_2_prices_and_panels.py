"""
Price lists and panels
======================

What covariates cost decides in which order they are asked for. Where several share a cost, such as
one blood draw for two tests, say so: the second one is then cheaper once the first is there. The table
is heart disease, which has three panels; the diabetes table of the other pages has one. A test costs up
to 102.90 here, so errors cost more as well, 4,000 each.
"""

import matplotlib.pyplot as plt
from adacos import AdaCOSClassifier, Costs, load_heart

X, y, prices, panels, *_ = load_heart()

# %%
# The heart data come with three panels. Each holds a cost that is part of that of every member, and is
# paid once.

for name, (shared, members) in panels.items():
    print(f"{name}: {shared:g} is shared by {', '.join(members)}")

# %%
# What a set of covariates costs
# ------------------------------

single = Costs(prices, false_positive=4000, false_negative=4000)
shared = Costs(
    prices, false_positive=4000, false_negative=4000, panels=panels
)
ecg = ["exang", "oldpeak", "slope"]
print(f"exercise ECG, each paid in full: {single.of(ecg):.2f}")
print(f"exercise ECG as a panel:         {shared.of(ecg):.2f}")
print(
    f"slope when oldpeak is there:     {shared.of(['slope'], given=['oldpeak']):.2f}"
)

# %%
# What it changes
# ---------------
# With the panels, later members of a panel are nearly free: more is acquired for the same money.

share = {}
for label, costs in (("no panels", single), ("panels", shared)):
    result = AdaCOSClassifier(costs, strengths="common").fit(X, y).acquire(X)
    share[label] = result.acquired.mean(axis=0)
    count = result.acquired.sum(axis=1).mean()
    print(f"{label}: {count:.2f} covariates for {result.cost.mean():.2f}")

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
names = list(prices)
height = 0.38
for shift, (label, values), color in zip(
    (-height / 2, height / 2),
    share.items(),
    ("#999999", "#0072B2"),
    strict=True,
):
    axes.barh(
        [i + shift for i in range(len(names))],
        100 * values,
        height,
        label=label,
        color=color,
    )
axes.set_yticks(
    range(len(names)), [f"{name} ({prices[name]:g})" for name in names]
)
axes.invert_yaxis()
axes.set_xlabel("patients for whom it is acquired, in %")
axes.legend(frameon=False)
plt.show()

# %%
# Right answers that earn something
# ---------------------------------
# Any matrix C[true class, label] will do, as long as a wrong label costs more than the right one.

Costs(prices, misclassification=[[-50, 400], [400, -50]])
