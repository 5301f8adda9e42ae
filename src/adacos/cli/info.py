"""`adacos info`: the card of a model."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from adacos.cli.common import Json, Model, load_policy, print_json
from adacos.consultation import fingerprint
from adacos.policy import BasePolicy


def info(model: Model, as_json: Json = False) -> None:
    """Show what a model knows: covariates, costs, order of acquisition, certificate.

    Example:

        adacos info model.adacos
    """
    policy = load_policy(model)
    if as_json:
        print_json(card(policy))
    else:
        show(policy, Console())


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
        "misclassification_costs": costs.matrix.tolist(),
        "covariates": covariates,
        "panels": [
            {"name": title, "shared": float(shared)}
            for title, shared in zip(titles, costs.shared, strict=True)
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


def show(policy: BasePolicy, console: Console) -> None:
    """Print the card for people."""
    content = card(policy)
    (c00, c01), (c10, c11) = content["misclassification_costs"]
    negative, positive = content["classes"]
    console.print(f"[bold]{content['policy']}[/]  {content['fingerprint']}", highlight=False)
    if "training_rows" in content:
        share = content["training_positives"] / content["training_rows"]
        console.print(
            f"{content['training_rows']:,} training rows, {share:.1%} of class {positive}",
            highlight=False,
        )
    console.print(
        f"answering {positive} for {negative} costs {c01:g}, {negative} for {positive} {c10:g}"
        + (f"; right answers {c00:g} and {c11:g}" if c00 or c11 else ""),
        highlight=False,
    )
    order = content.get("order", [c["name"] for c in content["covariates"]])
    described = {c["name"]: c for c in content["covariates"]}
    table = Table("", "covariate", "kind", "values", "cost", "panel")
    if "sets" in content:
        table.add_column("total cost if all stop here", justify="right")
    for rank, name in enumerate(order, start=1):
        own = described[name]
        values = (
            ", ".join(own["categories"][:6])
            if own["categories"]
            else f"{own['low']:g} to {own['high']:g}"
        )
        row = [str(rank), name, own["kind"], values, f"{own['cost']:g}", own["panel"] or ""]
        if "sets" in content:
            at = [i for i, names in enumerate(content["sets"]) if len(names) == rank]
            row.append(f"{content['expected_total_cost'][at[0]]:.2f}" if at else "")
        table.add_row(*row)
    console.print(table)
    if "certificate" in content:
        console.print(content["certificate"]["text"], highlight=False)
    elif "target_recall" in content:
        console.print(
            f"Target recall {content['target_recall']:.1%}, estimated "
            f"{content['recall_estimate']:.1%}; not certified.",
            highlight=False,
        )
