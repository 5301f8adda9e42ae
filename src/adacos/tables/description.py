"""What people call things: the title of a model, its classes and currency, and each covariate.

A description is one TOML file. It changes no number; it is kept with the model, and everything that
shows the model speaks its words.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import BINARY
from adacos.validation import choices, listed, real, refuse_pipe

Value = float | str | bool

_EXAMPLE = 'For example title = "Diabetes" and below [covariates.Age] the line unit = "years".'


@dataclass(frozen=True)
class CovariateDescription:
    """How a covariate is presented.

    Attributes
    ----------
    label, unit, help : in place of its name, of its values, and a word on how it is had.
    values : names of coded values, by the code as text.
    range : least and greatest plausible value; others are asked for twice.
    """

    label: str | None = None
    unit: str | None = None
    help: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Description:
    """How a model is presented; `classes` names the two classes, by the class as text."""

    title: str | None = None
    outcome: str | None = None
    classes: Mapping[str, str] = field(default_factory=dict)
    currency: str | None = None
    intended_use: str | None = None
    citation: str | None = None
    covariates: Mapping[str, CovariateDescription] = field(default_factory=dict)

    def of(self, name: str) -> CovariateDescription:
        """The description of one covariate."""
        return self.covariates.get(name, CovariateDescription())

    def label(self, name: str) -> str:
        """A covariate in words."""
        return self.of(name).label or name

    def class_name(self, label: Any) -> str:
        """A class in words."""
        return self.classes.get(str(label), str(label))

    def money(self, amount: float) -> str:
        """An amount with its currency, if that is known."""
        text = f"{amount:,.2f}"
        return f"{text}\N{NO-BREAK SPACE}{self.currency}" if self.currency else text

    def shown(self, name: str, value: Value) -> str:
        """A value in words: the label of its code, or the number with its unit."""
        covariate = self.of(name)
        text = _code(value)
        if text in covariate.values:
            return covariate.values[text]
        return f"{text} {covariate.unit}" if covariate.unit else text

    def implausible(self, name: str, value: Value) -> str:
        """Why a value is not plausible, in words; empty if it is, or if nothing was said."""
        covariate = self.of(name)
        if (
            covariate.range is None
            or isinstance(value, str)
            or covariate.range[0] <= value <= covariate.range[1]
        ):
            return ""
        low, high = covariate.range
        unit = f" {covariate.unit}" if covariate.unit else ""
        return (
            f"{self.label(name)} = {_code(value)} lies outside what is plausible, "
            f"{low:g} to {high:g}{unit}."
        )


def read_description(path: str | Path) -> Description:
    """A description from a TOML file."""
    refuse_pipe("description", path)
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInputError(
            "description", "must be a readable TOML file", f"{path}: {error}", _EXAMPLE
        ) from error
    named = content.pop("covariates", {})
    if not isinstance(named, dict) or not all(isinstance(own, dict) for own in named.values()):
        raise InvalidInputError(
            "description.covariates", "must hold one table per covariate", named, _EXAMPLE
        )
    given = _checked(content, Description, "description", texts=("classes",))
    covariates = {name: _covariate(name, own) for name, own in named.items()}
    return Description(**given, covariates=covariates)


class Describable(Protocol):
    """What a fitted policy has that can be described."""

    encoder_: TableEncoder
    classes_: NDArray[Any]
    description_: Description | None


def describe(policy: Describable, description: Description | str | Path) -> None:
    """Give a fitted policy a description that is kept with it.

    Parameters
    ----------
    policy : classifier
        A fitted policy.
    description : Description, str or path-like
        The description, or the TOML file that holds it: title, outcome, names of the classes,
        currency, and for each covariate its label, unit, help and range.

    Raises
    ------
    InvalidInputError
        If it speaks of covariates, classes or categories that the policy does not have.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from adacos import COSClassifier, describe, load_pima
    >>> X, y, *_ = load_pima()
    >>> policy = COSClassifier(strengths="common").fit(X[:200], y[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "words.toml"
    ...     _ = file.write_text('title = "Diabetes"')
    ...     describe(policy, file)
    >>> policy.description_.title
    'Diabetes'
    """
    if not isinstance(description, Description):
        description = read_description(description)
    encoder = policy.encoder_
    check_description(description, encoder.names, policy.classes_.tolist())
    for name, covariate in description.covariates.items():
        _check_values(encoder, encoder.names.index(name), covariate)
    policy.description_ = description


def check_description(description: Description, names: Sequence[str], classes: list[Any]) -> None:
    """Covariates and classes that it speaks of must be those of the model."""
    _check_names("covariates", description.covariates, names)
    _check_names("classes", description.classes, [str(label) for label in classes])


def description_of(policy: Describable) -> Description:
    """The description of a policy, empty if it was given none."""
    return policy.description_ or Description()


def coded_values(encoder: TableEncoder, k: int, description: Description) -> list[Value]:
    """The values to choose from, for a covariate that has few: categories, two values, or codes."""
    if encoder.categories[k]:
        return list(encoder.categories[k])
    codes = [float(code) for code in description.of(encoder.names[k]).values]
    if encoder.kinds[k] == BINARY:
        return sorted({float(encoder.low[k]), float(encoder.high[k]), *codes})
    return list(codes)


def _covariate(name: str, content: dict[str, Any]) -> CovariateDescription:
    parameter = f"description.covariates[{name!r}]"
    given = _checked(content, CovariateDescription, parameter, texts=("values",), others=("range",))
    if "range" in given:
        ends = given["range"]
        if not isinstance(ends, list) or len(ends) != 2:
            raise InvalidInputError(
                f"{parameter}.range", "must be two numbers", ends, "For example range = [0, 120]."
            )
        low, high = (real(f"{parameter}.range", end) for end in ends)
        if low >= high:
            raise InvalidInputError(
                f"{parameter}.range", "must begin below its end", ends, "Exchange the two."
            )
        given["range"] = low, high
    return CovariateDescription(**given)


def _checked(
    content: dict[str, Any],
    kind: type[Any],
    parameter: str,
    *,
    texts: Sequence[str],
    others: Sequence[str] = (),
) -> dict[str, Any]:
    """The entries of a table: texts, tables of texts for those in `texts`, `others` unchecked."""
    allowed = [f.name for f in fields(kind)]
    unknown = [key for key in content if key not in allowed]
    if unknown:
        raise InvalidInputError(
            parameter,
            "holds an entry that is not known",
            listed(unknown),
            choices(unknown, allowed, "There are"),
        )
    for key, value in content.items():
        if key in others:
            continue
        entries = [value]
        if key in texts:
            entries = list(value.values()) if isinstance(value, dict) else [None]
        if not all(isinstance(entry, str) and entry.strip() for entry in entries):
            rule = "must be a table of texts" if key in texts else "must be a text"
            raise InvalidInputError(f"{parameter}.{key}", rule, value, _EXAMPLE)
    return dict(content)


def _check_names(entry: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InvalidInputError(
            f"description.{entry}",
            f"must name {entry} of the model",
            listed(unknown),
            choices(unknown, names, "There are"),
        )


def _check_values(encoder: TableEncoder, k: int, description: CovariateDescription) -> None:
    """Coded values must be categories, or numbers inside the training range."""
    parameter = f"description.covariates[{encoder.names[k]!r}]"
    levels = encoder.categories[k]
    if levels:
        if description.range is not None:
            raise InvalidInputError(
                f"{parameter}.range", "is for numbers", description.range, "Categories have none."
            )
        unknown = [code for code in description.values if code not in levels]
        remedy = choices(unknown, levels, "Its categories are")
    else:
        low, high = encoder.low[k], encoder.high[k]
        unknown = [code for code in description.values if not _is_code(code, low, high)]
        remedy = f"In training it was {low:g} to {high:g}; write codes as {low:g} is written here."
    if unknown:
        raise InvalidInputError(
            f"{parameter}.values", "must name values seen in training", listed(unknown), remedy
        )


def _is_code(text: str, low: float, high: float) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return bool(low <= number <= high) and _code(number) == text


def _code(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:g}"
