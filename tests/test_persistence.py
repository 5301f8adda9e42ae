"""Model files: exact round trips, and nothing but clear errors for anything else."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import adacos
from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    GaussianImputer,
    LogisticGAM,
    TargetRecallClassifier,
    load,
    save,
)
from adacos.decision import DIGEST_SCHEME
from adacos.exceptions import InvalidInputError, ModelFileError
from adacos.model_fields import fields_of
from adacos.models import dynamic
from adacos.models.class_values import class_values
from adacos.persistence import FORMAT
from adacos.validation import fits
from tests.golden.problems import problem
from tests.golden.record import hashed
from tests.model_files import answer, manifest, rewritten
from tests.policies.tables import mixed, numbers
from tests.policy_checks import same

PANELS = {"visit": (0.5, ["town", "dose"])}
PRICES = {"age": 1.0, "smokes": 1.0, "town": 2.0, "planet": 0.5, "zero": 0.0, "dose": 4.0}


def models() -> dict[str, tuple[Any, Any]]:
    """Every estimator, on arrays and on a frame with words, and the rows to ask it about."""
    X, y = numbers(90, 0)
    incomplete = X.copy()
    incomplete[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    frame, words = mixed(90, 1)
    whole = pd.DataFrame(X, columns=list("abcde"))
    settings = {"cv": 3, "strengths": "common"}
    named = Costs(PRICES, false_positive=30, false_negative=70, panels=PANELS)
    placed = Costs([1, 2, 0, 1, 3.0], misclassification=[[-50, 400], [400, -50]])
    result: dict[str, tuple[Any, Any]] = {
        "gam": (LogisticGAM().fit(X, y), X),
        "named gam": (LogisticGAM(smoothness=3.0, ridge=[1, 2, 3, 4, 5.0]).fit(whole, y), whole),
        "imputer": (GaussianImputer().fit(incomplete), incomplete),
        "named imputer": (GaussianImputer().fit(whole), whole),
    }
    for cls in (FullModelClassifier, COSClassifier, AdaCOSClassifier):
        result[f"{cls.__name__} by name"] = (cls(named, **settings).fit(frame, words), frame)
        result[f"{cls.__name__} by place"] = (cls(placed, **settings).fit(X, y == 1), incomplete)
        result[f"{cls.__name__} without costs"] = (cls(**settings).fit(incomplete, y), incomplete)
    return result


@pytest.fixture(scope="module")
def fitted() -> dict[str, tuple[Any, Any]]:
    return models()


@pytest.fixture(scope="module")
def adacos_file(tmp_path_factory: Any) -> Path:
    X, y = numbers(60, 0)
    costs = Costs([1, 2, 3, 4, 5.0], false_positive=100, false_negative=300)
    path = tmp_path_factory.mktemp("models") / "model.adacos"
    save(AdaCOSClassifier(costs, n_splines=5, cv=2, strengths="common").fit(X, y), path)
    return path


ELSEWHERE = """
import pickle, sys
import numpy as np
from adacos import load
from tests.model_files import answer
folder = sys.argv[1]
with open(folder + "/rows.pickle", "rb") as file:
    rows = pickle.load(file)
answers = {k: answer(load(f"{folder}/{k}.adacos"), X) for k, X in enumerate(rows)}
with open(folder + "/answers.pickle", "wb") as file:
    pickle.dump(answers, file)
"""


def test_another_process_decides_the_same_to_the_bit(
    fitted: dict[str, tuple[Any, Any]], tmp_path: Path
) -> None:
    for k, (model, _) in enumerate(fitted.values()):
        save(model, tmp_path / f"{k}.adacos")
    with open(tmp_path / "rows.pickle", "wb") as file:
        pickle.dump([X for _, X in fitted.values()], file)
    root = Path(__file__).resolve().parents[1]
    source = Path(adacos.__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{root}"}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(tmp_path)],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "answers.pickle", "rb") as file:
        answers = pickle.load(file)
    for k, (name, (model, X)) in enumerate(fitted.items()):
        expected = answer(model, X)
        assert answers[k].keys() == expected.keys()
        for field, value in expected.items():
            np.testing.assert_array_equal(answers[k][field], value, err_msg=f"{name}: {field}")
            assert answers[k][field].dtype == value.dtype


def test_a_loaded_model_is_a_whole_one(fitted: dict[str, tuple[Any, Any]], tmp_path: Path) -> None:
    for model, X in fitted.values():
        path = tmp_path / "model.adacos"
        save(model, path)
        copy = load(path)
        assert type(copy) is type(model)
        assert repr(copy) == repr(model)
        for name, value in model.get_params().items():
            other = copy.get_params()[name]
            assert type(other) is type(value)
            assert other == value
        assert copy.n_features_in_ == model.n_features_in_
        for name, value in vars(model).items():
            if name.endswith("_") and isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(copy, name), value)
                assert getattr(copy, name).dtype == value.dtype
        # Saved again it gives the same file: nothing is lost on the way.
        again = tmp_path / "again.adacos"
        save(copy, again)
        assert again.read_bytes() == path.read_bytes()
        if hasattr(copy, "from_model"):
            other = FullModelClassifier(copy.costs).from_model(copy)
            same(other.acquire(X), FullModelClassifier(copy.costs).from_model(model).acquire(X))


def test_loading_many_classes_values_the_sets_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each set is worth takes a second with 15 classes: rows and consultation share it."""
    X, y = load_iris(return_X_y=True)
    costs = Costs([1.0] * 4, misclassification=20 * (1 - np.eye(3)))
    save(AdaCOSClassifier(costs, strengths="common", cv=3).fit(X, y), tmp_path / "model.adacos")
    solved = []

    def counted(*given: Any) -> Any:
        solved.append(given)
        return class_values(*given)

    monkeypatch.setattr(dynamic, "class_values", counted)
    copy = load(tmp_path / "model.adacos")
    # One more for rows without their last covariates, which can be brought no further.
    assert 1 <= len(solved) <= 2
    assert copy.consultation({copy.encoder_.names[3]: 0.2}).next() is not None


def test_a_path_may_be_text_and_the_file_may_exist(tmp_path: Path) -> None:
    X, y = numbers(40, 0)
    path = tmp_path / "model.adacos"
    path.write_text("something old")
    save(LogisticGAM(cv=2).fit(X, y), str(path))
    assert load(str(path)).n_features_in_ == 5
    assert [p.name for p in tmp_path.iterdir()] == ["model.adacos"]


# What is not a model file


def test_truncated_files(adacos_file: Path, tmp_path: Path) -> None:
    content = adacos_file.read_bytes()
    path = tmp_path / "cut.adacos"
    for size in [*range(0, len(content), max(len(content) // 400, 50)), len(content) - 1]:
        path.write_bytes(content[:size])
        with pytest.raises(ModelFileError, match=r"cut\.adacos is not"):
            load(path)


def test_a_changed_byte_is_noticed_or_makes_no_difference(
    adacos_file: Path, tmp_path: Path
) -> None:
    content = bytearray(adacos_file.read_bytes())
    X, _ = numbers(20, 1)
    expected = load(adacos_file).acquire(X)
    path = tmp_path / "changed.adacos"
    noticed = 0
    rng = np.random.default_rng(0)
    positions = rng.choice(len(content), 250, replace=False)
    for position in [*positions, *range(40), *range(len(content) - 60, len(content))]:
        changed = content.copy()
        changed[position] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            model = load(path)
        except ModelFileError as error:
            noticed += 1
            assert "changed.adacos" in str(error)  # noqa: PT017
        else:
            same(model.acquire(X), expected)
    assert noticed > 150


def altered(member: str, old: bytes, new: bytes) -> Any:
    def change(members: dict[str, bytes]) -> None:
        assert old in members[member]
        members[member] = members[member].replace(old, new)

    return change


def last_byte(members: dict[str, bytes]) -> None:
    data = bytearray(members["arrays/0.npy"])
    data[-1] ^= 1
    members["arrays/0.npy"] = bytes(data)


TAMPERED = {
    "a byte of an array": last_byte,
    "a word of the description": altered("model.json", b"AdaCOSClassifier", b"COSClassifier"),
    "an array less": lambda members: members.pop("arrays/0.npy"),
    "a member more": lambda members: members.update({"extra": b"1"}),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampered_files(name: str, adacos_file: Path, tmp_path: Path) -> None:
    path = rewritten(adacos_file, tmp_path / "model.adacos", TAMPERED[name], honest=False)
    with pytest.raises(ModelFileError, match=r"model\.adacos was altered or damaged"):
        load(path)


def pickled_array(members: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}, []], dtype=object), allow_pickle=True)
    members["arrays/0.npy"] = buffer.getvalue()


HOSTILE = {
    "a class of another package": altered("model.json", b'"SetSequence"', b'"Popen"'),
    "a class by path": altered("model.json", b'"SetSequence"', b'"os.system"'),
    "a pickle among the arrays": pickled_array,
    "not an array": lambda members: members.update({"arrays/0.npy": b"zeros"}),
    "an array less": lambda members: members.pop("arrays/0.npy"),
    "no description": lambda members: members.pop("model.json"),
    "not json": lambda members: members.update({"model.json": b"{"}),
    "a number": lambda members: members.update({"model.json": b"5"}),
    "a list": lambda members: members.update({"model.json": b'{"list": []}'}),
    "two kinds at once": lambda members: members.update({"model.json": b'{"a": 1, "b": 2}'}),
    "not a model": lambda members: members.update(
        {"model.json": b'{"object": "SetSequence", "state": {}}'}
    ),
    "a state that is none": altered("model.json", b'"state": {', b'"state": 3, "x": {'),
    "nested without end": lambda members: members.update(
        {"model.json": b'{"list":[' * 100_000 + b"]}" * 100_000}
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_with_right_checksums(name: str, adacos_file: Path, tmp_path: Path) -> None:
    path = rewritten(adacos_file, tmp_path / "model.adacos", HOSTILE[name], honest=True)
    with pytest.raises(ModelFileError, match=r"model\.adacos "):
        load(path)


def with_encoder(**parts: Any) -> Any:
    return lambda policy: {"encoder_": replace(policy.encoder_, **parts)}


def with_costs(**parts: Any) -> Any:
    return lambda policy: {"cost_table_": replace(policy.cost_table_, **parts)}


def with_kinds(part: str) -> Any:
    """The kinds of the columns that a part of the model holds, in another order."""

    def change(policy: Any) -> dict[str, Any]:
        own = getattr(policy.model_, part)
        return {"model_": replace(policy.model_, **{part: replace(own, kinds=own.kinds[::-1])})}

    return change


def with_words(categories: tuple[str, ...]) -> Any:
    """The categories of the covariate that has the same number of them."""

    def change(policy: Any) -> dict[str, Any]:
        encoder = policy.encoder_
        k = [len(levels) for levels in encoder.categories].index(len(categories))
        changed = (*encoder.categories[:k], categories, *encoder.categories[k + 1 :])
        return {"encoder_": replace(encoder, categories=changed)}

    return change


def swapped(names: Any) -> Any:
    return np.array([names[1], names[0], *names[2:]], dtype=object)


INCONSISTENT: dict[str, Any] = {
    "columns that are swapped": lambda p: {"feature_names_in_": swapped(p.feature_names_in_)},
    "classes in another order": lambda p: {"classes_": p.classes_[::-1]},
    "equal classes": lambda p: {"classes_": p.classes_[[1, 1]]},
    "a class that is no number": lambda p: {"classes_": np.array([0, np.nan])},
    "three classes": lambda p: {"classes_": np.array(["a", "b", "c"])},
    "a negative covariate cost": with_costs(covariates=np.array([1.0, 1, -2, 0.5, 0, 4])),
    "a cost that is no number": with_costs(covariates=np.array([1.0, 1, np.nan, 0.5, 0, 4])),
    "costs of other columns": with_costs(names=tuple("abcdef")),
    "a panel that there is not": with_costs(panel=np.array([-1, -1, 3, -1, -1, 3])),
    "a transposed matrix": with_costs(matrix=np.array([[0.0, 70.0], [30.0, 0.0]])),
    "an infinite cost of an error": with_costs(matrix=np.array([[0.0, np.inf], [70.0, 0.0]])),
    "other covariate costs than the parameter's": with_costs(covariates=np.arange(6.0)),
    "a cost of waiting that the parameter lacks": with_costs(round_cost=2.0),
    "a threshold without a target recall": lambda p: {
        "decider_": p.decider_.with_rule(replace(p.rule_, threshold=0.4))
    },
    "a joint model of other kinds": with_kinds("joint"),
    "a basis of other kinds": with_kinds("basis"),
    "a range that is upside down": lambda p: {
        "encoder_": replace(p.encoder_, low=p.encoder_.high + 1.0)
    },
    "names twice": with_encoder(names=("age",) * 6),
    "categories in another order": with_words(("west", "south", "north")),
    "a category twice": with_words(("north", "north", "west")),
}


@pytest.mark.parametrize("name", INCONSISTENT)
def test_parts_that_do_not_fit_each_other_are_refused(
    name: str, fitted: dict[str, tuple[Any, Any]], tmp_path: Path, monkeypatch: Any
) -> None:
    """Each would load and decide otherwise, with right checksums and no digest of the decider."""
    policy = copy.copy(fitted["COSClassifier by name"][0])
    path = tmp_path / "model.adacos"
    save(policy, path)
    load(path)
    vars(policy).update(INCONSISTENT[name](policy))
    with pytest.raises(InvalidInputError, match="must have the parameters that it was fitted"):
        save(policy, path)
    monkeypatch.setattr("adacos.persistence._decisions", lambda model: None)
    save(policy, path)
    with pytest.raises(ModelFileError, match=r"model\.adacos does not describe a model"):
        load(path)


def test_every_field_is_needed_and_of_its_type(
    fitted: dict[str, tuple[Any, Any]], tmp_path: Path
) -> None:
    """Each in turn is absent, a text, and a number: nothing of that is loaded."""
    for model in (fitted["named gam"][0], fitted["named imputer"][0]):
        check_fields(model, tmp_path)
    policy = fitted["COSClassifier without costs"][0]
    check_fields(policy, tmp_path)
    check_fields(TargetRecallClassifier(policy, target_recall=0.9).fit(*numbers(60, 0)), tmp_path)


def check_fields(model: Any, folder: Path) -> None:
    path, bad = folder / "model.adacos", folder / "bad.adacos"
    save(model, path)
    load(path)
    for name, hint in fields_of(type(model)).items():
        if fits(None, hint):
            continue
        for wrong in (None, "text", -7.5):
            if wrong is not None and fits(wrong, hint):
                continue

            def change(members: Any, name: str = name, wrong: Any = wrong) -> None:
                model = json.loads(members["model.json"])
                model["state"][name] = wrong
                if wrong is None:
                    del model["state"][name]
                members["model.json"] = json.dumps(model).encode()

            with pytest.raises(ModelFileError, match=name):
                load(rewritten(path, bad, change, honest=True))


def test_a_learned_attribute_that_is_no_field_is_not_saved(
    fitted: dict[str, tuple[Any, Any]], tmp_path: Path
) -> None:
    policy = copy.copy(fitted["COSClassifier by name"][0])
    policy.memory_ = 3.0
    with pytest.raises(InvalidInputError, match=r"saved_fields.*received memory_.*float"):
        save(policy, tmp_path / "model.adacos")
    assert list(tmp_path.iterdir()) == []


def test_format_1_is_upgraded_and_format_2_holds_fields_only(
    fitted: dict[str, tuple[Any, Any]], tmp_path: Path
) -> None:
    """Files of format 1 also hold what is computed now, and lack what was added later."""
    model, X = fitted["COSClassifier by name"]
    path = tmp_path / "model.adacos"
    save(model, path)

    def as_before(members: Any) -> None:
        content = json.loads(members["model.json"])
        content["state"] |= {"always_positive_": False, "expected_cost_": 7.0}
        del content["state"]["multiplier_"]
        members["model.json"] = json.dumps(content).encode()

    def of_format_1(members: Any) -> None:
        as_before(members)
        altered("manifest.json", f'"format": {FORMAT}'.encode(), b'"format": 1')(members)

    same(
        load(rewritten(path, tmp_path / "1", of_format_1, honest=True)).acquire(X), model.acquire(X)
    )
    with pytest.raises(
        ModelFileError, match=r"absent \{'multiplier_'\}, unknown \{.*expected_cost_"
    ):
        load(rewritten(path, tmp_path / "2", as_before, honest=True))


def test_a_part_of_a_newer_version_is_named_with_the_remedy(
    fitted: dict[str, tuple[Any, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "model.adacos"
    save(fitted["COSClassifier by name"][0], path)

    def renamed(members: dict[str, bytes]) -> None:
        altered("model.json", b'"TableEncoder"', b'"LaterRows"')(members)
        reported = json.loads(members["manifest.json"])
        members["manifest.json"] = json.dumps({**reported, "version": "9.1"}).encode()

    newer = rewritten(path, tmp_path / "newer.adacos", renamed, honest=True)
    with pytest.raises(ModelFileError, match=r"LaterRows.*adacos 9\.1.*Upgrade adacos"):
        load(newer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            altered("manifest.json", f'"format": {FORMAT}'.encode(), b'"format": 99'),
            f"has format 99, this version reads up to {FORMAT}. Upgrade adacos",
        ),
        (altered("manifest.json", b'"adacos"', b'"tacos"'), "is not an adacos model"),
        (manifest(b"[]"), "is not an adacos model"),
        (manifest(b"null"), "is not an adacos model"),
        (manifest(b"{"), "is not an adacos model"),
        (manifest(b"\xff\xfe"), "is not an adacos model"),
        (manifest(b'{"application": "adacos", "format": "1", "sha256": {}}'), "is not an adacos"),
        (manifest(b'{"application": "adacos", "format": 0, "sha256": {}}'), "model"),
        (lambda members: members.pop("manifest.json"), "is not an adacos model"),
    ],
)
def test_manifests(change: Any, message: str, adacos_file: Path, tmp_path: Path) -> None:
    path = rewritten(adacos_file, tmp_path / "model.adacos", change, honest=False)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_foreign_files(tmp_path: Path) -> None:
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty").write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    (tmp_path / "folder").mkdir()
    for name in ("model.pickle", "table.csv", "empty", "some.zip", "folder"):
        with pytest.raises(ModelFileError, match=name):
            load(tmp_path / name)


def test_a_pickle_is_not_executed(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "exploded",)

    (tmp_path / "model.adacos").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError):
        load(tmp_path / "model.adacos")
    assert not (tmp_path / "exploded").exists()


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.adacos")


# What cannot be saved


def test_unfitted_and_foreign_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.adacos"
    for model in (LogisticGAM(), AdaCOSClassifier(), GaussianImputer()):
        with pytest.raises(InvalidInputError, match=r"model: must be fitted.*Call fit first"):
            save(model, path)
    X, y = numbers(40, 0)
    foreign = LogisticRegression().fit(X, y)
    for thing in (foreign, {"a": 1}, None, 3.0, AdaCOSClassifier, Costs()):
        with pytest.raises(InvalidInputError, match="model: must be a model of this library"):
            save(thing, path)
    assert list(tmp_path.iterdir()) == []


def test_what_holds_a_policy_is_refused_with_what_to_save(tmp_path: Path) -> None:
    """The remedies work as they are written."""
    X, y = numbers(60, 0)
    gam = LogisticGAM(strengths="common")
    pipeline = make_pipeline(StandardScaler(), clone(gam)).fit(X, y)
    search = GridSearchCV(gam, {"n_splines": [5, 6]}, cv=2).fit(X, y)
    path = tmp_path / "model.adacos"
    with pytest.raises(InvalidInputError, match=re.escape("save(pipeline[-1], path)")):
        save(pipeline, path)
    save(pipeline[-1], path)
    own = load(path).predict_proba(pipeline[:-1].transform(X))
    np.testing.assert_array_equal(own, pipeline.predict_proba(X))
    with pytest.raises(InvalidInputError, match=re.escape("save(search.best_estimator_, path)")):
        save(search, path)
    save(search.best_estimator_, path)


def test_the_remedy_is_written_for_what_was_given(tmp_path: Path) -> None:
    X, y = numbers(60, 0)
    gam, path = LogisticGAM(strengths="common", cv=2), tmp_path / "model.adacos"
    inner = make_pipeline(StandardScaler(), clone(gam))
    pipeline = make_pipeline(StandardScaler(), inner).fit(X, y)
    search = GridSearchCV(inner, {"logisticgam__n_splines": [5, 6]}, cv=2).fit(X, y)
    alone = make_pipeline(clone(gam)).fit(X, y)
    cases: list[tuple[Any, str]] = [(pipeline, "pipeline"), (alone, "pipeline"), (search, "search")]
    for given, called in cases:
        with pytest.raises(InvalidInputError) as error:
            save(given, path)
        found = re.search(r"save\((.*), path\)\.(?: .* make them, (.*)\.)?$", error.value.remedy)
        assert found is not None
        model, rows = found.groups()
        space = {called: given, "X": X}
        save(eval(model, space), path)
        own = load(path).predict_proba(eval(rows or "X", space))
        np.testing.assert_array_equal(own, given.predict_proba(X))
    with pytest.raises(InvalidInputError, match="Fitted policies, LogisticGAM"):
        save(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), path)


def test_a_namesake_is_refused(tmp_path: Path) -> None:
    namesake = type("LogisticGAM", (), {})()
    namesake.coef_ = np.ones(3)
    with pytest.raises(InvalidInputError, match="model: must be a model"):
        save(namesake, tmp_path / "model.adacos")
    assert list(tmp_path.iterdir()) == []


def test_a_parameter_that_is_an_object_is_refused(tmp_path: Path) -> None:
    X, y = numbers(40, 0)
    from sklearn.model_selection import KFold

    gam = LogisticGAM(cv=KFold(3)).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"plain values.* received KFold"):
        save(gam, tmp_path / "model.adacos")
    assert list(tmp_path.iterdir()) == []


# All or nothing


@pytest.fixture
def small() -> LogisticGAM:
    X, y = numbers(40, 0)
    return LogisticGAM(cv=2).fit(X, y)


@pytest.mark.parametrize("moment", ["writestr", "fsync", "replace"])
def test_a_failed_save_leaves_nothing_behind(
    moment: str, small: LogisticGAM, tmp_path: Path, monkeypatch: Any
) -> None:
    path = tmp_path / "model.adacos"
    path.write_text("the old model")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    target = zipfile.ZipFile if moment == "writestr" else os
    monkeypatch.setattr(target, moment, fail)
    with pytest.raises(OSError, match="No space left"):
        save(small, path)
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["model.adacos"]
    assert path.read_text() == "the old model"


def test_an_interrupted_save_leaves_nothing_behind(
    small: LogisticGAM, tmp_path: Path, monkeypatch: Any
) -> None:
    written = []
    original = zipfile.ZipFile.writestr

    def interrupt(self: Any, *arguments: Any, **options: Any) -> None:
        written.append(arguments)
        if len(written) == 3:
            raise KeyboardInterrupt
        original(self, *arguments, **options)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(small, tmp_path / "model.adacos")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(small: LogisticGAM, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        save(small, tmp_path / "nowhere" / "model.adacos")
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OSError, match="file"):
        save(small, file / "model.adacos")
    (tmp_path / "taken").mkdir()
    with pytest.raises(InvalidInputError, match="taken"):
        save(small, tmp_path / "taken")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "taken"]


# What decisions depend on


def test_a_model_whose_parameters_were_changed_after_the_fit_is_not_saved(tmp_path: Path) -> None:
    """A file holds the parameters, and would decide by them."""
    X, y = numbers(60, 0)
    path = tmp_path / "model.adacos"
    costs = Costs([1, 2, 3, 4, 5.0], false_positive=100, false_negative=300)
    policy = COSClassifier(costs, cv=2, strengths="common").fit(X, y)
    for changed in ({"budget": 3.0}, {"costs": Costs([2, 2, 3, 4, 5.0], false_positive=9)}):
        before = policy.get_params()
        with pytest.raises(InvalidInputError, match=r"(budget|costs)\. Call fit again"):
            save(policy.set_params(**changed), path)
        assert not path.exists()
        policy.set_params(**before)
    save(policy.set_params(verbose=1), path)
    assert load(path).decider_.digest == policy.decider_.digest


def decisions_said(change: Any) -> Any:
    """A change of what the manifest says of decisions."""

    def apply(members: dict[str, bytes]) -> None:
        reported = json.loads(members["manifest.json"])
        change(reported)
        members["manifest.json"] = json.dumps(reported).encode()

    return apply


def test_what_a_file_says_of_its_decisions_is_compared(adacos_file: Path, tmp_path: Path) -> None:
    """Not where the digest was made in another way, or by no way at all."""
    said = json.loads(zipfile.ZipFile(adacos_file).read("manifest.json"))["decisions"]
    assert said == {"scheme": DIGEST_SCHEME, "digest": load(adacos_file).decider_.digest}
    other = {"digest": "0" * 16}
    taken = [
        {"decisions": {**other, "scheme": DIGEST_SCHEME + 1}},
        {"decisions": {**other, "scheme": None}},
        {"decisions": {**other, "scheme": DIGEST_SCHEME}, "format": 1},
        {"decisions": None},
    ]
    for more in taken:
        change = decisions_said(lambda reported, more=more: reported.update(more))
        load(rewritten(adacos_file, tmp_path / "taken.adacos", change, honest=True))
    load(
        rewritten(
            adacos_file,
            tmp_path / "taken",
            decisions_said(lambda t: t.pop("decisions")),
            honest=True,
        )
    )
    for wrong in ("0" * 16, 7):
        change = decisions_said(
            lambda reported, wrong=wrong: reported["decisions"].update(digest=wrong)
        )
        path = rewritten(adacos_file, tmp_path / "refused.adacos", change, honest=True)
        with pytest.raises(
            ModelFileError, match=r"refused\.adacos was altered .*decides otherwise"
        ):
            load(path)
    change = decisions_said(lambda reported: reported.update(decisions=[1]))
    with pytest.raises(ModelFileError, match="no valid manifest"):
        load(rewritten(adacos_file, tmp_path / "list.adacos", change, honest=True))


OLD = Path(__file__).with_name("saved")


def test_digests_of_saved_models_change_with_the_number_of_the_way_only() -> None:
    """If one fails, raise DIGEST_SCHEME and write the new ones: files made before it still load."""
    pinned = json.loads((OLD / "digests.json").read_text(encoding="utf-8"))
    digests = {path.stem: load(path).decider_.digest for path in sorted(OLD.glob("*.adacos"))}
    assert {"scheme": DIGEST_SCHEME, "digests": digests} == pinned


@pytest.mark.parametrize("name", json.loads((OLD / "decisions.json").read_text(encoding="utf-8")))
def test_a_file_of_an_earlier_format_decides_as_it_did(name: str) -> None:
    """Files of formats 1 to 3, and what the policies that were saved decided."""
    with zipfile.ZipFile(OLD / f"{name}.adacos") as archive:
        assert json.loads(archive.read("manifest.json"))["format"] in range(1, FORMAT)
    expected = json.loads((OLD / "decisions.json").read_text(encoding="utf-8"))[name]
    result = load(OLD / f"{name}.adacos").acquire(problem(expected.pop("table")).X_decided)
    assert {field: hashed(getattr(result, field)) for field in expected} == expected


def test_a_file_that_is_not_there_is_reported_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "model.adacos").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"Did you mean model\.adacos\?"):
        adacos.load(tmp_path / "modle.adacos")
    with pytest.raises(FileNotFoundError, match="No such file or directory: "):
        adacos.load(tmp_path / "other.txt")
