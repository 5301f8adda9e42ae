"""`audit`: measures of groups against counts by hand, and intervals that hold together."""

from __future__ import annotations

import itertools
import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from adacos import (
    AdaCOSClassifier,
    AuditDisplay,
    Costs,
    InvalidInputError,
    ProtocolClassifier,
    TargetRecallClassifier,
    audit,
    load_heart,
)
from adacos.exceptions import TableWarning, TrainingRowsWarning
from adacos.policies import auditing
from adacos.policies.audit_groups import NO_VALUE, bands_of
from adacos.policies.auditing import FEW_ROWS

# a is asked first; b only where a is 0.
PROTOCOL = "if a >= 1: 1\nelif b >= 1: 1\nelse: 0"
PRICES = {"a": 1.0, "b": 3.0}
COSTS = Costs(PRICES, false_positive=10, false_negative=40)
# P(a = 1), P(b = 1 | y) and P(y = 1) of three groups.
GROUPS = {
    "x": (0.3, (0.1, 0.8), 0.5),
    "y": (0.1, (0.05, 0.6), 0.4),
    "z": (0.5, (0.2, 0.9), 0.6),
}


def fitted() -> ProtocolClassifier:
    X = pd.DataFrame(list(itertools.product([0.0, 1.0], [0.0, 1.0])) * 3, columns=["a", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ProtocolClassifier(COSTS, protocol=PROTOCOL).fit(X, np.arange(len(X)) % 2)


def drawn(rng: np.random.Generator, sizes: dict[str, int]):  # type: ignore[no-untyped-def]
    parts = []
    for name, n in sizes.items():
        a, b, ill = GROUPS[name]
        y = (rng.random(n) < ill).astype(int)
        own = {"a": rng.random(n) < a, "b": rng.random(n) < np.array(b)[y], "y": y}
        parts.append(pd.DataFrame({**own, "g": name}).astype({"a": float, "b": float}))
    table = pd.concat(parts, ignore_index=True)
    return table[["a", "b"]], table["y"].to_numpy(), table["g"].to_numpy()


@pytest.fixture(scope="module")
def policy() -> ProtocolClassifier:
    return fitted()


def quiet(*arguments, **options):  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingRowsWarning)
        warnings.simplefilter("ignore", TableWarning)
        return audit(*arguments, **options)


SMALL = pd.DataFrame(
    # a, b, y, sex, site
    [
        (1, 0, 1, "F", "n"), (0, 1, 1, "F", "n"), (0, 0, 1, "F", "s"), (0, 0, 0, "F", "s"),
        (1, 1, 0, "F", "n"), (0, 0, 0, "M", "n"), (1, 0, 1, "M", "s"), (0, 1, 0, "M", "s"),
    ],
    columns=["a", "b", "y", "sex", "site"],
)  # fmt: skip
TABLE, CLASSES = SMALL[["a", "b"]].astype(float), SMALL["y"].to_numpy()


def test_measures_are_those_counted_by_hand(policy: ProtocolClassifier) -> None:
    found = quiet(policy, TABLE, CLASSES, {"sex": SMALL["sex"]})
    own = found["sex"].by_group
    # F: paid 1, 4, 4, 4, 1; answers 1, 1, 0, 0, 1 to classes 1, 1, 1, 0, 0.
    # M: paid 4, 1, 4; answers 0, 1, 1 to classes 0, 1, 0.
    assert own["covariates"] == pytest.approx({"F": 14 / 5, "M": 9 / 3})
    assert own["errors"] == pytest.approx({"F": (40 + 10) / 5, "M": 10 / 3})
    assert own["total"] == pytest.approx({"F": 64 / 5, "M": 19 / 3})
    assert own["acquired"] == pytest.approx({"F": 8 / 5, "M": 5 / 3})
    assert own["recall"] == pytest.approx({"F": 2 / 3, "M": 1.0})
    assert own["specificity"] == pytest.approx({"F": 1 / 2, "M": 1 / 2})
    assert own["positive"] == pytest.approx({"F": 3 / 5, "M": 2 / 3})
    assert own["stop_1"] == pytest.approx({"F": 2 / 5, "M": 1 / 3})
    assert own["stop_2"] == pytest.approx({"F": 3 / 5, "M": 2 / 3})
    whole = found.overall
    assert whole["total"] == pytest.approx(83 / 8)
    assert whole["recall"] == pytest.approx(3 / 4)
    between, overall = found["sex"].difference(), found["sex"].difference("to_overall")
    assert between["recall"] == pytest.approx(1 / 3)
    assert overall["recall"] == pytest.approx(1 / 4)
    assert found["sex"].ratio()["recall"] == pytest.approx(2 / 3)
    assert found["sex"].ratio("to_overall")["total"] == pytest.approx((19 / 3) / (83 / 8))
    assert found["sex"].group_min()["positive"] == pytest.approx(3 / 5)
    assert found["sex"].group_max()["positive"] == pytest.approx(2 / 3)


def test_differences_are_those_of_the_values(policy: ProtocolClassifier) -> None:
    found = quiet(policy, TABLE, CLASSES, SMALL[["sex", "site"]])
    for grouping in found.groupings:
        for group in grouping.groups:
            for name, one in group.measures.items():
                more = one.level.estimate - found.overall[name]
                assert one.difference is not None
                assert one.difference.estimate == pytest.approx(more)
                assert one.level.low <= one.level.estimate <= one.level.high
                assert one.difference.low <= more <= one.difference.high


def test_shares_have_exact_intervals_that_share_the_confidence(policy: ProtocolClassifier) -> None:
    found = quiet(policy, TABLE, CLASSES, {"sex": SMALL["sex"]}, confidence=0.9)
    # 9 measures and a stop that no row makes, of two groups, twice, and of all rows.
    assert found.intervals == 10 * (2 * 2 + 1)
    tail = 0.1 / found.intervals / 2
    recall = found["sex"].groups[0].measures["recall"]
    assert recall.rows == 3
    assert recall.level.low == pytest.approx(beta.ppf(tail, 2, 2))
    assert recall.level.high == pytest.approx(beta.ppf(1 - tail, 3, 1))


def test_columns_cross_where_asked(policy: ProtocolClassifier) -> None:
    found = quiet(policy, TABLE, CLASSES, SMALL[["sex", "site"]], cross=True)
    (only,) = found.groupings
    assert only.name == "sex × site"
    assert [(g.name, g.rows) for g in only.groups] == [
        ("F × n", 3), ("F × s", 2), ("M × n", 1), ("M × s", 2),
    ]  # fmt: skip
    # No positive row: no recall, whatever the interval is.
    alone = only.groups[2].measures["recall"]
    assert alone.rows == 0
    assert math.isnan(alone.level.estimate)
    assert found.to_dict()["groupings"][0]["by_group"]["recall"]["M × n"] is None
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_single_group_does_not_differ_from_all_rows(policy: ProtocolClassifier) -> None:
    found = quiet(policy, TABLE, CLASSES, {"all": ["one"] * 8})
    assert not any(one.differs for one in found["all"].groups[0].measures.values())
    assert found["all"].difference()["total"] == 0


def truth_of(name: str) -> dict[str, float]:
    """The measures of a group by enumeration of a, b and y."""
    p_a, p_b, ill = GROUPS[name]
    total: dict[str, float] = dict.fromkeys(("covariates", "errors", "acquired", "positive"), 0.0)
    found, right = 0.0, 0.0
    for a, b, y in itertools.product((0, 1), repeat=3):
        p = (p_a if a else 1 - p_a) * (p_b[y] if b else 1 - p_b[y]) * (ill if y else 1 - ill)
        label = int(a or b)
        total["covariates"] += p * (1 if a else 4)
        total["errors"] += p * (10 if label > y else 40 if label < y else 0)
        total["acquired"] += p * (1 if a else 2)
        total["positive"] += p * label
        found += p * (label and y)
        right += p * (not label and not y)
    total["total"] = total["covariates"] + total["errors"]
    return total | {"recall": found / ill, "specificity": right / (1 - ill), "stop_1": p_a}


def coverage(policy, sizes: dict[str, int], draws: int, copies: int = 1) -> float:  # type: ignore[no-untyped-def]
    """How often all intervals of the values and differences hold at once."""
    rng, held = np.random.default_rng(11), 0
    truth = {name: truth_of(name) for name in sizes}
    for _ in range(draws):
        X, y, g = drawn(rng, sizes)
        who = None
        if copies > 1:
            each = np.repeat(np.arange(len(y)), copies)
            X, y, g, who = X.iloc[each], y[each], g[each], each
        found = quiet(policy, X, y, {"g": g}, groups=who)
        every = []
        groups = {group.name: group.measures for group in found["g"].groups}
        for measure in truth["x"]:
            rows = {name: own[measure].rows for name, own in groups.items()}
            all_rows = sum(rows.values())
            whole = sum(rows[k] * truth[k][measure] for k in rows) / all_rows
            for name, own in groups.items():
                level, more = own[measure].level, own[measure].difference
                true = truth[name][measure]
                every.append(level.low - 1e-9 <= true <= level.high + 1e-9)
                every.append(more.low - 1e-9 <= true - whole <= more.high + 1e-9)
        held += all(every)
    return held / draws


@pytest.mark.parametrize(
    ("sizes", "copies"),
    [({"x": 60, "y": 60, "z": 60}, 1), ({"x": 150, "y": 40, "z": 15}, 1),
     ({"x": 40, "y": 30, "z": 30}, 2)],
)  # fmt: skip
def test_all_intervals_hold_together(policy, sizes: dict[str, int], copies: int) -> None:  # type: ignore[no-untyped-def]
    draws = 200
    # Two standard errors of 200 draws at 95%.
    assert coverage(policy, sizes, draws, copies) >= 0.95 - 2 * math.sqrt(0.95 * 0.05 / draws)


def test_intervals_that_share_nothing_do_not_hold_together(policy, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """The simulation can fail: each interval at 95% for itself."""
    alone = auditing._of_group

    def unshared(name, measures, inside, groups, _):  # type: ignore[no-untyped-def]
        return alone(name, measures, inside, groups, 0.95)

    monkeypatch.setattr(auditing, "_of_group", unshared)
    assert coverage(policy, {"x": 60, "y": 60, "z": 60}, 50) < 0.85


def test_copies_that_nobody_named_would_break_the_promise(policy: ProtocolClassifier) -> None:
    """Twenty copies of each row are no twenty rows."""
    X, y, g = drawn(np.random.default_rng(0), {"x": 30, "y": 30, "z": 30})
    each = np.repeat(np.arange(len(y)), 20)
    wide = quiet(policy, X.iloc[each], y[each], {"g": g[each]}, groups=each)
    narrow = quiet(policy, X.iloc[each], y[each], {"g": g[each]})
    for name in ("recall", "total", "acquired"):
        widths = [
            one["g"].groups[0].measures[name].level.high
            - one["g"].groups[0].measures[name].level.low
            for one in (wide, narrow)
        ]
        assert widths[0] > 2 * widths[1]


def test_one_patient_in_two_groups_widens_the_difference(policy: ProtocolClassifier) -> None:
    X, y, g = drawn(np.random.default_rng(0), {"x": 100, "y": 100})
    apart = quiet(policy, X, y, {"g": g}, groups=np.arange(200))
    across = quiet(policy, X, y, {"g": g}, groups=np.arange(200) % 100)
    for name in ("recall", "total"):
        own, other = (one["g"].groups[0].measures[name].difference for one in (apart, across))
        assert other.high - other.low > own.high - own.low


def test_certificates_say_what_the_rows_of_a_group_show(policy: ProtocolClassifier) -> None:
    X, y, g = drawn(np.random.default_rng(4), {"x": 400, "z": 20, "y": 300})
    found = quiet(policy, X, y, {"g": g}, recall=0.75)
    proved = {group.name: group.certificates[0] for group in found["g"].groups}
    assert found.certificate_confidence == 0.95
    own = proved["x"]
    # One-sided, for three groups together.
    assert own.bound == pytest.approx(beta.ppf(0.05 / 3, own.rows - own.misses, own.misses + 1))
    assert own.verdict == "shown"
    assert own.bound >= 0.75
    least = math.ceil(math.log(0.05 / 3) / math.log(0.75))
    assert own.needed == least
    assert proved["z"].verdict == ("too few" if proved["z"].rows < least else proved["z"].verdict)
    assert "cannot be shown with" in str(proved["z"])
    # P(found) = 0.1 + 0.9 * 0.6 = 0.64.
    assert proved["y"].verdict in ("not shown", "missed")
    assert quiet(policy, X, y, {"g": g}).certificate_confidence is None
    assert quiet(policy, X, y, {"g": g}, recall=0.9)["g"].groups[1].certificates[0].verdict == (
        "missed"
    )


def test_the_promise_is_that_of_the_certificate() -> None:
    X, y, prices, *_ = load_heart()
    inner = AdaCOSClassifier(Costs(prices, false_positive=100))
    own = TargetRecallClassifier(
        inner, target_recall=0.7, recall_confidence=0.8, on_uncertifiable="largest"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own.fit(X[:220], y[:220])
    found = quiet(own, X[220:], y[220:], "sex")
    (certificate,) = found["sex"].groups[0].certificates
    assert certificate.promised == own.certificate_.bound
    assert found.certificate_confidence == 0.8
    # The cost of a missed case is not stated: it is not charged.
    assert set(np.unique(found["sex"].whole["errors"].level.estimate)) <= {found.overall["errors"]}
    assert found.overall["errors"] == pytest.approx(
        100 * np.mean((own.acquire(X[220:]).label == 1) & (y[220:] == 0))
    )


def test_three_classes_have_a_recall_each() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = pd.DataFrame({"p": y + rng.normal(0, 0.7, 300), "q": rng.normal(size=300)})
    matrix = 20 * (1 - np.eye(3))
    own = AdaCOSClassifier(Costs({"p": 1, "q": 1}, misclassification=matrix)).fit(X[:150], y[:150])
    g = np.where(rng.random(150) < 0.5, "u", "v")
    found = quiet(own, X[150:], y[150:], {"g": g}, recall={2: 0.5})
    label = own.acquire(X[150:]).label
    for k in range(3):
        for name in "uv":
            rows = (g == name) & (y[150:] == k)
            assert found["g"].by_group[f"recall {k}"][name] == pytest.approx(
                np.mean(label[rows] == k)
            )
    shares = [found.overall[f"answered {k}"] for k in range(3)]
    assert sum(shares) == pytest.approx(1)
    assert {"recall", "specificity", "positive"}.isdisjoint(found.overall)
    assert [one.label for one in found["g"].groups[0].certificates] == [2]


def test_waiting_is_part_of_the_burden() -> None:
    X, y, prices, *_ = load_heart()
    costs = Costs(prices, false_positive=100, false_negative=300, round_cost=5)
    own = AdaCOSClassifier(costs).fit(X[:150], y[:150])
    found = quiet(own, X[150:], y[150:], "sex").overall
    assert found["waits"] > 0
    assert found["paid"] + found["waits"] == pytest.approx(found["covariates"])


def test_rows_that_it_was_trained_on_are_reported() -> None:
    X, y, prices, *_ = load_heart()
    own = AdaCOSClassifier(Costs(prices, false_positive=1, false_negative=3)).fit(X, y)
    with pytest.warns(TrainingRowsWarning, match="so the audit is too optimistic"):
        assert audit(own, X, y, "sex").training_rows == len(y)


def test_small_groups_and_many_numbers_are_reported(policy: ProtocolClassifier) -> None:
    X, y, _ = drawn(np.random.default_rng(0), {"x": 100})
    few = np.where(np.arange(100) < FEW_ROWS - 1, "few", "many")
    with pytest.warns(TableWarning, match=r"fewer than 30 rows: g few \(29\)\."):
        audit(policy, X, y, {"g": few})
    with pytest.warns(TableWarning, match="age has 20 values.*Make bands"):
        audit(policy, X, y, {"age": np.arange(100.0) // 5})


def test_groups_are_taken_in_any_form(policy: ProtocolClassifier) -> None:
    polars = pytest.importorskip("polars")
    frames = (SMALL[["sex"]], polars.from_pandas(SMALL[["sex"]]), SMALL["sex"])
    every = [quiet(policy, TABLE, CLASSES, by) for by in frames]
    assert len({str(one) for one in every}) == 1
    plain = quiet(policy, TABLE, CLASSES, SMALL["sex"].to_numpy())
    assert plain.groupings[0].name == "group"
    column = quiet(policy, TABLE, CLASSES, "a")["a"]
    assert [group.name for group in column.groups] == ["0", "1"]
    mixed = quiet(policy, TABLE, CLASSES, {"g": ["x", None, "x", "", "y", np.nan, "y", "y"]})
    assert [(g.name, g.rows) for g in mixed["g"].groups] == [("x", 2), ("y", 3), (NO_VALUE, 3)]


def test_bands_are_cut_and_listed_in_order(policy: ProtocolClassifier) -> None:
    ages = np.array([39.9, 40, 59, 60, 120, np.nan, 5, 7])
    own = bands_of(ages, [40, 60])
    young, middle, old = "below 40", "40 to below 60", "60 or more"
    assert own.tolist() == [young, middle, middle, old, old, "", young, young]
    found = quiet(policy, TABLE, CLASSES, {"age": own})
    assert [group.name for group in found["age"].groups] == [young, middle, old, NO_VALUE]


@pytest.mark.parametrize(
    ("by", "options", "message"),
    [
        ("sex", {}, "must name columns of X"),
        ("aa", {}, "Did you mean a"),
        ({"sex": ["F"]}, {}, r"by\['sex'\]: must have a value for each of the 8 rows"),
        ({}, {}, "must have a column"),
        ({"g": [[1, 2]] * 8}, {}, "must hold one value for each row"),
        ("a", {"confidence": 95}, r"confidence.*Did you mean 0.95"),
        ("a", {"recall": 1.5}, "recall: must be a finite number"),
        ("a", {"groups": [1, 2]}, "needs one group for each"),
    ],
)
def test_bad_input_is_refused(policy, by, options, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInputError, match=message):
        quiet(policy, TABLE, CLASSES, by, **options)


def test_refusals_name_what_is_wrong(policy: ProtocolClassifier) -> None:
    with pytest.raises(InvalidInputError, match="must be a fitted policy"):
        audit(COSTS, TABLE, CLASSES, "a")
    with pytest.raises(InvalidInputError, match="must hold one of the classes"):
        audit(policy, TABLE, CLASSES + 5, "a")
    found = quiet(policy, TABLE, CLASSES, "a")
    with pytest.raises(InvalidInputError, match=r"must be asked for a grouping it has.*They are a"):
        found["b"]
    with pytest.raises(InvalidInputError, match="between_groups"):
        found["a"].difference("between")
    X, y, _ = drawn(np.random.default_rng(0), {"x": 200})
    with pytest.raises(InvalidInputError, match="at most 100 groups"):
        audit(policy, X, y, {"age": np.arange(200)})


def test_text_html_and_figure_show_the_groups(policy: ProtocolClassifier) -> None:
    X, y, g = drawn(np.random.default_rng(1), {"x": 300, "y": 300})
    found = quiet(policy, X, y, {"g": g}, recall=0.8)
    text, html = str(found), found._repr_html_()
    for words in ("g x: covariate costs", "recall 80%", "Bonferroni", "all rows"):
        assert words in text
        assert words in html
    pytest.importorskip("matplotlib")
    display = AuditDisplay(found).plot()
    labels = [axis.get_xlabel() for axis in display.axes_ if axis.get_visible()]
    assert labels == ["total cost", "covariates acquired", "recall, %", "specificity, %",
                      "answered positive, %"]  # fmt: skip
    # Points are drawn where the numbers are.
    (points,) = {
        tuple(line.get_xdata())
        for line in display.axes_[0].get_lines()
        if line.get_marker() == "o" and line.get_ydata() == [1]
    }
    assert points[0] == pytest.approx(found["g"].by_group["total"]["x"])
    with pytest.raises(InvalidInputError, match="must be 5 or more"):
        AuditDisplay(found).plot(axes=display.axes_[:2])
