"""The picture of a tree of questions: what rows are asked, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adacos.decision import AnyDecider
from adacos.document.blocks import Plain, fragment
from adacos.engine import AcquisitionResult, run
from adacos.models.branches import Node, Questions, Way, route
from adacos.tables.description import Description, description_of
from adacos.tables.encoder import TableEncoder
from adacos.typing import Bools, Floats


@dataclass(frozen=True)
class Place:
    """What happens to the training rows that come to one node.

    Attributes
    ----------
    condition : str
        The value that leads here from the node before; empty at the root.
    question : str
        The covariate that every row acquires here; empty at a leaf.
    below : tuple of int
        Numbers of the places that follow, then that of the rows without the covariate, if
        there are any; empty where no further branch is.
    share : float
        Share of all rows that come here.
    acquired : tuple of (str, float)
        Covariates beyond the branches in the order of their share: which of the rows here acquire
        them, as a share; empty unless it is a leaf.
    cost : float
        Mean covariate cost of the rows here, all that they paid.
    positive : float
        Share of the rows here that are answered positive, with the second of the classes.
    gain, error : float
        How much less a row that comes here costs with the question, cross-validated, and the
        standard error of that; 0 at a leaf.
    answers : tuple of float
        With three or more classes the share of the rows here that are answered with each; of two
        empty.
    """

    condition: str
    question: str
    below: tuple[int, ...]
    share: float
    acquired: tuple[tuple[str, float], ...]
    cost: float
    positive: float
    gain: float
    error: float
    answers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Tree:
    """The questions of a policy that branches, and what becomes of the training rows.

    Attributes
    ----------
    places : tuple of Place
        The root first; each names those that follow it by number.
    rows : int
        Number of training rows; 0 where what becomes of rows is not known, after `recalibrate`.
    positive_class : object
        The class whose answers are counted; with three or more classes all of them, as a tuple.

    Examples
    --------
    >>> from adacos import BranchingClassifier, Costs
    >>> from adacos.datasets import make_value_dependent_problem
    >>> problem = make_value_dependent_problem()
    >>> X, y = problem.sample(500, seed=0)
    >>> costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    >>> print(BranchingClassifier(costs).fit(X, y).tree_)
    500 rows: every row is asked x0
    ├─ x0 = 0 (50%): x1 100%; paid 6.00, answered 1: 55%
    └─ x0 = 1 (50%): x2 100%; paid 6.00, answered 1: 56%
    """

    places: tuple[Place, ...]
    rows: int
    positive_class: Any

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return fragment([Plain(str(self))])

    def text(self, money: Callable[[float], str] = "{:.2f}".format) -> str:
        """Draw the tree with characters.

        Parameters
        ----------
        money : function, default="{:.2f}".format
            Puts an amount into words.

        Returns
        -------
        str
            One line for each place.
        """
        root = self.places[0]
        if not root.question:
            rows = f"{self.rows} rows, no branches: " if self.rows else "No branches: "
            return rows + self.describe(root, money)
        rows = f"{self.rows} rows: every" if self.rows else "Every"
        head = f"{rows} row is asked {root.question}"
        return "\n".join([head, *self._below(root, "", money)])

    def _below(self, place: Place, indent: str, money: Callable[[float], str]) -> Iterator[str]:
        for number in place.below:
            last = number == place.below[-1]
            below = self.places[number]
            share = f" ({percent(below.share)})" if self.rows else ""
            described = f"{below.condition}{share}: "
            described += (
                f"asked {below.question}" if below.question else self.describe(below, money)
            )
            yield f"{indent}{'└─' if last else '├─'} {described}"
            yield from self._below(below, indent + ("   " if last else "│  "), money)

    def describe(self, place: Place, money: Callable[[float], str] = "{:.2f}".format) -> str:
        """Say what happens to the rows of a leaf.

        Parameters
        ----------
        place : Place
            The leaf.
        money : function, default="{:.2f}".format
            Puts an amount into words.

        Returns
        -------
        str
            What they are asked and pay, and how they are answered.
        """
        if not self.rows:
            return "then as its probability says"
        asked = ", ".join(f"{name} {percent(share)}" for name, share in place.acquired)
        answered = f"{self.positive_class}: {percent(place.positive)}"
        if place.answers:
            each = zip(self.positive_class, place.answers, strict=True)
            answered = ", ".join(f"{name}: {percent(share)}" for name, share in each if share > 0)
        return f"{asked or 'nothing more'}; paid {money(place.cost)}, answered {answered}"

    def way(self, number: int) -> str:
        """Name the values that lead to a place.

        Parameters
        ----------
        number : int
            The place.

        Returns
        -------
        str
            The conditions on the way, empty at the root.
        """
        above = {below: own for own, place in enumerate(self.places) for below in place.below}
        conditions = []
        while number in above:
            conditions.append(self.places[number].condition)
            number = above[number]
        return ", ".join(reversed(conditions))

    def because(self, number: int) -> str:
        """Say why the question of a place is asked first.

        Parameters
        ----------
        number : int
            The place.

        Returns
        -------
        str
            What it saves in cross-validation.
        """
        place = self.places[number]
        if not self.rows:
            return (
                f"{place.question} is asked here of everyone, as was found cheaper for the classes "
                "as they occurred in training."
            )
        return (
            f"{place.question} is asked here of everyone: {percent(place.share)} of the training "
            f"rows came this way. In cross-validation each cost {place.gain:.2f} less "
            f"(standard error {place.error:.2f}) than without this branch."
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the tree as plain JSON values.

        Returns
        -------
        dict
            The places, each a dict, and the number of rows.
        """
        return {"rows": self.rows, "places": [_plain(place) for place in self.places]}


def _plain(place: Place) -> dict[str, Any]:
    """A place as JSON values: how it is answered, of two classes as one share, of more as many."""
    described = asdict(place)
    del described["positive" if place.answers else "answers"]
    return described


def percent(share: float) -> str:
    """A share without decimals; what is there is never called nothing, nor all."""
    if 0 < share < 0.005 or 0.995 <= share < 1:
        return "< 1%" if share < 0.5 else "> 99%"
    return f"{100 * share:.0f}%"


def tree_of(
    nodes: Sequence[Questions],
    encoder: TableEncoder,
    encoded: Floats,
    result: AcquisitionResult,
    classes: Sequence[Any],
) -> Tree:
    """The picture of a tree: what became of rows that the policy has walked to their stop.

    The labels of the result are 0, 1, … Rows without the covariate of a branch have a place of
    their own, after those of the nodes.
    """
    place = route(nodes, encoded, encoder)
    here = [place == number for number in range(len(nodes))]
    incomplete = {}
    for number, node in enumerate(nodes):
        if node.split is not None and here[number].any():
            incomplete[number] = len(here)
            here.append(here[number])
    for number in reversed(range(len(nodes))):
        for below in nodes[number].below:
            here[number] = here[number] | here[below]
    size = len(classes)
    places = [
        _place(node, rows, encoder, result, size) for node, rows in zip(nodes, here, strict=False)
    ]
    for number, own in incomplete.items():
        places.append(_place(Node(nodes[number].path), here[own], encoder, result, size))
        places[number] = replace(places[number], below=(*places[number].below, own))
    bare = Tree(tuple(places), len(encoded), classes[1] if size == 2 else tuple(classes))
    return in_words(bare, nodes, encoder, Description())


def no_rows(decider: AnyDecider) -> tuple[Floats, AcquisitionResult]:
    """What `tree_of` takes where it is not known what becomes of rows."""
    encoded = np.empty((0, len(decider.encoder.source)))
    return encoded, run(decider, encoded)


def in_words(
    tree: Tree, nodes: Sequence[Questions], encoder: TableEncoder, said: Description
) -> Tree:
    """The same picture in the words of a description."""
    conditions = {0: ""}
    for place, node in zip(tree.places, nodes, strict=False):
        if node.split is not None:
            absent = f"{said.label(encoder.names[node.split.covariate])} is not available"
            words = (*node.split.words(encoder, said), absent)
            conditions.update(zip(place.below, words, strict=False))
    splits = [node.split for node in nodes]
    places = tuple(
        replace(
            place,
            condition=conditions[number],
            question=_label(splits[number], encoder, said) if place.question else "",
            acquired=tuple((said.label(name), share) for name, share in place.acquired),
        )
        for number, place in enumerate(tree.places)
    )
    counted = tree.positive_class
    if isinstance(counted, tuple):
        return replace(tree, places=places, positive_class=tuple(map(said.class_name, counted)))
    return replace(tree, places=places, positive_class=said.class_name(counted))


class Drawn(Protocol):
    """A fitted policy that is drawn as a tree."""

    description_: Description | None
    encoder_: TableEncoder
    classes_: NDArray[Any]

    @property
    def tree_(self) -> Tree:
        """Its picture."""
        ...

    @property
    def nodes_(self) -> Sequence[Questions]:
        """Its nodes."""
        ...


def described_tree(policy: Drawn) -> Tree:
    """The picture of a policy that is drawn as a tree, in the words of its description."""
    return in_words(policy.tree_, policy.nodes_, policy.encoder_, description_of(policy))


def _label(split: Way | None, encoder: TableEncoder, said: Description) -> str:
    return "" if split is None else said.label(encoder.names[split.covariate])


def _place(
    node: Questions, here: Bools, encoder: TableEncoder, result: AcquisitionResult, n_classes: int
) -> Place:
    """What becomes of the rows that come to a node; how they come is said later."""
    names = encoder.names
    share = result.acquired[here].mean(axis=0) if here.any() else np.zeros(len(names))
    further = [int(k) for k in np.argsort(-share, kind="stable") if share[k] > 0]
    return Place(
        condition="",
        question=_label(node.split, encoder, Description()),
        below=node.below,
        share=float(here.mean()) if len(here) else 0.0,
        acquired=()
        if node.split
        else tuple((names[k], float(share[k])) for k in further if k not in node.path),
        cost=float(result.cost[here].mean()) if here.any() else 0.0,
        positive=float(np.mean(result.label[here] == 1)) if here.any() else 0.0,
        gain=node.gain,
        error=node.error,
        answers=()
        if n_classes == 2
        else tuple(
            float(np.mean(result.label[here] == k)) if here.any() else 0.0 for k in range(n_classes)
        ),
    )
