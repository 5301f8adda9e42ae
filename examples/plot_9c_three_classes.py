"""
Three classes
=============

With three or more classes what an error costs is a matrix, and every class can have a sensitivity (recall)
of its own.
"""

import matplotlib.pyplot as plt
import numpy as np
from adacos import AdaCOSClassifier, Costs, TargetRecallClassifier
from adacos.metrics import total_cost
from sklearn.datasets import load_iris

iris = load_iris(as_frame=True)
X, y = iris.data, iris.target_names[iris.target]
names = list(iris.target_names)
train = np.arange(len(y)) % 3 > 0

# %%
# Costs as a matrix
# -----------------
# The diabetes table of the other examples has two classes only, so this one is about iris flowers. Its costs are
# made up, in one unit. Rows are true classes, columns are answers. To take a virginica for another kind costs most.

errors = [[0, 20, 30], [20, 0, 25], [40, 40, 0]]
costs = Costs(
    dict(zip(X.columns, [1, 2, 4, 5], strict=True)), misclassification=errors
)
policy = AdaCOSClassifier(costs, strengths="common")
policy.fit(X[train], y[train])
result = policy.acquire(X[~train])
print(result)
print(f"total cost {total_cost(result, y[~train], costs):.2f}")

# %%
# One flower
# ----------
# Each step has a probability for every class.

flower = policy.consultation()
step = flower.next()
print(step)
step = flower.observe({step.covariates[0]: 5.0}).next()
print(step)
for name, probability in step.explanation.probabilities.items():
    print(f"{name}: {probability:.1%}")

# %%
# A sensitivity for one class
# ---------------------------
# A target recall protects a class: errors about it cost a surcharge, as much as its recall takes and no more.

careful = TargetRecallClassifier(
    AdaCOSClassifier(costs, strengths="common"),
    target_recall={"versicolor": 0.95},
).fit(X[train], y[train])
print(careful.recall_estimate_, careful.surcharges_)

# %%
# Who is answered with what.

answers = np.array(
    [
        [
            np.sum((y[~train] == true) & (result.label == said))
            for said in names
        ]
        for true in names
    ]
)
figure, axes = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
axes.imshow(answers, cmap="Blues")
for i in range(3):
    for j in range(3):
        colour = "white" if answers[i, j] > 8 else "black"
        axes.text(j, i, answers[i, j], ha="center", color=colour)
axes.set_xticks(range(3), names)
axes.set_yticks(range(3), names)
axes.set_xlabel("answer")
axes.set_ylabel("true class")
plt.show()
