"""What goes over the wire: requests made for the covariates of one model, and the answers.

Requests are strict: a covariate that the model does not have, a text for a number, NaN or infinity
is refused with the name of the field. The types are built from the model, so that its OpenAPI
document lists its covariates. Answers that are steps are those of a consultation, with what the
service adds.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic.json_schema import WithJsonSchema
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from adacos.consultation.state import MOST_REASON
from adacos.consultation.steps import Acquire, Alternative, Classify, ValueWarning
from adacos.policies.base import BasePolicy
from adacos.reasons import Value
from adacos.service.settings import Settings
from adacos.tables.dates import EXAMPLE
from adacos.tables.description import description_of
from adacos.tables.kinds import BINARY

# Far beyond any measurement, and far from overflow.
LARGEST = 1e15
CASE_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

Scalar = bool | int | float | str
Items = tuple[tuple[str, Value], ...]
# What a row is known by; an integer as exact as any client can write it.
Key = Annotated[str, Field(min_length=1, max_length=64)] | Annotated[int, Field(ge=0, lt=2**53)]
Course = Literal["followed", "departed", "stopped"]


class Strict(BaseModel):
    """Base of requests: nothing is converted, nothing unknown is passed over.

    A list or an object with more entries than any right one is refused as a whole: one mistake is
    found then, and not one an entry.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _count(cls, given: Any) -> Any:
        return _at_most(given, len(cls.model_fields))


class StepRequest(Strict):
    """What there is of the row."""

    known: dict[str, Any] = {}
    acquired: dict[str, Any] = {}
    ordered: list[str] = []
    unavailable: list[str] = []
    stop: bool = False
    key: Key | None = None
    must: list[str] = []
    never: list[str] = []


class CaseRequest(StepRequest):
    """A finished consultation to be recorded."""

    reason: str = Field(
        "",
        max_length=MOST_REASON,
        description="Why a person departed from what the policy advised.",
    )

    id: str = Field(
        default_factory=lambda: uuid.uuid4().hex,
        pattern=CASE_ID,
        description="Your own identifier, so that a repeated request is recorded once.",
    )


class ScoreRequest(Strict):
    """Rows to be scored."""

    rows: list[dict[str, Any]]
    known: list[str] = []
    keys: list[Key] = []

    @model_validator(mode="after")
    def _one_key_a_row(self) -> Self:
        if self.keys and len(self.keys) != len(self.rows):
            context = {"rows": len(self.rows), "keys": len(self.keys)}
            raise PydanticCustomError(
                "keys", "keys: one for each of the {rows} rows, not {keys}", context
            )
        return self


class OutcomeRequest(Strict):
    """What turned out to be the class of a recorded row."""

    outcome: Any


@dataclass(frozen=True)
class Requests:
    """The request types of one model."""

    step: type[StepRequest]
    case: type[CaseRequest]
    score: type[ScoreRequest]
    outcome: type[OutcomeRequest]


def requests_for(policy: BasePolicy, settings: Settings) -> Requests:
    """Request types that know the covariates and the classes of a policy."""
    encoder = policy.encoder_
    types = {name: _value_type(policy, k) for k, name in enumerate(encoder.names)}
    few = BeforeValidator(lambda given: _at_most(given, len(encoder.names)))
    values: Any = Annotated[
        _values("Values", types, "Values by covariate."), WrapValidator(_in_given_order), few
    ]
    row: Any = Annotated[
        _values(
            "Row",
            {name: kind | None for name, kind in types.items()},
            "Values by covariate; one that is null or absent is not available for the row.",
        ),
        few,
    ]
    # Types made at run time are plain values to the checker.
    literal: Any = Literal
    listed: Any = list
    names: Any = Annotated[
        listed[literal[encoder.names]], Field(max_length=len(encoder.names)), few
    ]
    state = _step_fields(values, names)
    outcome: Any = Annotated[
        Any,
        AfterValidator(lambda given: _one_of(given, policy.classes_.tolist())),
        WithJsonSchema({"enum": policy.classes_.tolist()}),
    ]
    return Requests(
        create_model("StepRequestOfModel", __base__=StepRequest, **state),
        create_model("CaseRequestOfModel", __base__=CaseRequest, **state),
        create_model(
            "ScoreRequestOfModel", __base__=ScoreRequest, **_score_fields(row, names, settings)
        ),
        create_model("OutcomeRequestOfModel", __base__=OutcomeRequest, outcome=outcome),
    )


def _step_fields(values: Any, names: Any) -> dict[str, Any]:
    listed: Any = list
    return {
        "known": (values, Field({}, description="Known from the start, at no cost.")),
        "acquired": (
            Annotated[
                values, BeforeValidator(_joined, json_schema_input_type=values | listed[values])
            ],
            Field(
                {},
                description="Acquired since, and paid for. Where the order decides what was paid, "
                "a list of objects fixes it; names of one object may be sorted on their way.",
            ),
        ),
        "ordered": (
            names,
            Field(
                [],
                description="Ordered, and not back yet. It counts as paid, and as waited for "
                "together with what was asked for with it; the next step is decided when it is "
                "acquired or unavailable.",
            ),
        ),
        "unavailable": (names, Field([], description="Cannot be acquired for this row.")),
        "must": (names, Field([], description="Asked first, in any case.")),
        "never": (names, Field([], description="Not asked: decided as if it were unavailable.")),
        "stop": (bool, Field(False, description="Decide now, whatever would come next.")),
        "key": (
            Key | None,
            Field(
                None,
                description="What the row is known by, the same in every request about it. Where "
                "a mean budget is kept by two policies, it decides which of them the row has.",
            ),
        ),
    }


def _score_fields(row: Any, names: Any, settings: Settings) -> dict[str, Any]:
    listed: Any = list
    few = BeforeValidator(lambda given: _at_most(given, settings.max_rows))
    # The first wrong row is told, with all that is wrong in it.
    first = FailFast()
    most = settings.max_rows
    rows = Annotated[listed[row], Field(min_length=1, max_length=most), first, few]
    return {
        "rows": (rows, ...),
        "known": (names, Field([], description="Covariates known from the start in every row.")),
        "keys": (
            Annotated[listed[Key], Field(max_length=most), first, few],
            Field([], description="A key for each row; without them that is its place, from 0."),
        ),
    }


def _at_most(given: Any, most: int) -> Any:
    """What was given, unless it has more entries than there can be."""
    if isinstance(given, (dict, list)) and len(given) > most:
        context = {"most": most, "given": len(given)}
        raise PydanticCustomError("too_many", "At most {most} entries, not {given}", context)
    return given


def _joined(given: Any) -> Any:
    """One object of a list of objects; a name may be in one of them only."""
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        return given
    joined = {name: value for one in given for name, value in one.items()}
    if len(joined) < sum(map(len, given)):
        raise PydanticCustomError("twice", "A covariate is in two objects of the list")
    return joined


def _in_given_order(given: Any, check: Any) -> Any:
    """Checked values in the order of the request, which is that of acquisition."""
    checked = check(given)
    return {name: checked[name] for name in given}


def _values(title: str, types: dict[str, Any], text: str) -> Any:
    make: Any = TypedDict
    made = make(title, {name: NotRequired[kind] for name, kind in types.items()})
    made.__doc__ = text
    made.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    return made


def _value_type(policy: BasePolicy, k: int) -> Any:
    encoder = policy.encoder_
    shown = description_of(policy).of(encoder.names[k])
    unit = f" in {shown.unit}" if shown.unit else ""
    if encoder.categories[k]:
        text = f"One of {', '.join(encoder.categories[k][:20])}; others are flagged."
        # Printable, and more than blanks.
        pattern = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"
        return Annotated[str, Field(max_length=200, pattern=pattern, description=text)]
    text = f"Trained on {encoder.low[k]:g} to {encoder.high[k]:g}{unit}; others are flagged."
    number: Any = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
    if encoder.names[k] in encoder.date_forms:
        text = f"A date such as {EXAMPLE}, or a number taken from it. {text}"
        return Annotated[number | Annotated[str, Field(max_length=40)], Field(description=text)]
    if encoder.kinds[k] == BINARY:
        return Annotated[bool | number, Field(description=text)]
    return Annotated[number, Field(description=text)]


def _one_of(given: Any, classes: list[Any]) -> Any:
    for known in classes:
        # In Python True equals 1, in JSON it does not.
        if isinstance(given, bool) == isinstance(known, bool) and given == known:
            return known
    *others, last = map(repr, classes)
    context = {"others": ", ".join(others), "last": last}
    raise PydanticCustomError("class", "Input should be {others} or {last}", context)


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str
    message: str


class Problem(BaseModel):
    """Why a request was refused; never repeats a value."""

    detail: str
    fields: list[FieldProblem] = []


@dataclass(frozen=True)
class Lowered:
    """What a panel takes off the cost: `had` are members that are there already."""

    panel: str
    covariates: tuple[str, ...]
    had: tuple[str, ...]
    amount: float


@dataclass(frozen=True, kw_only=True)
class AcquireAnswer(Acquire):
    """Acquire these covariates next; where `ordered` is true, they were, and are waited for.

    `lowered` says why they cost less than each alone; `sharing` lists further members of their
    panels, and what each would cost afterwards. `model` answered; `order` is that in which what was
    acquired is taken to have been paid. `alternatives` are all open questions, the one with the
    least expected total cost first.
    """

    action: Literal["acquire"]
    model: str
    order: tuple[str, ...]
    lowered: tuple[Lowered, ...]
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, kw_only=True)
class ClassifyAnswer(Classify):
    """Stop and give this label; `stopped_early` if more would have been asked for.

    `not_covered` says why a certificate of the model does not cover the consultation; it is empty
    where it does. `model` answered; `order` is that in which what was acquired is taken to have
    been paid.
    """

    action: Literal["classify"]
    model: str
    order: tuple[str, ...]
    stopped_early: bool
    not_covered: str


StepAnswer = Annotated[AcquireAnswer | ClassifyAnswer, Field(discriminator="action")]


@dataclass(frozen=True, kw_only=True)
class RowWarning(ValueWarning):
    """Something odd about a value of a row (counted from 0)."""

    row: int


class RowAnswer(BaseModel):
    """What the policy did with a row.

    `probability` is that of the second class. With three or more classes it is that of the label,
    and `probabilities` holds that of each; of two it is absent.
    """

    label: Scalar
    probability: float
    probabilities: dict[str, float] = Field(default_factory=dict)
    acquired: list[str]
    cost: float
    expected_cost: float


class ScoreAnswer(BaseModel):
    """Results in the order of the rows, and the model that they are of."""

    model: str
    results: list[RowAnswer]
    warnings: list[RowWarning]


class CaseAnswer(BaseModel):
    """A recorded consultation.

    `course` is "followed" if nothing was known from the start, every question was answered as asked
    and no value is unlike those in training; "stopped" if it was decided while more would have been
    asked for; else "departed".
    `probability` is that of the second class, with three or more classes that of the label.
    `version` is the number of outcomes that were recorded; the ETag of the answer holds it too.
    """

    id: str
    recorded: str
    model: str
    course: Course
    label: Scalar
    probability: float
    cost: float
    expected_cost: float
    outcome: Scalar | None
    version: int


class HealthAnswer(BaseModel):
    """The service is up, with this model."""

    status: Literal["ok"]
    model: str
    version: str


class ReadyAnswer(BaseModel):
    """Whether requests can be answered: "absent" where no case log is kept."""

    status: Literal["ready", "not ready"]
    model: str
    case_log: Literal["ready", "failing", "absent"]
