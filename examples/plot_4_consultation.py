"""
A consultation in a notebook
============================

One patient, one question at a time: what to acquire next, why, and what would change the answer.
"""

import matplotlib.pyplot as plt
from adacos import AdaCOSClassifier, Costs, load_pima
from adacos.consultation.steps import Acquire

X, y, prices, panels, *_ = load_pima(zeros="missing")
costs = Costs(prices, false_positive=100, false_negative=1000, panels=panels)
clf = AdaCOSClassifier(costs).fit(X[20:], y[20:])

# %%
# Begin with what is on file; it costs nothing.

patient = X.iloc[3]
consultation = clf.consultation(known={"Age": patient["Age"]})
step = consultation.next()
print(step)

# %%
# The reasons come in words, and as numbers in ``step.explanation``.

print(step.explanation)

# %%
# Answer, and ask again. The probability after each answer is kept for the picture below.

course = [("Age", step.explanation.probability)]
while isinstance(step, Acquire):
    values = {name: float(patient[name]) for name in step.covariates}
    step = consultation.observe(values).next()
    course.append((", ".join(values), step.explanation.probability))
    print(
        ", ".join(f"{name} = {value:g}" for name, value in values.items()),
        "->",
        step,
    )

# %%
# How the probability moved, and the cut-off, at or above which the result is positive.

threshold = 100 / (100 + 1000)
figure, axes = plt.subplots(figsize=(6.5, 3), layout="constrained")
axes.plot(
    range(len(course)), [100 * p for _, p in course], "o-", color="#0072B2"
)
axes.axhline(
    100 * threshold,
    color="#D55E00",
    linestyle="--",
    label="cut-off",
)
names = [name for name, _ in course]
axes.set_xticks(range(len(course)), names, rotation=20, ha="right")
axes.set_ylabel("probability in %")
axes.set_ylim(bottom=0)
axes.legend(frameon=False)
plt.show()

# %%
# Something is unavailable
# ------------------------
# Skip a question, answer another one, take an answer back. ``state`` is plain JSON from which the
# consultation can be continued elsewhere.

consultation = clf.consultation(known={"Age": 21})
print(consultation.next())
print(consultation.unavailable("BMI").next())
print(consultation.undo().next())
consultation.state()
