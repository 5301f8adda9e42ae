"""What a model file states of costs and recalls, and what a policy around another one has of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    Costs,
    PlanningClassifier,
    TargetRecallClassifier,
    describe,
    load,
    save,
)
from adacos.exceptions import ModelFileError
from adacos.model_fields import STATEMENT_SCHEME, statements
from adacos.tables.description import Description
from tests.attack.mutants import COSTS, PRICES, QUICK
from tests.model_files import rewritten
from tests.policies.tables import mixed

WITH_PANEL = Costs(
    PRICES, false_positive=30, false_negative=70, panels={"visit": (0.5, ["town", "dose"])}
)
SAVED = Path(__file__).with_name("saved")
POLICIES: dict[str, Callable[[], Any]] = {
    "Planning": lambda: PlanningClassifier(COSTS, cv=2),
    "Auto": lambda: AutoPolicyClassifier(COSTS, **QUICK),
    "a mean budget": lambda: AdaCOSClassifier(COSTS, mean_budget=2.0, **QUICK),
    "a recall": lambda: AdaCOSClassifier(
        Costs(PRICES, false_positive=30), target_recall=0.8, **QUICK
    ),
    "a recall of the answers": lambda: TargetRecallClassifier(
        PlanningClassifier(WITH_PANEL, cv=2), target_recall=0.8
    ),
    "a recall by which rows stop": lambda: TargetRecallClassifier(
        AdaCOSClassifier(Costs(PRICES, false_positive=30), **QUICK), target_recall=0.8
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: Any) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    rows, paths = mixed(60, 0), {name: folder / f"{name}.adacos" for name in POLICIES}
    for name, make in POLICIES.items():
        policy = make().fit(*rows)
        describe(policy, Description(title="Town", intended_use="Tests"))
        save(policy, paths[name])
    return paths


def with_state(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, bytes]], None]:
    """A change of what the file holds of the policy."""

    def apply(members: dict[str, bytes]) -> None:
        content = json.loads(members["model.json"])
        change(content["state"])
        members["model.json"] = json.dumps(content).encode()

    return apply


def without_digests(change: Callable[[dict[str, bytes]], None]) -> Any:
    """The change in a file of an earlier version, which said nothing of statements."""

    def apply(members: dict[str, bytes]) -> None:
        change(members)
        reported = json.loads(members["manifest.json"])
        del reported["statements"]
        members["manifest.json"] = json.dumps(reported).encode()

    return apply


def with_first_cost(state: dict[str, Any]) -> None:
    state["compared_"]["tuple"][0]["state"]["cost"] = -5.0


STATED: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    f"a cost of {cost}": ("Planning", lambda s, cost=cost: s.update(cross_validated_cost_=cost))
    for cost in (0, -5, 1e9, None, {"float": "nan"})
} | {
    "the cost of a candidate": ("Auto", with_first_cost),
    "what was spent": ("a mean budget", lambda s: s.update(mean_spent_=0.1)),
    "a recall": ("a recall", lambda s: s.update(recall_estimate_=0.99)),
    "a recall of the answers": (
        "a recall of the answers",
        lambda s: s.update(recall_estimate_=0.99),
    ),
    "a recall inside": (
        "a recall by which rows stop",
        lambda s: s["policy_"]["state"].update(recall_estimate_=0.99),
    ),
    "what is asked for": ("a recall", lambda s: s.update(target_recall=0.99)),
    "the name of a panel": (
        "a recall of the answers",
        lambda s: s["policy"]["state"]["costs"]["state"]["panels"]["dict"][0].__setitem__(0, "x"),
    ),
    "words": ("Planning", lambda s: s["description_"]["state"].update(intended_use="Anything")),
}


@pytest.mark.parametrize("case", STATED)
def test_a_changed_statement_is_refused(case: str, files: dict[str, Path], tmp_path: Path) -> None:
    """Each decides as before, with right checksums, and its card would say something else."""
    name, change = STATED[case]
    load(files[name])
    path = rewritten(files[name], tmp_path / "m.adacos", with_state(change), honest=True)
    with pytest.raises(ModelFileError, match=r"m\.adacos was altered .* states other costs"):
        load(path)


def test_files_of_versions_that_state_nothing_load(files: dict[str, Path], tmp_path: Path) -> None:
    change = without_digests(with_state(lambda s: s.update(cross_validated_cost_=7.0)))
    model = load(rewritten(files["Planning"], tmp_path / "m.adacos", change, honest=True))
    assert model.expected_cost_ == 7.0
    save(model, tmp_path / "again.adacos")
    assert load(tmp_path / "again.adacos").expected_cost_ == 7.0


def test_statements_made_in_another_way_are_not_compared(
    files: dict[str, Path], tmp_path: Path
) -> None:
    def of_tomorrow(members: dict[str, bytes]) -> None:
        reported = json.loads(members["manifest.json"])
        reported["statements"] = {"scheme": STATEMENT_SCHEME + 1, "digest": "0" * 16}
        members["manifest.json"] = json.dumps(reported).encode()

    load(rewritten(files["Planning"], tmp_path / "m.adacos", of_tomorrow, honest=True))


def test_statements_of_saved_models_change_with_the_number_of_the_way_only() -> None:
    """If one fails, raise STATEMENT_SCHEME and write the new ones: older files still load."""
    pinned = json.loads((SAVED / "statements.json").read_text(encoding="utf-8"))
    digests = {path.stem: statements(load(path)) for path in sorted(SAVED.glob("*.adacos"))}
    assert {"scheme": STATEMENT_SCHEME, "digests": digests} == pinned


def other_town(state: dict[str, Any]) -> None:
    """Another name of a category, which only rows that have it notice."""
    levels = state["encoder_"]["state"]["categories"]["tuple"]
    towns = next(own["tuple"] for own in levels if "south" in own["tuple"])
    towns[towns.index("south")] = "southx"


def other_kind(state: dict[str, Any]) -> None:
    """Another kind of column, by which a value is flagged and not decided."""
    state["encoder_"]["state"]["kinds"]["tuple"][0] = "binary"


@pytest.mark.parametrize("name", ["Auto", "a recall of the answers", "a recall by which rows stop"])
@pytest.mark.parametrize("change", [other_town, other_kind])
def test_the_encoder_around_a_policy_is_its_own(
    name: str, change: Any, files: dict[str, Path], tmp_path: Path
) -> None:
    """Rows would be read by the one, and decided by what was learned with the other."""
    change = without_digests(with_state(change))
    path = rewritten(files[name], tmp_path / "m.adacos", change, honest=True)
    with pytest.raises(ModelFileError, match="encoder_ is not that of the policy inside"):
        load(path)
