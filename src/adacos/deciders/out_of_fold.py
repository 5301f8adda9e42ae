"""Training rows decided about by models that did not see them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias

from adacos.decision import Decider, Decision, Rows, State
from adacos.engine import run
from adacos.typing import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class FoldedDecider(Decider[State]):
    """A decider that holds what models without the row say of each training row."""

    @abstractmethod
    def judged(self, state: State, rows: Ints) -> State:
        """A state of training rows with the log-odds of models that did not see them."""

    def out_of_fold(self, rows: Ints) -> OutOfFoldDecider[State]:
        """Decide about these training rows as if they had not been there.

        Parameters
        ----------
        rows : ndarray of int of shape (n_rows,)
            Their numbers among the training rows.

        Returns
        -------
        OutOfFoldDecider
            A decider about these rows alone, in this order.
        """
        return OutOfFoldDecider(self.terms, self, rows)

    def answers(self, rows: Ints, encoded: Callable[[], Floats]) -> Ints:
        """Give the labels of training rows where they stop, by models that did not see them.

        Parameters
        ----------
        rows : ndarray of int of shape (n_rows,)
            Their numbers among the training rows.
        encoded : callable
            Gives their encoded values; not called where the values do not matter.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            The numbers of the labels.
        """
        return run(self.out_of_fold(rows), encoded()).label


AnyFoldedDecider: TypeAlias = "FoldedDecider[Any]"


class OutOfFoldState(NamedTuple, Generic[State]):
    """A state with the numbers of its training rows."""

    state: State
    rows: Ints


@dataclass(frozen=True, eq=False)
class OutOfFoldDecider(Decider[OutOfFoldState[State]]):
    """A decider about training rows, by log-odds of models that did not see them.

    Attributes
    ----------
    inner : the decider about rows that nobody has seen.
    rows : numbers of the training rows that it is run on.
    """

    inner: FoldedDecider[State]
    rows: Ints

    @property
    def opening(self) -> Ints:
        """Covariates that every row acquires together, before the first decision."""
        return self.inner.opening

    def begin(self, rows: Rows) -> OutOfFoldState[State]:
        """State of rows that have some covariates."""
        assert rows.numbers is not None
        return OutOfFoldState(self.inner.begin(rows), self.rows[rows.numbers])

    def decide(self, state: OutOfFoldState[State]) -> Decision:
        """What comes next for each row, by models that did not see it."""
        return self.inner.decide(self.inner.judged(state.state, state.rows))

    def advance(
        self, state: OutOfFoldState[State], going: Bools, covariates: Ints
    ) -> OutOfFoldState[State]:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        moved = self.inner.advance(state.state, going, covariates)
        return OutOfFoldState(moved, state.rows[going])

    def limit(self, state: OutOfFoldState[State], left: Floats) -> OutOfFoldState[State]:
        """A state of rows that can pay that much more, at most."""
        return state._replace(state=self.inner.limit(state.state, left))
