"""What a policy decides on a problem, as hashes of numbers rounded to ten digits."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from fastapi.testclient import TestClient

from adacos.consultation.steps import Acquire
from adacos.engine import AcquisitionResult
from adacos.kernels.threads import one_blas_thread
from adacos.service.app import create_app
from adacos.service.settings import Settings
from tests.golden.problems import SETTINGS, Fitted, problem
from tests.policy_cases import Case

# Rows that are asked about step by step, and by HTTP.
N_ASKED = 3
# What a step decides and the numbers of its reasons. What is said in words is hashed by itself, so
# that another wording, or a field besides, changes no other line.
STEP = ("action", "covariates", "cost", "sharing", "label", "probability", "expected_cost")
REASONS = (
    "bayes_risk",
    "paid",
    "stop_now",
    "acquire_next",
    "best_plan",
    "expected_saving",
    "flips",
    "intercept",
    "contributions",
    "probabilities",
)

Record = dict[str, str]


@one_blas_thread
def record(case: Case, table: str, setting: str) -> Record:
    """The hash of each field, or the error where a policy does not take the setting."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fitted = SETTINGS[setting](case, problem(table))
            result = fitted.policy.acquire(fitted.X, known=fitted.known)
        except ValueError as error:
            return {"error": f"{type(error).__name__} {getattr(error, 'parameter', '')}".strip()}
        found = {f.name: hashed(getattr(result, f.name)) for f in fields(AcquisitionResult)}
        steps = consulted(fitted)
        answers = served(fitted)
        found["consultation"] = hashed([_decided(step.to_dict()) for step in steps])
        found["words"] = hashed([[step.text(), str(step.explanation)] for step in steps])
        found["service"] = hashed([_decided(answer) for answer in answers])
        return found


def consulted(fitted: Fitted) -> list[Any]:
    """The steps of a few consultations."""
    steps = []
    for values, known in _asked(fitted):
        consultation = fitted.policy.consultation({name: values[name] for name in known})
        gone = _gone(values)
        if gone:
            consultation.unavailable(*gone)
        while isinstance(step := consultation.next(), Acquire):
            steps.append(step)
            consultation.observe({name: values[name] for name in step.covariates})
        steps.append(step)
    return steps


def served(fitted: Fitted) -> list[Any]:
    """The same rows asked by HTTP."""
    app = create_app(fitted.policy, Settings(rate_limit=0))
    client = TestClient(app, base_url="http://localhost")
    answers = []
    for values, known in _asked(fitted):
        request: dict[str, Any] = {
            "known": {name: values[name] for name in known},
            "acquired": {},
            "unavailable": _gone(values),
        }
        while True:
            answer = client.post("/v1/step", json=request).json()
            answers.append(answer)
            if answer.get("action") != "acquire":
                break
            request["acquired"] |= {name: values[name] for name in answer["covariates"]}
    return answers


def _asked(fitted: Fitted) -> list[tuple[dict[str, Any], list[str]]]:
    """A few rows as values by name, and the names of those that are known."""
    rows = fitted.X.head(N_ASKED).astype(object).to_dict("records")
    none = np.zeros(fitted.X.shape, dtype=np.bool_)
    masks = none if fitted.known is None else fitted.known
    names = fitted.X.columns.to_numpy()
    return [(row, names[mask].tolist()) for row, mask in zip(rows, masks, strict=False)]


def _gone(values: dict[str, Any]) -> list[str]:
    return [name for name, value in values.items() if pd.isna(value)]


def _decided(step: dict[str, Any]) -> dict[str, Any]:
    """The decision of a step and the numbers of its reasons."""
    reasons = step["explanation"]
    return {
        **{name: step[name] for name in STEP if name in step},
        **{name: reasons[name] for name in REASONS if name in reasons},
    }


def hashed(value: Any) -> str:
    """The first digits of the hash of plain values or an array."""
    text = json.dumps(_rounded(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _rounded(value: Any) -> Any:
    """Plain values whose numbers are rounded; what is not a number is as it was."""
    if isinstance(value, np.ndarray):
        return _rounded(value.tolist())
    if isinstance(value, dict):
        return {str(k): _rounded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(v) for v in value]
    if isinstance(value, float):
        return "0" if abs(value) < 1e-10 else f"{value:.10g}"
    return value
