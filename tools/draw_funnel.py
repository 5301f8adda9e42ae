"""Draw the picture of the README and of the first page: who is asked what, and who stops where.

python tools/draw_funnel.py
"""

from __future__ import annotations

from pathlib import Path

from adacos import AdaCOSClassifier, Costs, describe, load_pima, paper_folds
from adacos.report import figures, numbers
from adacos.report.held import hold

ROOT = Path(__file__).resolve().parents[1]
WORDS = ROOT / "src" / "adacos" / "datasets" / "data" / "pima.words.toml"


def main() -> None:
    """Fit on four of the paper's five folds and draw the fifth."""
    X, y, prices, *_ = load_pima(zeros="missing")
    new = paper_folds("pima") == 0
    costs = Costs(prices, false_positive=100, false_negative=1000)
    policy = AdaCOSClassifier(costs).fit(X[~new], y[~new])
    describe(policy, WORDS)
    held = hold(policy, X[new], y[new])
    labels = {name: held.said.label(name) for name in policy.encoder_.names}
    answers = [held.said.class_name(label) for label in policy.classes_.tolist()]
    picture = figures.policy_flow(numbers.flow(held.result, policy.classes_), labels, answers)
    for name, drawn in (("funnel.svg", picture.svg), ("funnel-narrow.svg", picture.narrow)):
        (ROOT / "docs" / "images" / name).write_bytes(drawn)


if __name__ == "__main__":
    main()
