"""`adacos fit --protocol`, `adacos compare` and `adacos protocol`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adacos import DecisionProtocol, InvalidInputError, ProtocolClassifier, load, load_pima, save
from adacos.cli.app import app

PRICES = ("--default-price", "1", "--false-positive", "100", "--false-negative", "300")
TODAY = "if Glucose >= 140: sick\nunavailable: sick\nelse: well\n"


def run(*arguments: object):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("compare")
    X, y, *_ = load_pima(zeros="missing")
    table = X.assign(state=["sick" if one else "well" for one in y])
    table[::2].to_csv(folder / "a.csv", index=False)
    table[1::2].to_csv(folder / "b.csv", index=False)
    (folder / "today.txt").write_text(TODAY)
    for policy, more in (("cos", ()), ("protocol", ("--protocol", folder / "today.txt"))):
        arguments = ("--target", "state", "--positive", "sick", *PRICES, "--policy", policy, *more)
        done = run("fit", folder / "a.csv", *arguments, "--out", folder / f"{policy}.adacos")
        assert done.exit_code == 0, done.output + str(done.exception)
    return folder


def test_a_protocol_is_fitted_by_names_of_classes(files: Path) -> None:
    policy = load(files / "protocol.adacos")
    assert isinstance(policy, ProtocolClassifier)
    assert policy.protocol_.answers == ("1", "0")
    text = run("protocol", files / "protocol.adacos").stdout
    assert DecisionProtocol(text).covariates == ("Glucose",)
    out = files / "written.txt"
    assert run("protocol", files / "protocol.adacos", "--out", out).exit_code == 0
    assert DecisionProtocol.read(out).statements == policy.protocol_.statements


def test_a_model_next_to_text_and_to_a_model(files: Path) -> None:
    both = (files / "today.txt", files / "protocol.adacos")
    held = ("--data", files / "b.csv", "--target", "state")
    done = run("compare", files / "cos.adacos", *both, *held)
    assert done.exit_code == 0, done.output
    assert "than cos" in done.output or "not shown to differ" in done.output
    first, text, model = json.loads(
        run("compare", files / "cos.adacos", *both, *held, "--json").stdout
    )["policies"]
    assert (first["name"], text["name"]) == ("cos", "today")
    assert text["total"] == model["total"]
    assert first["total"]["more"]["estimate"] == 0
    seen = run("compare", files / "cos.adacos", both[0], "--data", files / "a.csv", *held[2:])
    assert seen.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("compare", "cos.adacos", "absent.txt", "--data", "b.csv"), "readable text file"),
        (("compare", "cos.adacos", "cos.adacos", "--data", "b.csv"), "different files"),
        (("fit", "a.csv", *PRICES, "--protocol", "today.txt"), "goes with --policy protocol"),
    ],
)
def test_mistakes(files: Path, arguments: tuple[str, ...], reported: str) -> None:
    named = [files / one if "." in one and one[0] != "-" else one for one in arguments]
    done = run(*named, "--target", "state")
    assert isinstance(done.exception, InvalidInputError)
    assert reported in str(done.exception)
    done = run("protocol", files / "cos.adacos")
    assert "must ask by a tree" in str(done.exception)


def test_a_protocol_in_a_pipeline_of_files_is_whole(files: Path, tmp_path: Path) -> None:
    policy = load(files / "protocol.adacos")
    save(policy, tmp_path / "again.adacos")
    assert load(tmp_path / "again.adacos").protocol_ == policy.protocol_


def test_a_person_asks_what_else_there_is_in_the_terminal(files: Path) -> None:
    model = files / "cos.adacos"
    typed = "other\nbecause the ward wants it\n2\nstop\nbecause it was late\n\n"
    arguments = ("ask", str(model), "--must", "Pregnancies", "--never", "BMI")
    done = CliRunner().invoke(app, list(arguments), input=typed)
    assert done.exit_code == 0, done.output
    listed = [line.split()[:2] for line in done.output.splitlines()]
    assert ["Pregnancies", "1.00"] in listed
    assert "BMI" not in [line[0] for line in listed if line]
    assert done.output.count("noted") == 2
    wrong = CliRunner().invoke(app, [*arguments[:2], "--never", "BIM"])
    assert "Did you mean BMI" in str(wrong.exception)
