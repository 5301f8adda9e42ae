"""`adacos info`: the card of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from adacos.cli.common import Json, Model, allowed, load_policy, plain_console, print_json
from adacos.consultation import fingerprint
from adacos.policies.base import BasePolicy
from adacos.tables.reading import listed


def info(model: Model, as_json: Json = False) -> None:
    """Show what a model knows: covariates, costs, order of acquisition, certificate.

    Example:

        adacos info model.adacos
    """
    policy = load_policy(model)
    if as_json:
        print_json(card(policy))
    else:
        show(policy, plain_console())


def card(policy: BasePolicy) -> dict[str, Any]:
    """The model card as plain values."""
    encoder, costs = policy.encoder_, policy.cost_table_
    titles = list(policy.costs.panels) if policy.costs is not None else []
    covariates = []
    for k, name in enumerate(encoder.names):
        numeric = not encoder.categories[k]
        covariates.append(
            {
                "name": name,
                "kind": encoder.kinds[k],
                "low": float(encoder.low[k]) if numeric else None,
                "high": float(encoder.high[k]) if numeric else None,
                "categories": list(encoder.categories[k]),
                "cost": float(costs.covariates[k]),
                "panel": titles[costs.panel[k]] if costs.panel[k] >= 0 else None,
            }
        )
    content: dict[str, Any] = {
        "policy": type(policy).__name__,
        "fingerprint": fingerprint(policy),
        "classes": policy.classes_.tolist(),
        "positive_class": policy.classes_.tolist()[1],
        "misclassification_costs": policy.rule_.matrix.tolist(),
        # With a target recall nobody stated the false-negative cost: it follows from the recall.
        "false_negative_implied": hasattr(policy, "false_negative_cost_"),
        "covariates": covariates,
        "panels": [
            {
                "name": title,
                "shared": float(shared),
                "members": [costs.names[k] for k in np.flatnonzero(costs.panel == number)],
            }
            for number, (title, shared) in enumerate(zip(titles, costs.shared, strict=True))
        ],
    }
    if hasattr(policy, "sets_"):
        y = policy.model_.y
        content |= {
            "training_rows": len(y),
            "training_positives": int(y.sum()),
            "order": list(policy.sets_[-1]),
            "sets": [list(names) for names in policy.sets_],
            "expected_total_cost": policy.expected_cost_.tolist(),
        }
    if getattr(policy, "target_recall", None) is not None:
        content["target_recall"] = policy.target_recall
        content["threshold"] = policy.threshold_
        content["recall_estimate"] = policy.recall_estimate_
    certificate = getattr(policy, "certificate_", None)
    if certificate is not None:
        content["certificate"] = {**vars(certificate), "text": str(certificate)}
    return content


def show(policy: BasePolicy, console: Console, held_back: int | None = None) -> None:
    """Print the card for people; `held_back` rows were kept for calibration, if that is known."""
    content = card(policy)
    console.print(f"{content['policy']}  {content['fingerprint']}", style="bold")
    if "training_rows" in content:
        share = content["training_positives"] / content["training_rows"]
        rows = f"{content['training_rows']:,} training rows"
        if "certificate" in content:
            others = "others" if held_back is None else f"{held_back:,} more"
            rows += f" ({others} held back for calibration)"
        console.print(f"{rows}, {share:.1%} of class {content['positive_class']}")
    console.print(_errors_in_words(content))
    console.print(_stops(policy, content))
    for panel in content["panels"]:
        console.print(
            f"Panel {panel['name']}: {listed(panel['members'])} share {panel['shared']:g} of their "
            "cost, paid once"
        )
    if "certificate" in content:
        console.print(content["certificate"]["text"])
    elif "target_recall" in content:
        console.print(
            f"Target recall {content['target_recall']:.1%}, estimated "
            f"{content['recall_estimate']:.1%}; not certified."
        )


def _errors_in_words(content: dict[str, Any]) -> str:
    (c00, c01), (c10, c11) = content["misclassification_costs"]
    negative, positive = content["classes"]
    text = f"answering {positive} for {negative} costs {c01:g}, "
    if content.get("threshold") == 0:
        return text + f"{negative} is never answered"
    text += f"{negative} for {positive} {c10:.6g}"
    if content["false_negative_implied"]:
        text += " (not given: implied by the target recall)"
    return text + (f"; right answers {c00:g} and {c11:g}" if c00 or c11 else "")


def _stops(policy: BasePolicy, content: dict[str, Any]) -> Table:
    """Covariates in the order of acquisition, and what stopping after each of them costs."""
    described = {c["name"]: c for c in content["covariates"]}
    order = content.get("order", list(described))
    stops = {
        len(names): f"{cost:.2f}"
        for names, cost in zip(
            content.get("sets", []), content.get("expected_total_cost", []), strict=True
        )
    }
    table = Table("")
    # A long name is broken, never cut: it is what options and answers must be given with.
    for title in ("covariate", "kind", "values"):
        table.add_column(title, overflow="fold")
    table.add_column("cost", justify="right")
    if stops:
        table.add_column("total cost if all stop here", justify="right", max_width=14)
    if 0 in stops:
        table.add_row("0", "nothing acquired", "", "", "", stops[0])
    for rank, name in enumerate(order, start=1):
        own = described[name]
        values = allowed(policy.encoder_, name, most=6)
        row = [str(rank), name, own["kind"], values, f"{own['cost']:g}"]
        table.add_row(*row, *([stops.get(rank, "")] if stops else []))
    return table
