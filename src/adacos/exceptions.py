"""Errors a user can meet: each names the parameter, the rule, the value and the remedy."""

from __future__ import annotations

import math
import re
from typing import Any

# A cell such as '12,5' in what is said of a row that cannot be read.
_DECIMAL_COMMA = re.compile(r"'[+-]?\d+,\d+' in column .* a decimal point")


class AdacosError(Exception):
    """Base of every error raised on purpose by this library."""


class PositiveClassWarning(UserWarning):
    """Which of two words is the positive class was not said, and matters at these costs."""


class TableWarning(UserWarning):
    """Something about rows looks like a mistake: see `check` of a policy, or they are empty."""


class UnstatedCostWarning(UserWarning):
    """Covariates have a cost and errors have none: each error counts as 1."""


class UnusedCostWarning(UserWarning):
    """A stated false-negative cost is not used: a target recall takes its place."""


class DecisionWarning(UserWarning):
    """A decision is never the cheapest at the stated costs, so that it is never taken."""


class UnspentBudgetWarning(UserWarning):
    """A budget pays for no covariate, or for no set of a policy: nothing is acquired."""


class TrainingRowsWarning(UserWarning):
    """Rows on which a policy is evaluated are rows that it was trained on."""


class OtherAnswerWarning(UserWarning):
    """At the stated costs another answer than that of a rule is cheaper, and is given."""


class ProviderWarning(UserWarning):
    """A provider failed for good: for some rows its covariate counts as not available."""


class WorkerWarning(UserWarning):
    """No worker of a Dask scheduler answers: all have ended, or are frozen."""


class InvalidInputError(AdacosError, ValueError):
    """A parameter or a table breaks a rule.

    Parameters
    ----------
    parameter : str
        Name of the offending argument.
    rule : str
        What must hold.
    value : object
        What was received. The message shows it where it is short; an empty text is not shown.
    remedy : str
        What the caller can do about it.

    Examples
    --------
    >>> from adacos import Costs
    >>> try:
    ...     Costs({"age": -1.0})
    ... except ValueError as error:
    ...     print(error.parameter, "|", error.rule, "|", error.value)
    cost of 'age' | must be a finite number >= 0 | -1.0
    """

    def __init__(self, parameter: str, rule: str, value: Any, remedy: str) -> None:
        self.parameter, self.rule, self.value, self.remedy = parameter, rule, value, remedy
        super().__init__(f"{parameter}: {self.text}")

    @property
    def text(self) -> str:
        """The message without the name of the argument."""
        shown = shortened(self.value)
        if not isinstance(self.value, str) and ("\n" in shown or shown.endswith("…")):
            shown = ""  # a table or another object, whose beginning says little
        return f"{self.rule}{shown and f'; received {shown}'}. {self.remedy}".strip()

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would rebuild from the message alone; worker processes send errors by pickle.
        return type(self), (self.parameter, self.rule, self.value, self.remedy)


class NotCertifiableError(InvalidInputError):
    """The calibration rows do not prove the recall asked for.

    Parameters
    ----------
    recall : float
        What was asked for.
    confidence : float
        With which confidence.
    n_positives : int
        Positive calibration rows.
    misses : int
        How many of them were missed.
    certifiable : float
        The largest recall that these rows certify in this same attempt.
    needed : int
        Positives that would prove the recall asked for if no more of them were missed.
    of_class : label
        With three or more classes, the one whose recall it is.
    """

    def __init__(
        self,
        recall: float,
        confidence: float,
        n_positives: int,
        misses: int,
        certifiable: float,
        needed: int,
        of_class: Any = None,
    ) -> None:
        counts = recall, confidence, n_positives, misses, certifiable, needed
        self._arguments = *counts, of_class
        self.certifiable, self.needed = certifiable, needed
        self.of_class = of_class
        kind, member, otherwise = "positive", "positives", ""
        if of_class is None:
            otherwise = ", or answer positive for every row with on_uncertifiable='always_positive'"
        else:
            kind, member = f"class {of_class}", "such rows"
        more = f"{recall:g} needs at least {needed} {member}, {needed - n_positives} more. Add "
        remedy = f"{more}calibration rows{otherwise}"
        # Two standard errors more than the recall allows: no chance result.
        allowed = (1 - recall) * n_positives
        if misses > allowed + 2 * math.sqrt(allowed * recall):
            remedy = (
                f"{recall:g} allows {1 - recall:.3g} of the {member} to be missed: more rows like "
                f"these would not prove it. Use covariates or a policy that separate the classes "
                f"better{otherwise}"
            )
        super().__init__(
            "target_recall",
            f"{recall:g} cannot be certified with confidence {confidence:g} on these rows",
            f"{n_positives} {kind} calibration rows, of which {misses} missed",
            f"A recall of {math.floor(certifiable * 1e4) / 1e4:g} is certified in this same "
            f"attempt with on_uncertifiable='largest'; {remedy}. Asking these rows again for a "
            "lower recall is another attempt, and the confidence counts attempts, refused ones "
            "included.",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments


class MalformedRowsError(AdacosError, ValueError):
    """Rows of a file cannot be read.

    Parameters
    ----------
    source : str
        The file.
    rows : list of str
        One text for each row, with its line.
    """

    def __init__(self, source: str, rows: list[str]) -> None:
        self.source, self.rows = source, rows
        shown = "".join(f"\n  {row}" for row in rows[:20])
        more = f"\n  and {len(rows) - 20} more" if len(rows) > 20 else ""
        comma = any(_DECIMAL_COMMA.search(row) for row in rows)
        super().__init__(
            f"{source}: {len(rows)} malformed row{'s' if len(rows) > 1 else ''}{shown}{more}\n"
            + ("Numbers with a decimal comma are read with `--decimal ,`. " if comma else "")
            + "Correct them, or leave them out with --skip-malformed."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.source, self.rows)


class ModelFileError(AdacosError, ValueError):
    """A model file cannot be read: truncated, foreign, altered, or of a newer format."""


class MissingExtraError(AdacosError, ImportError):
    """An optional dependency is absent; the message holds the install command.

    Parameters
    ----------
    package : str
        What is absent.
    extra : str
        The extra that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f"this needs the package {package!r}, which is not installed. "
            f"It comes with the extra {extra!r}: pip install '.[{extra}]' in a clone of adacos, or "
            f"pip install 'FILE.whl[{extra}]' with the wheel it was installed from."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.package, self.extra)


def shortened(value: Any, limit: int = 120) -> str:
    """A value as it is written, cut where it is long."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        text = f"{type(value).__name__} too long to be written"
    except Exception:  # an object of someone else
        text = f"{type(value).__name__} that cannot be written"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def describe_error(error: BaseException) -> str:
    """Kind and message of an error of someone else, whose message may itself fail."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}, whose message cannot be written"
