"""A written protocol as a policy: its questions, its answers, and how often they are right.

What is asked and answered is the protocol's. The rows of `fit` say how likely each class is at each
of its places, so that probabilities and expected costs are honest; they change no answer.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from adacos.costs import Costs, total_of
from adacos.deciders.protocol import ProtocolDecider
from adacos.decision import Terms
from adacos.engine import AcquisitionResult, run
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import stratified_folds
from adacos.policies.base import BasePolicy, TrainingTable
from adacos.policies.frugal import Learner
from adacos.policies.protocol_tree import ProtocolNode, protocol_nodes
from adacos.policies.tree import Tree, tree_of
from adacos.protocols import DecisionProtocol, ProtocolGraph, bind
from adacos.protocols.graph import widened_encoder
from adacos.protocols.protocol import as_protocol
from adacos.tables.row_digests import RowDigests
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, check_parameters, maybe, whole

# Rows with the shares of the whole table that may be added to those of a place.
SMOOTHING = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


class ProtocolClassifier(BasePolicy):
    """A protocol that people wrote, as a policy like any other.

    Each test acquires its covariate when it is reached. The answer at the end is that of the
    protocol, even where another would cost less. Its probability is the share of the class among
    the training rows that came to the same place. Without a protocol a fast-and-frugal tree is
    learned: one question after the other, each with a way out.

    Parameters
    ----------
    protocol : DecisionProtocol or str, default=None
        The protocol, or its text. None learns a fast-and-frugal tree.
    max_depth : int, default=4
        Most questions of a tree that is learned.
    cv : int, default=5
        Number of folds by which the number of its questions is chosen.
    random_state : int, default=0
        Seed of these folds.

    Attributes
    ----------
    protocol_ : DecisionProtocol
        The protocol that is followed.
    shares_ : ndarray of shape (n_places, n_classes)
        Share of each class at each place: tests in the order in which they are reached, then
        answers. Shares are smoothed towards those of the whole table.
    rows_ : ndarray of int of shape (n_places,)
        How many training rows came to each place.
    smoothing_ : float
        How many rows with the shares of the whole table were added for that.
    tree_ : Tree
        What became of the training rows; print it to see it.

    See Also
    --------
    DecisionProtocol : How a protocol is written, read and made of a fitted tree.
    compare : What it costs next to another policy.

    Notes
    -----
    How much the shares are smoothed is what predicts best the class of each row from the others. A
    tree that is learned is judged on rows that did not take part in it. Compared with a number at
    the end of the training range or beyond, a value is not held at that end, as it is by other
    policies.

    Examples
    --------
    >>> from adacos import Costs, ProtocolClassifier, load_pima
    >>> X, y, prices, *_ = load_pima(zeros="missing")
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> protocol = \"\"\"
    ... if Glucose >= 126 or BMI > 30 and Age > 40: 1
    ... unavailable: 1
    ... else: 0
    ... \"\"\"
    >>> policy = ProtocolClassifier(costs, protocol=protocol).fit(X, y)
    >>> policy.acquire(X)
    AcquisitionResult(768 rows, 1.93 of 8 covariates and 18.44 paid per row)
    """

    takes_many_classes = True

    saved_fields: ClassVar[Fields] = {
        "protocol": DecisionProtocol | str | None,
        "protocol_": DecisionProtocol,
        "shares_": Floats,
        "rows_": Ints,
        "smoothing_": float,
        "training_rows_": RowDigests | None,
        "tree_": Tree,
    }

    constraints: ClassVar[Constraints] = {
        "protocol": maybe(lambda name, value: as_protocol(value)),
        "max_depth": whole(0),
        "cv": whole(2),
        "random_state": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        protocol: DecisionProtocol | str | None = None,
        max_depth: int = 4,
        cv: int = 5,
        random_state: int = 0,
    ) -> None:
        self.costs = costs
        self.protocol = protocol
        self.max_depth = max_depth
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn how likely each class is at each place of the protocol."""
        training = self.begin_fit(X, y)
        labels = training.y.astype(np.intp)
        if self.protocol is not None:
            self.protocol_ = as_protocol(self.protocol)
            return self._count(training.encoded, labels)
        # Of a tree that is learned it matters with which rows.
        self.training_rows_ = RowDigests.of(training.encoded, self.random_state)
        self.protocol_, unseen, of = self._learned(training, labels)
        return self._count(training.encoded, labels, unseen, of)

    def from_model(self, fitted: Any, X: Any, y: Any) -> Self:
        """Follow the protocol with the columns, classes and costs of another policy.

        Parameters
        ----------
        fitted : policy
            A fitted policy.
        X : array-like or data frame of shape (n_rows, n_covariates)
            Rows that say how likely each class is at each place; they change no answer.
        y : array-like of shape (n_rows,)
            Their classes.

        Returns
        -------
        self
            The policy.
        """
        check_is_fitted(fitted)
        if self.protocol is None:
            remedy = "Pass ProtocolClassifier(protocol=...), or call fit(X, y)."
            raise InvalidInputError("protocol", "must be given for from_model", None, remedy)
        check_parameters(self)
        self._forget()
        self.costs, self.n_features_in_ = fitted.costs, fitted.n_features_in_
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
        self.classes_, self.encoder_ = fitted.classes_, fitted.encoder_
        self.cost_table_, self.description_ = fitted.cost_table_, fitted.description_
        self.protocol_ = as_protocol(self.protocol)
        return self._count(self._encode(X), np.searchsorted(self.classes_, np.asarray(y)))

    def _count(
        self,
        encoded: Floats,
        labels: Ints,
        unseen: Floats | None = None,
        of: Ints | None = None,
    ) -> Self:
        """Learn how likely each class is at each place.

        Where the protocol was learned from these rows, `unseen` has class counts at the places of
        rows that took no part, and `of` their classes. Else each row is predicted from the others.
        """
        self.encoder_ = widened_encoder(self.protocol_, self.encoder_)
        graph = bind(self.protocol_, self.encoder_, self._labels)
        place, way = self._walked(graph, encoded)
        onehot = np.eye(len(self.classes_))[labels]
        counts = way.T.astype(np.float64) @ onehot
        if unseen is None or of is None:
            unseen, of = counts[place] - onehot, labels
        share = onehot.mean(axis=0)
        self.smoothing_ = best_smoothing(unseen, of, share)
        self.shares_ = smoothed(counts, share, self.smoothing_)
        self.rows_ = way.sum(axis=0)
        self.finish_fit()
        self.tree_ = self._tree_of_rows(encoded, run(self.decider_, encoded))
        return self

    def make_decider(self, terms: Terms) -> ProtocolDecider:
        """Give the decider that follows the protocol."""
        graph = bind(self.protocol_, terms.encoder, self._labels)
        return ProtocolDecider(terms, graph, self.shares_, self.rows_)

    @property
    def has_tree(self) -> bool:
        """Whether the protocol asks anything."""
        return bool(self.tree_.places[0].question)

    @property
    def nodes_(self) -> tuple[ProtocolNode, ...]:
        """The first questions of the protocol, the root first."""
        return protocol_nodes(bind(self.protocol_, self.encoder_, self._labels))

    @property
    def _labels(self) -> NDArray[Any]:
        """What it may answer: the classes, or what is decided instead."""
        named = self.cost_table_.decisions
        return self.classes_ if named is None else np.array(named)

    def _tree_of_rows(self, encoded: Floats, result: AcquisitionResult) -> Tree:
        """What became of rows; the labels of the result are 0, 1, …."""
        return tree_of(self.nodes_, self.encoder_, encoded, result, self._labels.tolist())

    def _walked(self, graph: ProtocolGraph, encoded: Floats) -> tuple[Ints, Bools]:
        """Where rows end up, and the way, when whatever is there may be acquired."""
        there = ~np.isnan(encoded[:, self.encoder_.first])
        return graph.locate(encoded, self.encoder_.source, there, there)

    def _learned(
        self, training: TrainingTable, labels: Ints
    ) -> tuple[DecisionProtocol, Floats, Ints]:
        """A fast-and-frugal tree, and of rows at places of trees without them the class counts.

        It has as many questions as cost least on rows that took no part. The classes of these rows
        come last.
        """
        names = tuple(str(label) for label in self._labels.tolist())
        learner = Learner(training.encoded, labels, self.encoder_, self.cost_table_, names)
        every = learner.protocols(self.max_depth)
        folds = stratified_folds(
            training.encoded, training.y, self.cv, self.random_state, training.groups
        )
        cost = np.zeros(len(every))
        counts: list[list[Floats]] = [[] for _ in every]
        of = []
        for fold in np.unique(folds).tolist():
            kept, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            without = learner.rows(kept).protocols(self.max_depth)
            of.append(labels[held])
            for number in range(len(every)):
                # A tree that ends earlier is the same with more questions allowed.
                protocol = without[min(number, len(without) - 1)]
                graph = bind(protocol, self.encoder_, self._labels)
                own, _ = self._walked(graph, training.encoded[kept])
                place, way = self._walked(graph, training.encoded[held])
                table = np.zeros((len(graph), len(self.classes_)))
                np.add.at(table, (own, labels[kept]), 1.0)
                counts[number].append(table[place])
                cost[number] += self._cost(graph, place, way, labels[held])
        best = int(np.argmin(cost))
        return every[best], np.vstack(counts[best]), np.concatenate(of)

    def _cost(self, graph: ProtocolGraph, place: Ints, way: Bools, true: Ints) -> float:
        """Total cost of rows that went this way, by the price list alone."""
        asked = np.array([test.covariate for test in graph.tests], dtype=np.intp)
        acquired = np.zeros((len(way), len(self.encoder_.names)), dtype=np.bool_)
        for number, k in enumerate(asked.tolist()):
            acquired[:, k] |= way[:, number]
        label = graph.label_of(place)
        matrix = self.cost_table_.matrix
        return float(total_of(self.cost_table_.of(acquired), true, label, matrix).sum())


def smoothed(counts: Floats, share: Floats, rows: float) -> Floats:
    """Shares of classes (places, classes) with some rows of the common shares added."""
    result: Floats = (counts + rows * share) / (counts.sum(axis=1, keepdims=True) + rows)
    return result


def best_smoothing(unseen: Floats, labels: Ints, share: Floats) -> float:
    """The number of added rows with the least log-loss on rows that were not counted.

    Parameters
    ----------
    unseen : (rows, classes) counts of the classes at the place of each row, without it.
    labels : class of each row.
    share : shares of the classes in the table.
    """
    each = np.arange(len(labels))
    losses = [-np.log(smoothed(unseen, share, m)[each, labels]).mean() for m in SMOOTHING]
    return SMOOTHING[int(np.argmin(losses))]
