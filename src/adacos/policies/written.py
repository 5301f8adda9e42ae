"""`protocol_of`: the questions of a policy as a protocol, to be read, edited and followed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from adacos.exceptions import InvalidInputError
from adacos.models.branches import Split
from adacos.policies.branching import BranchingClassifier
from adacos.policies.picture import has_tree
from adacos.policies.plan_tree import CodeSplit
from adacos.policies.planning import PlanningClassifier
from adacos.policies.protocol import ProtocolClassifier
from adacos.policies.tree import Tree
from adacos.protocols import DecisionProtocol
from adacos.protocols.language import (
    Answer,
    Ask,
    Block,
    Choice,
    Condition,
    Junction,
    ValueTest,
    written,
)
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import BINARY, CATEGORICAL

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy


def protocol_of(policy: BasePolicy) -> DecisionProtocol:
    """Write the tree of a policy as a protocol.

    Parameters
    ----------
    policy : BranchingClassifier, PlanningClassifier or ProtocolClassifier
        A fitted policy that is drawn as a tree, or a choice of one.

    Returns
    -------
    DecisionProtocol
        The protocol, with an answer wherever it ends.

    Raises
    ------
    InvalidInputError
        If the policy has no tree.

    Notes
    -----
    A leaf of Branching continues as AdaCOS, and a plan that is longer than its picture
    asks more. The protocol does not: `compare` says what that costs.

    Examples
    --------
    >>> from adacos import Costs, PlanningClassifier, protocol_of
    >>> from adacos.datasets import make_value_dependent_problem
    >>> problem = make_value_dependent_problem()
    >>> X, y = problem.sample(500, seed=0)
    >>> costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    >>> print(protocol_of(PlanningClassifier(costs).fit(X, y)).formatted())
    if x0 = 0:
        if x1 = 0: 0
        unavailable: 1
        else: 1
    unavailable: 1
    else:
        if x2 = 0: 0
        unavailable: 1
        else: 1
    """
    check_is_fitted(policy)
    policy = policy.chosen
    if isinstance(policy, ProtocolClassifier):
        return policy.protocol_
    if not has_tree(policy):
        raise InvalidInputError(
            "policy",
            "must ask by a tree, as Branching and Planning do",
            type(policy).__name__,
            "One that asks all rows in one order has no branches to write.",
        )
    block = _Written(policy).block(0)
    head = f"# The questions of a fitted {type(policy).__name__}.\n"
    return DecisionProtocol(f"{head}{written(block)}")


class _Written:
    """The nodes of a policy, with the answer at each end.

    A plan has its own answers. Of branches there is the one that most training rows got.
    """

    def __init__(
        self, policy: BranchingClassifier | PlanningClassifier | ProtocolClassifier
    ) -> None:
        self.encoder: TableEncoder = policy.encoder_
        classes = [str(label) for label in policy.decisions_.tolist()]
        tree: Tree = policy.tree_
        self.nodes: Sequence[Any] = policy.nodes_
        if isinstance(policy, PlanningClassifier):
            self.nodes = policy._nodes(written=True)
        shares = [np.array(p.answers or (1 - p.positive, p.positive)) for p in tree.places]
        self.answers, self.otherwise = [], []
        for number in range(len(self.nodes)):
            node: Any = self.nodes[number]
            own: int | None = getattr(node, "label", None)
            if own is None:
                below = tree.places[number].below
                apart = below[-1] if len(below) > len(node.below) else number
                answer, otherwise = (int(np.argmax(shares[place])) for place in (number, apart))
            else:
                # A plan says what it would answer, also where a value is unavailable.
                answer = otherwise = own
            self.answers.append(classes[answer])
            self.otherwise.append(classes[otherwise])

    def block(self, number: int) -> Block:
        """The statements from a node on."""
        node: Any = self.nodes[number]
        if node.split is None:
            return (Answer(self.answers[number]),)
        below = [self.block(int(one)) for one in node.below]
        if len(below) == 1:
            # Whatever the value, what follows is the same.
            return (Ask((self.encoder.names[node.split.covariate],)), *below[0])
        conditions = self._conditions(node.split)
        branches = tuple(zip(conditions, below[:-1], strict=True))
        return (Choice(branches, below[-1], (Answer(self.otherwise[number]),)),)

    def _conditions(self, split: Split | CodeSplit) -> list[Condition]:
        """What leads each way but the last, which takes the rest."""
        k = split.covariate
        name, kind = self.encoder.names[k], self.encoder.kinds[k]
        values: tuple[Any, ...] = self.encoder.categories[k]
        if kind == BINARY:
            values = (float(self.encoder.low[k]), float(self.encoder.high[k]))
        if isinstance(split, Split):
            if kind == CATEGORICAL:
                left = tuple(v for v, w in zip(values, split.weights, strict=True) if w < 0.5)
                return [ValueTest(name, "in", left)]
            test = ValueTest(name, "<=", (float(split.cut),))
            return [ValueTest(name, "in", values[:1]) if kind == BINARY else test]
        ways = [np.flatnonzero(split.way == way) for way in range(int(split.way.max()))]
        if kind in (CATEGORICAL, BINARY):
            return [ValueTest(name, "in", tuple(values[c] for c in codes)) for codes in ways]
        return [_ranges(name, codes.tolist(), split.cuts.tolist()) for codes in ways]


def _ranges(name: str, codes: list[int], cuts: list[float]) -> Condition:
    """The condition that a number has one of some codes: ranges between cuts."""
    parts: list[Condition] = []
    start = 0
    for at in range(1, len(codes) + 1):
        if at < len(codes) and codes[at] == codes[at - 1] + 1:
            continue
        first, last = codes[start], codes[at - 1]
        ends: list[Condition] = []
        if first > 0:
            ends.append(ValueTest(name, ">=", (cuts[first - 1],)))
        if last < len(cuts):
            ends.append(ValueTest(name, "<", (cuts[last],)))
        parts.append(ends[0] if len(ends) == 1 else Junction("and", tuple(ends)))
        start = at
    return parts[0] if len(parts) == 1 else Junction("or", tuple(parts))
