"""Fast-and-frugal trees, learned by cost: one question after the other, each with a way out.

After each question but the last one of two sides has its answer, and the others continue. Questions
are added greedily: the one after which the rows that are left cost least, what it costs included,
if each side were answered at once. The side that costs less a row leaves. A value that is
unavailable continues with the next question.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.costs import CostTable
from adacos.protocols import DecisionProtocol
from adacos.protocols.language import Answer, Block, Choice, Condition, Negation, ValueTest, written
from adacos.tables.encoder import TableEncoder
from adacos.typing import Bools, Floats, Ints

# Cuts of a number that are tried, and the fewest rows on a side.
MOST_CUTS, LEAST_ROWS = 20, 5


class Question(NamedTuple):
    """A question, what the rows cost after it, and which of them leave with which answer."""

    condition: Condition
    covariate: int
    cost: float
    leave: Bools
    answer: int


class Learner(NamedTuple):
    """Rows to learn from, with what they and their answers cost.

    Attributes
    ----------
    encoded, y : the rows and the numbers of their classes.
    encoder, costs : their columns, and what they cost.
    labels : what may be answered, as text.
    """

    encoded: Floats
    y: Ints
    encoder: TableEncoder
    costs: CostTable
    labels: tuple[str, ...]

    def rows(self, chosen: Ints) -> Learner:
        """The same with some of the rows."""
        return self._replace(encoded=self.encoded[chosen], y=self.y[chosen])

    def protocols(self, most: int) -> list[DecisionProtocol]:
        """With no question, with one, and so on, up to `most` of them."""
        left, have = np.ones(len(self.y), dtype=np.bool_), np.zeros(len(self.encoder.names), bool)
        block: Block = ()
        found = [self._ended(block, left)]
        for _ in range(most):
            question = self._best(left, have)
            if question is None:
                return found
            answer = (Answer(self.labels[question.answer]),)
            block = (*block, Choice(((question.condition, answer),)))
            left, have[question.covariate] = left & ~question.leave, True
            found.append(self._ended(block, left))
        return found

    def _ended(self, block: Block, left: Bools) -> DecisionProtocol:
        """The protocol in which all rows that are left have one answer."""
        label = int(np.argmin(self._counts(left) @ self.costs.matrix))
        return DecisionProtocol(written((*block, Answer(self.labels[label]))))

    def _counts(self, rows: Bools) -> Floats:
        return np.bincount(self.y[rows], minlength=len(self.costs.matrix)).astype(np.float64)

    def _best(self, left: Bools, have: Bools) -> Question | None:
        """The question that lowers the cost most; None where none does."""
        least = float((self._counts(left) @ self.costs.matrix).min())
        floor = least - 1e-9 * max(abs(least), 1.0)
        best, price = None, self.costs.of_next(have)
        for k in np.flatnonzero(~have).tolist():
            own = self._question(k, left, float(price[k]))
            if own is not None and own.cost < (floor if best is None else best.cost):
                best = own
        return best

    def _question(self, k: int, left: Bools, price: float) -> Question | None:
        """The best question about a covariate."""
        columns = self.encoded[:, self.encoder.source == k]
        rows = np.flatnonzero(left & ~np.isnan(columns[:, 0]))
        levels = self.encoder.categories[k]
        if len(levels):
            code = np.where(columns[rows].max(axis=1) >= 1, columns[rows].argmax(axis=1), -1)
            sides = code[:, None] == np.arange(len(levels))
        else:
            cuts = _cuts(columns[rows, 0])
            sides = columns[rows] <= cuts
        onehot = np.eye(len(self.costs.matrix))[self.y[rows]]
        first = sides.T.astype(np.float64) @ onehot
        second = onehot.sum(axis=0) - first
        size, other = first.sum(axis=1), second.sum(axis=1)
        fewest = max(1, min(LEAST_ROWS, len(self.y) // 20))
        allowed = np.flatnonzero((size >= fewest) & (other >= fewest))
        if len(allowed) == 0:
            return None
        each, rest = first @ self.costs.matrix, second @ self.costs.matrix
        unknown = left.copy()
        unknown[rows] = False
        cost_of_unknown = float((self._counts(unknown) @ self.costs.matrix).min())
        total = price * len(rows) + each.min(axis=1) + rest.min(axis=1) + cost_of_unknown
        best = int(allowed[np.argmin(total[allowed])])
        leaves_first = each[best].min() / size[best] <= rest[best].min() / other[best]
        leave = np.zeros(len(self.y), dtype=np.bool_)
        leave[rows[sides[:, best] == leaves_first]] = True
        answer = int(np.argmin(each[best] if leaves_first else rest[best]))
        name = self.encoder.names[k]
        condition: Condition
        if len(levels):
            condition = ValueTest(name, "in", (levels[best],))
            condition = condition if leaves_first else Negation(condition)
        else:
            condition = ValueTest(name, "<=" if leaves_first else ">", (float(cuts[best]),))
        return Question(condition, k, float(total[best]), leave, answer)


def _cuts(values: Floats) -> Floats:
    """Numbers between neighbouring values, at most `MOST_CUTS` at equal shares of the rows."""
    distinct, count = np.unique(values, return_counts=True)
    between = distinct[:-1] / 2 + distinct[1:] / 2
    between = np.where(between < distinct[1:], between, distinct[:-1])
    if len(between) <= MOST_CUTS:
        return between
    share = np.cumsum(count)[:-1] / len(values)
    wanted = np.searchsorted(share, np.arange(1, MOST_CUTS + 1) / (MOST_CUTS + 1))
    return np.unique(between[np.minimum(wanted, len(between) - 1)])
