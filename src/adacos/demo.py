"""`make demo`: the main job on bundled data — fit, compare, and ask about one patient step by step.

Pima diabetes: a false alarm costs 100 and a missed case 1,000. Every patient is held out once, in
the five folds of the paper; zeros that stand for values that were not recorded are missing.
"""

from __future__ import annotations

import warnings

import numpy as np
from rich.console import Console
from rich.table import Table

from adacos.bench.pairing import geometric_ratio_by_folds
from adacos.consultation import Consultation
from adacos.consultation.steps import Acquire
from adacos.costs import Costs
from adacos.datasets import Dataset, load_pima, paper_folds
from adacos.exceptions import TableWarning
from adacos.kernels.intervals import ConfidenceInterval
from adacos.metrics import recall, total_cost
from adacos.policies import AdaCOSClassifier, COSClassifier, FullModelClassifier
from adacos.tables.columns import ColumnTable

FALSE_POSITIVE, FALSE_NEGATIVE = 100, 1000
NAMES = ("AdaCOS", "COS", "Full Model")
# What it costs to ask nothing and call everyone positive, the cheaper of the two answers here.
NOTHING = "everyone positive"


def main() -> None:
    """Print the comparison on held-out rows and one consultation."""
    console = Console(width=100)
    data = load_pima(zeros="missing", as_frame=False)
    patients = ColumnTable(dict(zip(data.names, np.asarray(data.X).T, strict=True)))
    folds = paper_folds("pima")
    fitted = [fit(data, patients, folds != number) for number in range(5)]
    compare(console, data, patients, fitted)
    adacos = fitted[0]
    console.print(
        "\nSets of the sequence, and the cross-validated cost of always stopping there\n(the order "
        "was found with the same rows, so the lowest of these is a little optimistic):"
    )
    for members, cost in zip(adacos.sets_, adacos.expected_cost_by_set_, strict=True):
        listed = ", ".join(members) or "(nothing acquired)"
        console.print(f"  {cost:7.2f}  {listed}", highlight=False)
    walk(console, adacos, patients, _worth_watching(adacos, patients, folds == 0))


def costs_of(data: Dataset) -> Costs:
    """The covariate costs of the paper, and what errors cost."""
    return Costs(data.prices, false_positive=FALSE_POSITIVE, false_negative=FALSE_NEGATIVE)


def fit(data: Dataset, patients: ColumnTable, rows: np.ndarray) -> AdaCOSClassifier:
    """AdaCOS, learned from some of the patients."""
    with warnings.catch_warnings():
        # Every fold would warn about the missing values of this table, which the guide describes.
        warnings.simplefilter("ignore", TableWarning)
        return AdaCOSClassifier(costs_of(data)).fit(patients[rows], data.y[rows])


def compare(
    console: Console, data: Dataset, patients: ColumnTable, fitted: list[AdaCOSClassifier]
) -> None:
    """Print costs, recall and specificity of each policy, means over the five folds."""
    costs, folds = costs_of(data), paper_folds("pima")
    numbers = np.zeros((len(NAMES), len(fitted), 5))
    for number, adacos in enumerate(fitted):
        held_out = folds == number
        relatives = (COSClassifier(costs), FullModelClassifier(costs))
        for k, policy in enumerate([adacos, *(own.from_model(adacos) for own in relatives)]):
            result, true = policy.acquire(patients[held_out]), data.y[held_out]
            numbers[k, number] = (
                total_cost(result, true, costs),
                result.cost.mean(),
                result.acquired.sum(axis=1).mean(),
                recall(result, true),
                np.mean(result.label[true == 0] == 0),
            )
    false_alarms = [FALSE_POSITIVE * np.mean(data.y[folds == k] == 0) for k in range(len(fitted))]
    nothing = [float(np.mean(false_alarms)), 0.0, 0.0, 1.0, 0.0]
    table = Table(
        title=f"Pima diabetes, {len(data.y)} patients, each held out once; mean per patient "
        f"(false positive {FALSE_POSITIVE:,}, false negative {FALSE_NEGATIVE:,})",
        title_justify="left",
    )
    table.add_column("policy")
    for title in ("total cost", "covariate cost", "covariates acquired", "recall", "specificity"):
        table.add_column(title, justify="right")
    every = zip((*NAMES, NOTHING), [*numbers.mean(axis=1).tolist(), nothing], strict=True)
    for name, values in every:
        table.add_row(name, *(f"{value:.2f}" for value in values))
    console.print(table)
    log_cost = np.log(numbers[:, :, 0])
    console.print("Total cost saved, with 95% intervals over folds:")
    for first, second in ((0, 2), (1, 2), (0, 1)):
        ratio = geometric_ratio_by_folds(log_cost[first] - log_cost[second])
        console.print(f"  {NAMES[first]} compared with {NAMES[second]}: {_saved(ratio)}")


def _saved(ratio: ConfidenceInterval) -> str:
    saved = (f"{100 * (1 - share):.0f}%" for share in (ratio.estimate, ratio.high, ratio.low))
    return "{} ({} to {})".format(*saved)


def _worth_watching(policy: AdaCOSClassifier, patients: ColumnTable, held_out: np.ndarray) -> int:
    """The first held-out patient without missing values for whom three covariates are acquired."""
    table = np.column_stack([patients.column(name) for name in patients.columns])
    acquired = policy.acquire(patients).acquired.sum(axis=1)
    return int(np.argmax(held_out & ~np.isnan(table).any(axis=1) & (acquired >= 3)))


def walk(console: Console, policy: AdaCOSClassifier, patients: ColumnTable, row: int) -> None:
    """Answer the policy's questions for one patient, showing its reasons."""
    console.rule(f"Patient {row}, one question at a time")
    consultation = Consultation(policy)
    step = consultation.next()
    while isinstance(step, Acquire):
        values = {name: float(patients.column(name)[row]) for name in step.covariates}
        console.print(f"[bold]{step}[/bold]")
        console.print(str(step.explanation), highlight=False)
        answer = ", ".join(f"{name} = {value:g}" for name, value in values.items())
        console.print(f"[green]-> {answer}[/green]\n", highlight=False)
        step = consultation.observe(values).next()
    console.print(f"[bold]{step}[/bold]")
    console.print(str(step.explanation), highlight=False)


if __name__ == "__main__":
    main()
