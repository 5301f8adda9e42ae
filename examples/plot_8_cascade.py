"""
A cascade: small model, large model, reviewer
=============================================

A covariate need not be a measurement. Here it is the opinion of a small model, of a large one, or of a
person who looks at the case. Each has its cost, and the policy decides case by case whose opinion is
worth asking for. An opinion is computed when it is asked for: a provider is called for it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from adacos import (
    AcquisitionDisplay,
    AdaCOSClassifier,
    Costs,
    FullModelClassifier,
)
from adacos.metrics import total_costs
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

cases, truth = make_classification(
    n_samples=4000,
    n_features=20,
    n_informative=12,
    n_clusters_per_class=4,
    class_sep=1.2,
    weights=[0.8],
    random_state=0,
)
rng = np.random.default_rng(0)

# %%
# Three opinions
# --------------
# Both models learn from the first 2,000 cases. The small one sees five columns. The reviewer errs in 3%
# of the cases. What they think of a case is a column of the policy's table.

small = LogisticRegression().fit(cases[:2000, :5], truth[:2000])
large = HistGradientBoostingClassifier(random_state=0)
large.fit(cases[:2000], truth[:2000])
reviewed = np.where(rng.random(len(truth)) < 0.03, 1 - truth, truth)


def log_odds(probability):
    """Additive models are at their best with log-odds."""
    return np.log(probability / (1 - probability))


def ask_small(rows):
    """Log-odds of the small model."""
    return log_odds(small.predict_proba(cases[rows, :5])[:, 1])


def ask_large(rows):
    """Log-odds of the large model."""
    return log_odds(large.predict_proba(cases[rows])[:, 1])


opinions = {
    "small model": ask_small,
    "large model": ask_large,
    "reviewer": lambda rows: reviewed[rows],
}

# %%
# What they cost
# --------------
# The diabetes table of the other examples has no opinions of models, so this example has cases and costs of
# its own. In cents: a call of the small model 0.01, of the large one 1, ten minutes of a person 300. A false
# alarm costs 1,000, a missed case 5,000. The policy learns from 1,000 further cases, on which the models were
# not trained, with the opinions of all three.

costs = Costs(
    {"small model": 0.01, "large model": 1, "reviewer": 300},
    false_positive=1000,
    false_negative=5000,
)
past = np.arange(2000, 3000)
X = pd.DataFrame({name: ask(past) for name, ask in opinions.items()})
policy = AdaCOSClassifier(costs).fit(X, truth[past])

# %%
# New cases
# ---------
# The small model runs on all of them. The others are called for the cases for which the policy asks them:
# ``calls`` says for how many.

new = np.arange(3000, 4000)
result = policy.acquire(
    pd.DataFrame({"small model": ask_small(new)}, index=new),
    providers={
        name: lambda request, ask=ask: ask(request.rows.index)
        for name, ask in opinions.items()
        if name != "small model"
    },
)
print(result)
for call in result.calls:
    print(f"{call.covariate}: {len(call.index)} cases")

# %%
# Each bar shows the cases that are still undecided. The reviewer sees those on which the large model is in
# doubt.

everything = pd.DataFrame({name: ask(new) for name, ask in opinions.items()})
AcquisitionDisplay.from_estimator(policy, everything)
plt.show()

# %%
# Compared with one stage
# -----------------------
# A policy that has one model only, the large one or the reviewer, and one that always asks all three.

results = {"cascade": (result, costs)}
for name in ("small model", "large model", "reviewer"):
    alone = Costs(
        {name: costs.covariates[name]},
        false_positive=1000,
        false_negative=5000,
    )
    model = FullModelClassifier(alone).fit(X[[name]], truth[past])
    results[name] = model.acquire(everything[[name]]), alone
full = FullModelClassifier(costs).fit(X, truth[past])
results["all three"] = full.acquire(everything), costs

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, (answer, terms) in reversed(results.items()):
    paid = answer.cost.mean()
    total = total_costs(answer, truth[new], terms).mean()
    print(f"{name}: {paid:.0f} paid, {total:.0f} in all")
    axes.barh(name, paid, color="#0072B2")
    axes.barh(name, total - paid, left=paid, color="#D55E00")
axes.set_xlabel("mean cost of a case: opinions (blue) and errors (red)")
plt.show()
