"""Tables in Parquet files: the fit of rows that are read a piece at a time is that in memory."""

import numpy as np
import pytest
from sklearn.base import clone

from adacos import AdaCOSClassifier, Costs, InvalidInputError, ParquetTable, TargetRecallClassifier
from adacos.models import large_fits, streamed_fits
from adacos.tables import parquet_table
from tests.models.streamed import COSTS, frame, pd, with_classes, with_missing, written

pytest.importorskip("pyarrow")


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(large_fits, "LARGE_ROWS", 2000)
    monkeypatch.setattr(large_fits, "SAMPLE_ROWS", 1500)
    monkeypatch.setattr(streamed_fits, "SAMPLE_ROWS", 1500)
    monkeypatch.setattr(parquet_table, "PIECE_ROWS", 700)


def of_classes(n_classes, share=0.0):
    table, costs = (frame(3000), COSTS) if n_classes == 2 else with_classes(frame(3000), n_classes)
    return (with_missing(table, share) if share else table), costs


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_fit_in_pieces_is_the_fit_in_memory(large, tmp_path, n_classes, share):
    table, costs = of_classes(n_classes, share)
    stored = written(tmp_path, table)
    assert len(stored) == 3000
    streamed = AdaCOSClassifier(costs).fit(stored, "ill")
    held = AdaCOSClassifier(costs).fit(table.drop(columns="ill"), table["ill"])
    assert streamed.sets_ == held.sets_
    for name in ("names", "kinds", "categories"):
        assert getattr(streamed.encoder_, name) == getattr(held.encoder_, name)
    np.testing.assert_array_equal(streamed.encoder_.low, held.encoder_.low)
    np.testing.assert_allclose(streamed.model_.coefs, held.model_.coefs, atol=1e-8)
    np.testing.assert_allclose(streamed.model_.moments, held.model_.moments, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(
        streamed.model_.out_of_fold_log_odds, held.model_.out_of_fold_log_odds, atol=1e-8
    )
    np.testing.assert_array_equal(streamed.training_rows_.digests, held.training_rows_.digests)
    fresh = frame(500, seed=1).drop(columns="ill")
    np.testing.assert_array_equal(streamed.predict(fresh), held.predict(fresh))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_groups_budgets_and_unlabelled_rows_are_those_in_memory(large, tmp_path, n_classes):
    table, costs = of_classes(n_classes)
    rng = np.random.default_rng(0)
    given = {
        "sample_weight": rng.integers(1, 4, len(table)) / 2,
        "groups": rng.integers(0, 700, len(table)),
        "X_unlabeled": frame(400, seed=3).drop(columns="ill"),
    }
    policy = AdaCOSClassifier(costs, mean_budget=1.5, budget=4.0, cv=3)
    streamed = clone(policy).fit(written(tmp_path, table), "ill", **given)
    held = clone(policy).fit(table.drop(columns="ill"), table["ill"], **given)
    np.testing.assert_allclose(streamed.model_.coefs, held.model_.coefs, atol=1e-8)
    np.testing.assert_allclose(streamed.model_.moments, held.model_.moments, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(streamed.model_.weight, held.model_.weight)
    assert streamed.mean_spent_ == pytest.approx(held.mean_spent_)
    fresh = frame(500, seed=1).drop(columns="ill")
    np.testing.assert_array_equal(streamed.acquire(fresh).acquired, held.acquire(fresh).acquired)


def test_a_recall_at_the_stop_is_that_in_memory(large, tmp_path):
    table = frame(2500)
    costs = Costs(COSTS.covariates, false_positive=30)
    for more in ({"budget": 3.0}, {"lookahead": "coherent"}):
        recall = TargetRecallClassifier(AdaCOSClassifier(costs, cv=3, **more), target_recall=0.9)
        streamed = clone(recall).fit(written(tmp_path, table), "ill")
        held = clone(recall).fit(table.drop(columns="ill"), table["ill"])
        assert streamed.threshold_ == pytest.approx(held.threshold_, abs=1e-7)
        assert streamed.recall_estimate_ == pytest.approx(held.recall_estimate_)


def test_few_rows_in_files_are_read_into_memory(tmp_path):
    table = frame(300)
    stored = AdaCOSClassifier(COSTS, cv=3).fit(written(tmp_path, table), "ill")
    held = AdaCOSClassifier(COSTS, cv=3).fit(table.drop(columns="ill"), table["ill"])
    np.testing.assert_array_equal(stored.model_.coefs, held.model_.coefs)


def test_only_some_out_of_fold_log_odds_are_kept(large, tmp_path, monkeypatch):
    monkeypatch.setattr(streamed_fits, "KEPT_ROWS", 1000)
    table = frame(3000)
    policy = AdaCOSClassifier(COSTS).fit(written(tmp_path, table), "ill")
    model = policy.model_
    assert abs(len(model.y) - 1000) <= 2
    assert model.out_of_fold_log_odds.shape == (len(model.y), len(policy.sets_))
    assert np.isclose(model.weight[model.y == 1].sum(), table["ill"].sum())
    assert np.isclose(model.weight.sum(), 3000)


def test_a_recall_may_name_the_positive_class(large, tmp_path):
    stored = written(tmp_path, frame(2500))
    costs = Costs(COSTS.covariates, false_positive=30)
    number, named = (
        TargetRecallClassifier(AdaCOSClassifier(costs), target_recall=recall).fit(stored, "ill")
        for recall in (0.9, {1: 0.9})
    )
    assert named.threshold_ == number.threshold_
    with pytest.raises(InvalidInputError, match="the recall of class 1"):
        TargetRecallClassifier(AdaCOSClassifier(costs), target_recall={0: 0.9}).fit(stored, "ill")


def test_what_cannot_be_streamed_is_refused_by_name(large, tmp_path, monkeypatch):
    table = frame(2500)
    stored = written(tmp_path, table)
    with pytest.raises(InvalidInputError, match="above 0 for a table that is read a piece"):
        AdaCOSClassifier(COSTS).fit(stored, "ill", sample_weight=np.arange(2500))
    for costs in (Costs(COSTS.covariates, false_positive=30), COSTS):
        aim = {"target_recall": 0.9, "recall_confidence": 0.9}
        with pytest.raises(InvalidInputError, match="recall_confidence"):
            TargetRecallClassifier(AdaCOSClassifier(costs), **aim).fit(stored, "ill")
    with pytest.raises(InvalidInputError, match="must name columns"):
        AdaCOSClassifier(COSTS).fit(stored, "sick")
    with pytest.raises(InvalidInputError, match="a class for each row"):
        AdaCOSClassifier(COSTS).fit(stored.only(list("abcde")), [0, 1] * 1001)
    monkeypatch.setattr(streamed_fits, "MOST_PAIRS", 0.01)
    with pytest.raises(InvalidInputError, match=r"at most 0\.01 pairs of values missing"):
        AdaCOSClassifier(COSTS).fit(written(tmp_path, with_missing(table)), "ill")
    table.rename(columns={"a": "z"}).to_parquet(tmp_path / "part2.parquet")
    with pytest.raises(InvalidInputError, match="the same columns"):
        ParquetTable(tmp_path)
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InvalidInputError, match="must be Parquet"):
        ParquetTable(tmp_path / "t.csv")


def test_adacos_fit_learns_from_all_rows_of_a_folder(large, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from adacos.cli import training
    from adacos.cli.app import app

    monkeypatch.setattr(training, "LARGE_ROWS", 2000)
    monkeypatch.setattr(training, "KEPT_ROWS", 1000)
    monkeypatch.setattr(streamed_fits, "KEPT_ROWS", 1000)
    folder = tmp_path / "rows"
    folder.mkdir()
    table = frame(3000)
    written(folder, table)
    prices = ["--default-price", "1", "--false-positive", "30", "--false-negative", "60"]
    options = ["fit", str(folder), "--target", "ill", *prices, "--out", str(tmp_path / "m")]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    assert "3,000 of 3,000 rows read" in " ".join(done.output.split())
    out = tmp_path / "answers.parquet"
    scored = CliRunner().invoke(app, ["score", str(tmp_path / "m"), str(folder), str(out)])
    assert scored.exit_code == 0, scored.output
    assert len(pd.read_parquet(out)) == 3000
    table.loc[5, "a"] = np.nan
    written(folder, table)
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    assert "3,000 of 3,000 rows read" in " ".join(done.output.split())
