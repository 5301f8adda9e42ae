"""`export`: write a fitted policy as `policy.json`, or as a page with the evaluator in it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from adacos.exceptions import InvalidInputError
from adacos.exports.page import page_of
from adacos.exports.plain import plain_policy
from adacos.policies.base import BasePolicy
from adacos.tables.writing import check_output, write_whole

_ENDINGS = (".json", ".html")


def export(policy: object, path: str | os.PathLike[str]) -> None:
    """Write a fitted policy to a file that decides without Python, wholly or not at all.

    A `.json` file holds the policy for the evaluator `evaluator.js` of this package, which has no
    dependencies. An `.html` file is a page for consultations that works offline.

    Parameters
    ----------
    policy : BasePolicy
        A fitted COS, Full Model or protocol, or AdaCOS of two classes, also in a target recall.
    path : str or path-like
        The file to write, ending in `.json` or `.html`; what is there is replaced once the new file
        is complete.

    Raises
    ------
    InvalidInputError
        If the ending is another, or if a file could not decide exactly as the policy does: other
        policies, AdaCOS of three or more classes, decisions in place of labels, budgets, rounds,
        dates.

    See Also
    --------
    save : Write the whole model, which decides where values are unavailable too.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from adacos import Costs, COSClassifier, export, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(list(prices.values()), false_positive=100, false_negative=1000)
    >>> policy = COSClassifier(costs, strengths="common").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "policy.json"
    ...     export(policy, path)
    ...     content = json.loads(path.read_text())
    >>> content["format"], content["classes"]
    ('adacos-policy', [0, 1])
    """
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        remedy = "Name it policy.json for programs, or policy.html for people."
        raise InvalidInputError("path", "must end in .json or .html", str(path), remedy)
    if not isinstance(policy, BasePolicy):
        remedy = "Fit a policy first; `load` reads one from a model file."
        raise InvalidInputError("policy", "must be a fitted policy", type(policy).__name__, remedy)
    if not hasattr(policy, "decider_"):
        raise InvalidInputError("policy", "must be fitted", "an unfitted policy", "Call fit first.")
    check_output(path, "path")
    plain = plain_policy(policy)
    text = json.dumps(plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    if ending == ".html":
        text = page_of(plain["title"] or "What to acquire next", text)
    write_whole(path, text.encode())
