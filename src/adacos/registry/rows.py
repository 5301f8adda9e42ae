"""What the library brings along: one call for each policy, baseline and data set."""

from __future__ import annotations

from functools import partial
from typing import Any

from adacos.registry.tables import (
    Variant,
    make_estimator,
    register_dataset,
    register_method,
    register_policy,
)

# The first of a group-lasso family is fitted, the others are derived from it. Forward selection
# needs the cost of a false negative, which a target recall replaces.
_LASSO: dict[str, Any] = {"family": "group lasso", "recall": True}
_FORWARD: dict[str, Any] = {"family": "forward", "effort": 10.0}
_IN_ORDER = {"sequence": "group_lasso"}
register_policy(
    "adacos",
    "adacos.policies.adacos:AdaCOSClassifier",
    variants=(
        Variant("AdaCOS (group lasso)", _IN_ORDER, **_LASSO, look=("vermillion", "o", "-")),
        Variant(
            "AdaCOS (forward)", {"sequence": "forward"}, **_FORWARD, look=("vermillion", "D", "--")
        ),
        Variant(
            "AdaCOS (auto)",
            {"sequence": "auto"},
            recall=True,
            effort=2.0,
            look=("vermillion", "*", ":"),
        ),
        Variant(
            "AdaCOS dynamic (group lasso)",
            {"lookahead": "dynamic", **_IN_ORDER},
            **_LASSO,
            look=("grey", "v", "--"),
        ),
        Variant(
            "AdaCOS coherent (group lasso)",
            {"lookahead": "coherent", **_IN_ORDER},
            **_LASSO,
            look=("grey", "s", ":"),
        ),
        Variant(
            "AdaCOS as published (group lasso)",
            {"lookahead": "paper", **_IN_ORDER},
            **_LASSO,
            look=("grey", "o", "-"),
        ),
        Variant(
            "AdaCOS as published (forward)",
            {"lookahead": "paper", "sequence": "forward"},
            **_FORWARD,
            look=("grey", "D", "--"),
        ),
    ),
)
register_policy(
    "branching",
    "adacos.policies.branching:BranchingClassifier",
    variants=(Variant("Branching", recall=True, effort=10.0, look=("vermillion", "^", "-.")),),
)
register_policy(
    "planning",
    "adacos.policies.planning:PlanningClassifier",
    title="Planning",
    effort=5.0,
    look=("purple", "*", "-"),
)
register_policy(
    "auto",
    "adacos.policies.auto:AutoPolicyClassifier",
    title="Auto",
    effort=50.0,
    look=("vermillion", "s", "-"),
)
register_policy(
    "cos",
    "adacos.policies.cos:COSClassifier",
    variants=(
        Variant("COS (group lasso)", _IN_ORDER, **_LASSO, look=("blue", "s", "-")),
        Variant("COS (forward)", {"sequence": "forward"}, **_FORWARD, look=("blue", "P", "--")),
    ),
)
register_policy(
    "full",
    "adacos.policies.full_model:FullModelClassifier",
    variants=(Variant("Full Model", _IN_ORDER, **_LASSO, look=("green", "^", "-")),),
)
register_policy(
    "protocol",
    "adacos.policies.protocol:ProtocolClassifier",
    title="Fast-and-frugal tree",
    look=("black", "d", "-."),
)
register_policy(
    "shim2018",
    "adacos.rivals.shim2018:Shim2018Classifier",
    title="Shim2018",
    rival=True,
    effort=50.0,
    requires=("torch", "rivals"),
    look=("purple", "v", "-"),
)
register_policy(
    "dime",
    "adacos.rivals.dime:DIMEClassifier",
    title="DIME",
    rival=True,
    effort=50.0,
    requires=("torch", "rivals"),
    look=("sky", "v", "--"),
)
register_policy(
    "gdfs",
    "adacos.rivals.gdfs:GDFSClassifier",
    title="GDFS",
    rival=True,
    effort=50.0,
    requires=("torch", "rivals"),
    look=("orange", "v", "--"),
)
register_policy(
    "adapt-gbrt",
    "adacos.rivals.adapt_gbrt:AdaptGbrtClassifier",
    title="AdaptGbrt",
    rival=True,
    effort=50.0,
    look=("orange", "<", "-"),
)
register_policy(
    "greedy-miser",
    "adacos.rivals.greedy_miser:GreedyMiserClassifier",
    title="GreedyMiser",
    rival=True,
    effort=10.0,
    look=("sky", ">", "-"),
)
register_policy(
    "dwsm",
    "adacos.rivals.dwsm:DWSMClassifier",
    title="DWSM",
    rival=True,
    effort=10.0,
    look=("black", "X", "-"),
)
register_policy(
    "pomdp",
    "adacos.rivals.pomdp:POMDPClassifier",
    title="POMDP",
    rival=True,
    effort=10.0,
    look=("grey", "p", "-"),
)
register_policy(
    "cegb",
    "adacos.rivals.cegb:CEGBClassifier",
    title="CEGB",
    rival=True,
    effort=10.0,
    requires=("lightgbm", "rivals"),
    look=("orange", "h", ":"),
)
register_policy(
    "streed",
    "adacos.rivals.streed:STreeDClassifier",
    title="STreeD",
    rival=True,
    effort=10.0,
    requires=("pystreed", "rivals"),
    look=("green", "d", ":"),
)
register_policy(
    "aaco",
    "adacos.rivals.aaco:AACOClassifier",
    title="AACO",
    rival=True,
    effort=10.0,
    look=("sky", "d", ":"),
)
# The exact optimum needs discrete covariates: numbers are cut into three codes.
register_policy(
    "optimal",
    "adacos.rivals.optimal:OptimalPolicyClassifier",
    rival=True,
    variants=(Variant("Optimal (3 codes)", {"n_codes": 3}, effort=10.0, look=("black", "*", ":")),),
)
# A model file cannot hold it, so that it is no policy that can be chosen by name.
register_method(
    "Boosting (best fixed set)",
    partial(make_estimator, "adacos.policies.costed:CostedClassifier", {"covariates": "best"}),
    rival=True,
    effort=20.0,
    recall=False,
    look=("black", "s", ":"),
)

# The paper's experiments keep the zeros that stand for values that were not recorded.
register_dataset(
    "pima",
    "adacos.datasets:load_pima",
    title="Pima diabetes",
    bundled=True,
    paper={},
    files={"zeros": "missing"},
)
# The paper's experiments contain the sample identifier.
register_dataset(
    "wisconsin",
    "adacos.datasets:load_wisconsin",
    title="Wisconsin breast cancer",
    bundled=True,
    paper={"sample_code": True},
)
register_dataset(
    "heart", "adacos.datasets:load_heart", title="Heart disease", bundled=True, paper={}
)
register_dataset(
    "physionet",
    "adacos.datasets:load_physionet2012",
    title="PhysioNet 2012",
    paper={},
    obtain=(
        "Download set-a, set-b, set-c and their Outcomes files from "
        "https://physionet.org/content/challenge-2012/1.0.0/, unpack them into one folder and pass "
        "--data physionet=FOLDER (a ready CSV table also serves)."
    ),
)
