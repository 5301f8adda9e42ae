from __future__ import annotations

from pathlib import Path

import pytest

from adacos.bench import BenchConfig, asymmetric, recall, register_dataset, register_method
from adacos.bench.configuration import available_methods, slug
from adacos.bench.paper import PaperOptions, configure, run_paper
from adacos.exceptions import InvalidInputError, MissingExtraError


def config(tmp_path, **changes):
    return BenchConfig(
        **{
            "datasets": ("pima",),
            "methods": ("full-model",),
            "settings": (asymmetric(10.0),),
            "out": tmp_path / "out",
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"methods": ("no such method",)}, "methods"),
        ({"methods": ()}, "methods"),
        ({"methods": ("Full Model", "full-model")}, "methods"),
        ({"datasets": ("no such table",)}, "datasets"),
        ({"datasets": ("pima", "pima")}, "datasets"),
        ({"datasets": ("physionet",)}, "datasets"),
        ({"datasets": ("physionet",), "data": {"physionet": "/no/such/file"}}, "data"),
        ({"data": {"pima": "."}}, "data"),
        ({"settings": ()}, "settings"),
        ({"settings": (asymmetric(10.0), asymmetric(10.0))}, "settings"),
        ({"settings": (asymmetric(-1.0),)}, "false_positive"),
        ({"settings": (recall(1.5, 10.0),)}, "target_recall"),
        ({"folds": ()}, "folds"),
        ({"folds": (0, 0)}, "folds"),
        ({"folds": (5,)}, "folds"),
        ({"splits": -1}, "splits"),
        ({"splits": 0, "paper_folds": False}, "splits"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_bad_configuration_is_refused_and_nothing_created(tmp_path, changes, parameter):
    with pytest.raises(InvalidInputError) as caught:
        config(tmp_path, **changes)
    assert caught.value.parameter.startswith(parameter)
    assert list(tmp_path.iterdir()) == []


def test_unwritable_folder_is_refused(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    for out in (blocker, blocker / "below"):
        with pytest.raises(InvalidInputError, match="written"):
            config(tmp_path, out=out)


def test_missing_reference_is_refused_before_anything_runs(tmp_path):
    options = PaperOptions(out=tmp_path / "out", reference=Path("/no/such/file"))
    with pytest.raises(InvalidInputError, match="reference"):
        run_paper(options, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_names_may_be_slugs(tmp_path):
    assert slug("AdaCOS (group lasso)") == "adacos-group-lasso"
    assert config(tmp_path, methods=("adacos-group-lasso",)).methods == ("AdaCOS (group lasso)",)


def test_the_name_of_a_policy_means_its_first_variant(tmp_path):
    assert config(tmp_path, methods=("adacos", "cos")).methods == (
        "AdaCOS (group lasso)",
        "COS (group lasso)",
    )
    with pytest.raises(InvalidInputError, match="named twice"):
        config(tmp_path, methods=("adacos", "AdaCOS (group lasso)"))


def test_method_must_build_something_with_fit_and_acquire(tmp_path, registry):
    register_method("empty", lambda costs: object())
    register_method("raises", lambda costs: 1 / 0)
    for name in ("empty", "raises"):
        with pytest.raises(InvalidInputError, match=name):
            config(tmp_path, methods=(name,))


def test_absent_package_is_named_with_its_extra(tmp_path, registry):
    register_method("heavy", lambda costs: None, requires=("no_such_package", "rivals"))
    with pytest.raises(MissingExtraError, match=r"\.\[rivals\]"):
        config(tmp_path, methods=("heavy",))
    usable, absent = available_methods(("Full Model", "heavy"))
    assert usable == ["Full Model"]
    assert "rivals" in absent["heavy"]


@pytest.mark.parametrize("name", ["Full Model", "", "a/b", "a,b"])
def test_method_name_must_be_new_and_printable(registry, name):
    with pytest.raises(InvalidInputError):
        register_method(name, lambda costs: None)


def test_registered_objects_must_be_functions(registry):
    with pytest.raises(InvalidInputError, match="make"):
        register_method("not a function", 3)
    with pytest.raises(InvalidInputError, match="loader"):
        register_dataset("not a function", 3)


def test_report_says_what_is_dropped_and_how_to_get_it(tmp_path):
    _, not_run = configure(PaperOptions(methods=("full-model",), out=tmp_path))
    assert any("physionet.org" in line and "--data physionet=" in line for line in not_run)
