"""`adacos info`: the card of a model."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from adacos.card import model_card, recalls_in_words, rule_in_words
from adacos.cli.common import (
    ExpectSha256,
    Json,
    Model,
    allowed,
    load_policy,
    plain_console,
    print_json,
)
from adacos.policies.base import BasePolicy
from adacos.tables.description import Description, description_of
from adacos.validation import listed


def info(model: Model, expect_sha256: ExpectSha256 = None, as_json: Json = False) -> None:
    """Show the card of a model.

    Covariates, costs, order of acquisition, certificate.

    Example:

        adacos info model.adacos
    """
    policy = load_policy(model, expect_sha256)
    if as_json:
        print_json(model_card(policy))
    else:
        show(policy, plain_console())


def show(policy: BasePolicy, console: Console, n_calibration: int | None = None) -> None:
    """Print the card for people; `n_calibration` rows were kept for a certificate, if known."""
    card, said = model_card(policy), description_of(policy)
    if card["headline"] is not None:
        console.print(card["headline"], style="bold yellow")
    for line in (card["title"], card["outcome"] and f"Outcome: {card['outcome']}"):
        if line:
            console.print(line, style="bold")
    around = "" if card["wraps"] is None else f" around {card['wraps']}"
    console.print(f"{card['policy']}{around}  {card['model']}", style="bold")
    if card["training_rows"] is not None:
        rows = f"{card['training_rows']:,} training rows"
        if card["certificate"] is not None:
            others = "others" if n_calibration is None else f"{n_calibration:,} more"
            rows += f" ({others} for calibration)"
        console.print(f"{rows}, {_shares(card, said)}")
    for change in filter(None, (card["recalibration"], card["restriction"])):
        console.print(change["text"])
    console.print(_errors_in_words(card, said))
    console.print(rule_in_words(policy))
    if card["round_cost"]:
        at_once = f", except for {listed(card['immediate'])}" if card["immediate"] else ""
        console.print(
            f"Waiting for results costs {_amount(card['round_cost'], said)} a round{at_once}."
        )
    if card["budget_text"] is not None:
        console.print(card["budget_text"])
    if card["choice"] is not None:
        console.print(card["choice"]["reason"])
        console.print(_compared(card["choice"], said))
    if card["tree"] is not None:
        console.print(card["tree"]["text"], soft_wrap=True)
    if policy.chosen.sequence in ("auto", "both") and card["sequence"] == "forward":
        console.print(
            "Order of forward selection: it costs less than that of the group lasso on rows that "
            "its models did not see, by more than a standard error."
        )
    console.print(_stops(policy, card, said))
    for panel in card["panels"]:
        console.print(_panel_in_words(panel, said))
    if card["cost_estimates"]:
        console.print(_cost_estimates(card, said))
    if card["misfit"] is not None and card["misfit"]["advice"] is not None:
        console.print("The model does not fit everywhere:", style="bold yellow")
        for line in (*card["misfit"]["cells"], *card["misfit"]["states"]):
            console.print(f"- {line}")
        console.print(card["misfit"]["advice"])
    for line in recalls_in_words(policy.chosen):
        console.print(line)
    if card["certificate"] is not None:
        console.print(card["certificate"]["text"])
    elif card["target_recall"] is not None and card["positive_class"] is not None:
        least = "to be at least " if card["recall_at"] == "every_set" else ""
        found = card["recall_estimate"]
        estimate = "not estimated" if found is None else f"estimated {least}{found:.1%}"
        console.print(f"Target recall {card['target_recall']:.1%}, {estimate}; not certified.")
    for lead, text in (("Intended use", card["intended_use"]), ("Source", card["citation"])):
        if text:
            console.print(f"{lead}: {text}")


def _panel_in_words(panel: dict[str, Any], said: Description) -> str:
    if panel["shared"] is not None:
        shared = _amount(panel["shared"], said)
        return (
            f"Panel {panel['name']}: {listed(panel['members'])} share {shared} of their cost, paid "
            "once"
        )
    later = [f"{name} {_amount(cost, said)}" for name, cost in panel["discounted"].items()]
    return f"Panel {panel['name']}: once one of them is paid, the others cost less: {listed(later)}"


def _shares(card: dict[str, Any], said: Description) -> str:
    """Share of the positive class among the training rows; with three or more classes of each."""
    rows = card["training_rows"]
    if card["positive_class"] is not None:
        share = card["training_positives"] / rows
        weighted = card["weighted_shares"]
        so = "" if weighted is None else f", by weight {weighted[1]:.1%}"
        return f"{share:.1%} {_of_class(said, card['positive_class'])}{so}"
    weighted = card["weighted_shares"] or [None] * len(card["classes"])
    each = zip(card["training_classes"], card["classes"], weighted, strict=True)
    return ", ".join(
        f"{count / rows:.1%} {said.class_name(label)}"
        + ("" if share is None else f" (by weight {share:.1%})")
        for count, label, share in each
    )


def _of_class(said: Description, label: Any) -> str:
    return f"{said.class_name(label)}" if said.classes else f"of class {label}"


def _amount(amount: float, said: Description) -> str:
    """An amount as it was given, with its currency."""
    return f"{amount:,.6g}\N{NO-BREAK SPACE}{said.currency}" if said.currency else f"{amount:,.6g}"


def _errors_in_words(card: dict[str, Any], said: Description) -> str:
    if len(card["classes"]) > 2 or "decisions" in card:
        return _matrix_in_words(card, said)
    (c00, c01), (c10, c11) = card["misclassification_costs"]
    text = f"False positive {_amount(c01, said)}, false negative "
    if card["threshold"] == 0:
        return text + "never."
    text += _amount(c10, said)
    if card["false_negative_implied"]:
        text += " (not given: it follows from the target recall)"
    right = f", true negative {_amount(c00, said)}, true positive {_amount(c11, said)}"
    return text + (right if c00 or c11 else "") + "."


def _matrix_in_words(card: dict[str, Any], said: Description) -> str:
    """What each error costs, one true class after the other."""
    names = [said.class_name(label) for label in card["classes"]]
    costs = []
    decided = "decisions" in card
    # In the order of the columns.
    labels = card["decision_names"] if decided else [f"called {name}" for name in names]
    for k, (name, row) in enumerate(zip(names, card["misclassification_costs"], strict=True)):
        shown = [j for j, c in enumerate(row) if j != k or c or decided]
        if decided:
            costs.append(
                f"{name}: " + ", ".join(f"{labels[j]} {_amount(row[j], said)}" for j in shown)
            )
        else:
            pairs = (f"{_amount(row[j], said)} if {labels[j]}" for j in shown)
            costs.append(f"{name} costs {', '.join(pairs)}")
    return f"{'Costs of decisions' if decided else 'Error costs'}: {'; '.join(costs)}."


def _stops(policy: BasePolicy, card: dict[str, Any], said: Description) -> Table:
    """Covariates in the order of acquisition, and what stopping after each of them costs."""
    described = {c["name"]: c for c in card["covariates"]}
    order = card["order"] or list(described)
    sets, expected = card["sets"] or [], card["out_of_fold_cost_by_set"] or []
    stops = {len(names): said.money(cost) for names, cost in zip(sets, expected, strict=True)}
    table = Table("")
    # A long name is broken, never cut: it is what options and answers must be given with.
    for title in ("covariate", "kind", "values"):
        table.add_column(title, overflow="fold")
    table.add_column("cost", justify="right")
    if stops:
        # Nobody stated what a missed case costs: it is that which the target recall stands for.
        missed = ", missed cases at the implied cost" if card["false_negative_implied"] else ""
        title = f"out-of-fold total cost if all stop here{missed}"
        table.add_column(title, justify="right", max_width=14)
    if 0 in stops:
        table.add_row("0", "nothing acquired", "", "", "", stops[0])
    for rank, name in enumerate(order, start=1):
        description = described[name]
        shown = name if description["label"] == name else f"{name} ({description['label']})"
        values = allowed(policy.encoder_, name, most=6) + (
            f" {description['unit']}" if description["unit"] else ""
        )
        row = [str(rank), shown, description["kind"], values, _amount(description["cost"], said)]
        table.add_row(*row, *([stops.get(rank, "")] if stops else []))
    return table


def _compared(choice: dict[str, Any], said: Description) -> Table:
    """The policies that were compared by cross-validation."""
    table = Table("nested 5-fold cross-validation")
    first = choice["compared"][0]["title"]
    for title in ("total cost ± standard error", f"more than {first}"):
        table.add_column(title, justify="right")
    for number, item in enumerate(choice["compared"]):
        mark = " (chosen)" if item["title"] == choice["policy"] else ""
        more = f"{item['more']:+.2f} ± {item['more_error']:.2f}" if number else ""
        cost = f"{said.money(item['cost'])} ± {item['error']:.2f}"
        table.add_row(item["title"] + mark, cost, more)
    return table


def _cost_estimates(card: dict[str, Any], said: Description) -> Table:
    """What the policy costs next to its alternatives, cross-validated."""
    what = "covariates and false alarms" if card["false_negative_implied"] else "total cost"
    table = Table("cross-validated on the training rows")
    table.add_column(f"{what}, mean ± standard error", justify="right")
    for item in card["cost_estimates"]:
        table.add_row(item["name"], f"{said.money(item['cost'])} ± {item['error']:.2f}")
    return table
