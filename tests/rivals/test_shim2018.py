"""Shim2018: its encoder and returns against hand-made cases, its policy against every promise."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from adacos import AdaCOSClassifier, Costs, load, save
from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.rivals import Shim2018Classifier
from tests.policy_checks import same
from tests.rivals.problems import MIXED_COSTS, mixed_table, total_cost

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from adacos.rivals import shim2018_learning as learning  # noqa: E402
from adacos.rivals import shim2018_network as network  # noqa: E402
from adacos.typing import Floats  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def quick(costs: Costs | None = None, **settings: Any) -> Shim2018Classifier:
    """A small training that is long enough to do something sensible."""
    return Shim2018Classifier(
        costs,
        **{
            "n_updates": 30,
            "n_pretraining": 40,
            "n_environments": 32,
            "learning_rate": 3e-3,
            "device": "cpu",
            **settings,
        },
    )


def random_stack(n_models: int = 2, n_rows: int = 6, p: int = 5, seed: int = 0) -> Any:
    """Weights of a stack with one column per covariate, and rows for it, in double precision."""
    rng = np.random.default_rng(seed)
    weights = {
        name: torch.tensor(array, dtype=torch.float64)
        for name, array in network.initial_weights(rng, n_models, p, p, -0.5).items()
    }
    values = torch.tensor(rng.normal(size=(n_models, n_rows, p)))
    acquired = torch.tensor(rng.random((n_models, n_rows, p)) < 0.5)
    return weights, values, acquired, torch.arange(p)


def test_encoder_does_not_depend_on_the_order_of_the_set() -> None:
    weights, values, acquired, source = random_stack()
    embedded = network.embed(weights, values, source)
    code = network.encode(weights, embedded, acquired)
    shuffled = torch.tensor([3, 1, 4, 0, 2])
    again = network.encode(weights, embedded[:, :, shuffled], acquired[:, :, shuffled])
    torch.testing.assert_close(again, code, rtol=1e-12, atol=1e-14)
    assert code.std() > 0.01


def test_encoder_reads_acquired_elements_only() -> None:
    weights, values, acquired, source = random_stack()
    code = network.encode(weights, network.embed(weights, values, source), acquired)
    other = torch.where(acquired, values, values + 100.0)
    assert torch.equal(
        network.encode(weights, network.embed(weights, other, source), acquired), code
    )
    changed = torch.where(acquired, values + 1.0, values)
    moved = network.encode(weights, network.embed(weights, changed, source), acquired) != code
    assert torch.equal(moved.any(dim=-1), acquired.any(dim=-1))


def test_empty_set_is_zero() -> None:
    weights, values, acquired, source = random_stack()
    embedded = network.embed(weights, values, source)
    acquired[0, 0] = False
    code = network.encode(weights, embedded, acquired)
    assert not code[0, 0].any()
    assert torch.isfinite(code).all()


def test_one_hot_index_and_columns_of_a_categorical_covariate() -> None:
    """The first layer is a linear map of (own columns, one-hot index) of each covariate."""
    rng = np.random.default_rng(1)
    source = np.array([0, 1, 1, 2])
    weights = {
        name: torch.tensor(array, dtype=torch.float64)
        for name, array in network.initial_weights(rng, 1, 4, 3, 0.0).items()
    }
    values = torch.tensor(rng.normal(size=(1, 7, 4)))
    by_hand = torch.zeros(1, 7, 3, network.EMBEDDING, dtype=torch.float64)
    for k in range(3):
        own = values[0] * torch.tensor(source == k)
        first = (
            own @ weights["value"][0] + torch.eye(3, dtype=torch.float64)[k] @ weights["index"][0]
        )
        hidden = torch.relu(first) @ weights["element"][0] + weights["element_bias"][0]
        by_hand[0, :, k] = (
            torch.relu(hidden) @ weights["embedding"][0] + weights["embedding_bias"][0]
        )
    torch.testing.assert_close(network.embed(weights, values, torch.tensor(source)), by_hand)


def test_dueling_values_and_masked_actions() -> None:
    weights, values, acquired, source = random_stack()
    available = torch.tensor(np.random.default_rng(2).random(acquired.shape) < 0.7)
    acquired &= available
    allowed = network.allowed_actions(available, acquired)
    assert allowed[..., -1].all()
    _, q = network.assess(weights, network.embed(weights, values, source), acquired, allowed)
    assert torch.equal(torch.isfinite(q), allowed)
    # The advantages of the allowed actions sum to zero, so Q averages to the value of the state.
    _, everything = network.assess(
        weights, network.embed(weights, values, source), acquired, torch.ones_like(allowed)
    )
    shift = torch.where(allowed, everything - q, torch.nan)
    torch.testing.assert_close(
        shift.nan_to_num(-torch.inf).amax(-1), shift.nan_to_num(torch.inf).amin(-1)
    )
    _, order = network.walk(weights, network.TensorRows(values, available, source))
    for model, row, step in np.argwhere(order.numpy() >= 0):
        assert available[model, row, order[model, row, step]]


def test_exploration_takes_allowed_actions_only() -> None:
    trainer = small_trainer()
    allowed = torch.tensor(np.random.default_rng(3).random((1, 400, 4)) < 0.4)
    allowed[..., -1] = True
    q = torch.where(allowed, 0.0, -torch.inf)
    taken = trainer._explore(q, allowed, 1.0)
    assert allowed.gather(-1, taken.unsqueeze(-1)).all()
    assert len(torch.unique(taken)) == 4
    assert torch.equal(trainer._explore(q, allowed, 0.0), q.argmax(-1))


def small_trainer(**settings: Any) -> learning.Trainer:
    rng = np.random.default_rng(0)
    rows = network.TensorRows(
        torch.tensor(rng.normal(size=(30, 3)), dtype=torch.float32),
        torch.tensor(rng.random((30, 3)) < 0.8),
        torch.arange(3),
    )
    costs = Costs([1.0, 2.0, 3.0], false_positive=10, false_negative=20).bind(["a", "b", "c"])
    rewards = learning.Rewards([("money", 1.0)], costs, 0.4, torch.device("cpu"))
    settings = {
        "n_environments": 8,
        "n_steps": 3,
        "learning_rate": 1e-3,
        "n_updates": 10,
        "seed": 0,
        **settings,
    }
    return learning.Trainer(rows, (rng.random(30) < 0.4).astype(float), rewards, **settings)


def test_n_step_returns_by_hand() -> None:
    """Three rows: the first never stops, the second stops at step 2, the third at once."""
    rewards = [
        torch.tensor([-1.0, -2.0, -7.0]),
        torch.tensor([-3.0, -0.5, 99.0]),
        torch.tensor([-4.0, 99.0, 99.0]),
    ]
    continuing = [
        torch.tensor([True, True, False]),
        torch.tensor([True, False, False]),
        torch.tensor([True, False, False]),
    ]
    returns = learning.n_step_returns(rewards, continuing, torch.tensor([-10.0, 50.0, 50.0]))
    assert returns[0].tolist() == [-18.0, -2.5, -7.0]
    assert returns[1].tolist()[:2] == [-17.0, -0.5]
    assert returns[2].tolist()[:1] == [-14.0]


def test_bootstrap_is_double() -> None:
    """The trained network chooses the action, the averaged one says what it is worth."""
    trainer = small_trainer()
    trainer.update(0)
    with torch.no_grad():
        for weight in trainer.averaged.values():
            weight += 0.1 * torch.randn(weight.shape, generator=trainer.random)
    values = trainer.rows.values[trainer.row]
    available = trainer.rows.available[trainer.row]
    allowed = network.allowed_actions(available, trainer.acquired)
    embedded = network.embed(trainer.trained, values, trainer.rows.source)
    value = trainer._bootstrap(embedded, values, available, trainer.acquired)
    _, by_trained = network.assess(trainer.trained, embedded, trainer.acquired, allowed)
    _, by_averaged = network.assess(
        trainer.averaged,
        network.embed(trainer.averaged, values, trainer.rows.source),
        trainer.acquired,
        allowed,
    )
    for row in range(trainer.n_environments):
        assert value[0, row] == by_averaged[0, row, by_trained[0, row].argmax()]


def test_environments_hold_available_covariates_only() -> None:
    trainer = small_trainer()
    for number in range(10):
        trainer.update(number)
        assert not (trainer.acquired & ~trainer.rows.available[trainer.row]).any()


def test_rewards_as_costs_and_as_log_likelihood() -> None:
    costs = Costs(
        [3.0, 4.0, 1.0],
        misclassification=[[-50, 400], [800, -20]],
        panels={"draw": (2.5, [0, 1])},
    ).bind(["a", "b", "c"])
    candidates = [("money", 1.0), ("log_likelihood", 0.01)]
    rewards = learning.Rewards(candidates, costs, 0.3, torch.device("cpu"))
    stake = min(0.7 * 450, 0.3 * 820)
    acquired = torch.tensor([[[False, False, False], [True, False, False]]]).expand(2, -1, -1)
    of_acquiring = rewards.of_acquiring(acquired).numpy()
    unpaid = np.array([[3.0, 4.0, 1.0], [0.5, 1.5, 1.0]])
    np.testing.assert_allclose(of_acquiring[0], -unpaid / stake, rtol=1e-6)
    np.testing.assert_allclose(of_acquiring[1], -unpaid * 0.01, rtol=1e-6)
    log_odds, y = torch.tensor([[0.4, -2.0]]).expand(2, -1), torch.tensor([[1.0, 0.0]])
    at_stop = rewards.of_stopping(log_odds, y.expand(2, -1)).numpy()
    p = 1 / (1 + np.exp([-0.4, 2.0]))
    # Bayes risk less the expected cost of the right answer.
    risk = np.minimum((1 - p) * -50 + p * 800, (1 - p) * 400 + p * -20)
    np.testing.assert_allclose(at_stop[0] * stake, (1 - p) * -50 + p * -20 - risk, rtol=1e-5)
    np.testing.assert_allclose(at_stop[1], np.log([p[0], 1 - p[1]]), rtol=1e-5)


def test_same_seed_same_network_and_another_seed_another(tmp_path: Any) -> None:
    X, y = mixed_table()
    model = quick(MIXED_COSTS).fit(X, y)
    again = clone(model).fit(X, y)
    for name, array in model.weights_.items():
        np.testing.assert_array_equal(again.weights_[name], array)
    other = quick(MIXED_COSTS, random_state=1).fit(X, y)
    assert not np.array_equal(other.weights_["value"], model.weights_["value"])
    save(model, tmp_path / "model.adacos")
    same(load(tmp_path / "model.adacos").acquire(X), model.acquire(X))


def test_known_covariates_are_free_and_used() -> None:
    X, y = mixed_table()
    X = X.assign(blood=X["blood"].fillna(0.0))
    model = quick(MIXED_COSTS).fit(X, y)
    known = np.array([name == "blood" for name in X.columns])
    result = model.acquire(X, known=known)
    assert not result.acquired[:, known].any()
    np.testing.assert_allclose(
        result.cost, model.cost_table_.of(result.acquired, given=known), atol=1e-12
    )
    moved = model.acquire(X.assign(blood=X["blood"] + 3.0), known=known)
    assert not np.array_equal(moved.probability, result.probability)
    row = np.flatnonzero(X.notna().all(axis=1))[0]
    step = model.consultation(known={"blood": X["blood"][row]}).next()
    first = result.covariates(row)[:1]
    assert getattr(step, "covariates", ())[:1] == first


def test_candidates_and_what_was_chosen() -> None:
    X, y = mixed_table()
    model = quick(MIXED_COSTS, reward="log_likelihood", n_updates=2, n_pretraining=0).fit(X, y)
    assert len(model.candidates_) == 11
    assert [model.candidates_[0][1], model.candidates_[-1][1]] == [0.0, pytest.approx(0.1)]
    assert (model.reward_, model.lambda_) in model.candidates_
    assert model.validation_cost_.shape == (1, 11)
    free = quick(reward="auto", n_updates=2, n_pretraining=0).fit(X, y)
    assert free.candidates_ == [("money", 1.0), ("log_likelihood", 0.0)]


def test_training_stops_when_the_validation_cost_no_longer_falls() -> None:
    X, y = mixed_table()
    model = quick(
        MIXED_COSTS,
        n_updates=2000,
        n_environments=4,
        n_pretraining=0,
        learning_rate=1e-12,
        patience=2,
    ).fit(X, y)
    assert len(model.validation_cost_) < 20
    assert model.n_updates_ <= 50 * len(model.validation_cost_)


def test_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = mixed_table()
    quick(MIXED_COSTS, n_updates=2, n_pretraining=0, verbose=1).fit(X, y)
    assert "Shim2018" in capsys.readouterr().out


def value_dependent(n: int, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """y is x1 where x0 is 0 and x2 where it is 1, turned round in 5% of the rows."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, 4)).astype(float)
    y = np.where(x[:, 0] == 0, x[:, 1], x[:, 2])
    return x, np.where(rng.random(n) < 0.05, 1 - y, y).astype(np.int64)


def test_beats_a_fixed_order_where_the_next_covariate_depends_on_the_first() -> None:
    costs = Costs([0.5, 1.0, 1.0, 0.5], false_positive=10, false_negative=10)
    X, y = value_dependent(4000, seed=0)
    X_new, y_new = value_dependent(4000, seed=1)
    model = Shim2018Classifier(costs, device="cpu").fit(X, y)
    fixed = AdaCOSClassifier(costs).fit(X, y)
    # x0, then the one that it points to, costs 1.5, and 5% of the answers are wrong.
    assert total_cost(model, X_new, y_new) < 1.1 * 2.0
    assert total_cost(model, X_new, y_new) < 0.8 * total_cost(fixed, X_new, y_new)
    result = model.acquire(X_new)
    assert np.all(result.acquired[:, 0])
    np.testing.assert_array_equal(result.acquired[:, 2], X_new[:, 0] == 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reward", "points"),
        ("lambdas", 0.1),
        ("lambdas", ()),
        ("lambdas", (0.1, -1.0)),
        ("n_updates", 0),
        ("n_pretraining", -1),
        ("n_environments", 0),
        ("n_steps", 0),
        ("learning_rate", 0.0),
        ("validation_fraction", 1.0),
        ("patience", 0),
        ("device", "tpu"),
        ("random_state", -1),
    ],
)
def test_bad_parameters_are_refused(name: str, value: Any) -> None:
    X, y = mixed_table()
    with pytest.raises(InvalidInputError, match=name):
        quick(MIXED_COSTS, **{name: value}).fit(X, y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_a_gpu_is_refused() -> None:
    X, y = mixed_table()
    with pytest.raises(InvalidInputError, match="GPU"):
        quick(device="cuda").fit(X, y)


def test_without_torch_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("adacos.rivals.shim2018_network", "adacos.rivals.shim2018_learning"):
        monkeypatch.delitem(sys.modules, module)
        monkeypatch.delattr(f"adacos.rivals.{module.rpartition('.')[2]}", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y = mixed_table()
    with pytest.raises(MissingExtraError, match=r"\.\[rivals\]"):
        quick(MIXED_COSTS).fit(X, y)
