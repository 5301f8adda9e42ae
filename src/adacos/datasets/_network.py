"""Bayesian networks as problems with a known joint distribution: BIF files, and their marginals."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from string import ascii_letters

import numpy as np

from adacos.datasets._discrete import DiscreteProblem
from adacos.exceptions import InvalidInputError
from adacos.typing import Floats
from adacos.validation import choices

# Cells of a table that is held at once.
_MOST_CELLS = 20_000_000
# Covariates of a problem, its rows, and its states (sets with values), at most.
MOST_COVARIATES, MOST_ROWS, MOST_STATES = 12, 300_000, 1_500_000
# The least and the largest covariate cost.
_LEAST_PRICE, _MOST_PRICE = 1.0, 10.0
# What probabilities in a file may leave their sum away from 1.
_ROUNDING = 1e-2
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VARIABLE = re.compile(r"variable\s+(\S+)\s*\{(.*?\{.*?\}.*?)\}", re.DOTALL)
_STATES = re.compile(r"type\s+discrete\s*\[\s*(\d+)\s*\]\s*\{(.*?)\}", re.DOTALL)
_PROBABILITY = re.compile(r"probability\s*\((.*?)\)\s*\{(.*?)\}", re.DOTALL)
_ROW = re.compile(r"(?:\((?P<given>[^()]*)\)|(?P<kind>table|default))\s*(?P<numbers>[^;]*);")


@dataclass(frozen=True)
class Factor:
    """A table over some variables, one axis for each in this order."""

    variables: tuple[str, ...]
    table: Floats


@dataclass(frozen=True)
class BayesianNetwork:
    """P(all variables) as a product of P(variable | its parents).

    Attributes
    ----------
    states : names of the values of each variable, by its name.
    factors : of each variable the table over its parents, in order, and itself as the last axis.
    """

    states: dict[str, tuple[str, ...]]
    factors: dict[str, Factor]

    def marginal(self, variables: Sequence[str]) -> Floats:
        """P(variables), one axis for each, by variable elimination."""
        kept = self._ancestors(variables)
        factors = [self.factors[name] for name in self.factors if name in kept]
        hidden = [name for name in self.factors if name in kept and name not in variables]
        while hidden:
            # The one whose elimination makes the smallest table.
            name = min(hidden, key=lambda each: self._size(_about(factors, each)))
            hidden.remove(name)
            product = self._multiplied([f for f in factors if name in f.variables], without=name)
            factors = [f for f in factors if name not in f.variables] + [product]
        total = self._multiplied(factors)
        order = [total.variables.index(name) for name in variables]
        return np.ascontiguousarray(total.table.transpose(order))

    def _ancestors(self, variables: Sequence[str]) -> set[str]:
        """Variables on which some depend, themselves included; the others sum to 1."""
        found, waiting = set(variables), list(variables)
        while waiting:
            for parent in self.factors[waiting.pop()].variables[:-1]:
                if parent not in found:
                    found.add(parent)
                    waiting.append(parent)
        return found

    def _size(self, variables: set[str]) -> int:
        return prod(len(self.states[name]) for name in variables)

    def _multiplied(self, factors: list[Factor], without: str | None = None) -> Factor:
        """The product of factors, summed over one variable."""
        union = sorted({name for factor in factors for name in factor.variables})
        left = tuple(name for name in union if name != without)
        if self._size(set(union)) > _MOST_CELLS:
            raise InvalidInputError(
                "covariates",
                f"must lead to tables of at most {_MOST_CELLS:,} cells",
                f"{self._size(set(union)):,} cells",
                "Choose fewer covariates.",
            )
        letter = dict(zip(union, ascii_letters, strict=False))
        inputs = ["".join(letter[name] for name in factor.variables) for factor in factors]
        output = "".join(letter[name] for name in left)
        tables = [factor.table for factor in factors]
        product = np.einsum(f"{','.join(inputs)}->{output}", *tables, optimize="greedy")
        return Factor(left, np.asarray(product))


def _about(factors: list[Factor], name: str) -> set[str]:
    """Variables that share a factor with one."""
    return {each for f in factors if name in f.variables for each in f.variables}


def read_network(path: Path | str) -> BayesianNetwork:
    """Read a Bayesian network from a file in the Bayesian interchange format, also gzipped.

    Raises
    ------
    InvalidInputError
        If the file is no such network, with what is wrong.
    """
    try:
        content = Path(path).read_bytes()
        text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            "network", "must be a readable file in the format BIF", str(path), f"{error}."
        ) from error
    text = _COMMENT.sub(" ", text)
    states = {}
    for name, body in _VARIABLE.findall(text):
        found = _STATES.search(body)
        own = tuple(re.split(r"[\s,]+", found[2].strip())) if found else ()
        if not found or len(own) != int(found[1]):
            raise _wrong(path, f"variable {name}: needs as many values as it states")
        states[name] = own
    factors = {}
    for heading, body in _PROBABILITY.findall(text):
        name, *parents = re.split(r"[\s,|]+", heading.strip())
        unknown = [each for each in (name, *parents) if each not in states]
        if unknown:
            raise _wrong(path, f"probability of {name}: there is no variable {unknown[0]}")
        table = _table(path, name, parents, body, states)
        factors[name] = Factor((*parents, name), table)
    if not states or set(factors) != set(states):
        missing = sorted(set(states) - set(factors))
        raise _wrong(path, f"needs the probabilities of {missing[0]}" if missing else "is empty")
    _check_order(path, factors)
    return BayesianNetwork(states, factors)


def _table(
    path: Path | str, name: str, parents: list[str], body: str, states: dict[str, tuple[str, ...]]
) -> Floats:
    """P(name | parents) from the lines of a block."""
    sizes = [len(states[each]) for each in (*parents, name)]
    table = np.full(sizes, np.nan)
    for row in _ROW.finditer(body):
        numbers = _numbers(path, name, row["numbers"])
        if row["kind"] == "table":
            if numbers.size != table.size:
                raise _wrong(path, f"probability of {name}: {numbers.size} of {table.size} numbers")
            # The values of the variable come first in a whole table.
            whole = numbers.reshape(sizes[-1], *sizes[:-1])
            table[...] = np.moveaxis(whole, 0, -1)
            continue
        if numbers.size != sizes[-1]:
            raise _wrong(path, f"probability of {name}: {numbers.size} of {sizes[-1]} numbers")
        if row["kind"] == "default":
            table[np.isnan(table).any(axis=-1)] = numbers
            continue
        values = re.split(r"[\s,]+", row["given"].strip())
        place = tuple(
            states[parent].index(value) if value in states[parent] else -1
            for parent, value in zip(parents, values, strict=False)
        )
        if len(values) != len(parents) or -1 in place:
            raise _wrong(
                path, f"probability of {name}: ({row['given']}) are not values of {parents}"
            )
        table[place] = numbers
    total = table.sum(axis=-1, keepdims=True)
    if not (np.all(table >= 0) and np.all(np.abs(total - 1) <= _ROUNDING)):
        raise _wrong(path, f"probability of {name}: must be given, and sum to 1, for all {parents}")
    return np.asarray(table / total)


def _numbers(path: Path | str, name: str, text: str) -> Floats:
    try:
        return np.array([float(each) for each in re.split(r"[\s,]+", text.strip())])
    except ValueError:
        raise _wrong(
            path, f"probability of {name}: {text.strip()[:40]!r} are not numbers"
        ) from None


def _check_order(path: Path | str, factors: dict[str, Factor]) -> None:
    """Refuse variables that depend on themselves."""
    waiting = {name: set(factor.variables[:-1]) for name, factor in factors.items()}
    while waiting:
        free = [name for name, parents in waiting.items() if not parents & set(waiting)]
        if not free:
            raise _wrong(path, f"{sorted(waiting)[0]} must not depend on itself")
        for name in free:
            del waiting[name]


def _wrong(path: Path | str, what: str) -> InvalidInputError:
    return InvalidInputError("network", what, str(path), "It must be a file in the format BIF.")


def load_network(
    path: Path | str,
    *,
    target: str,
    positive: str | Sequence[str],
    covariates: Sequence[str] | None = None,
) -> DiscreteProblem:
    """Make a problem of two classes from a Bayesian network.

    The values of a covariate are numbered in the order of the file. A covariate costs between 1
    and 10, in proportion to its mutual information with the class.

    Parameters
    ----------
    path : path
        A file in the Bayesian interchange format (BIF), also gzipped.
    target : str
        The variable that is to be predicted.
    positive : str or sequence of str
        Its value or values that make the positive class.
    covariates : sequence of str, default=None
        Variables that can be acquired. None for those with the most mutual information with the
        class, at most 12, as far as the optimum can be computed.

    Returns
    -------
    DiscreteProblem
        Distribution and covariate costs.

    Raises
    ------
    InvalidInputError
        If the file is no network, or a name is not in it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from adacos.datasets import load_network
    >>> text = '''
    ... variable rain { type discrete [ 2 ] { no, yes }; }
    ... variable wet { type discrete [ 2 ] { no, yes }; }
    ... probability ( rain ) { table 0.8, 0.2; }
    ... probability ( wet | rain ) { (no) 0.9, 0.1; (yes) 0.2, 0.8; }
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "rain.bif")
    ...     _ = path.write_text(text)
    ...     problem = load_network(path, target="rain", positive="yes")
    >>> problem.joint.round(2).tolist(), problem.prices
    ([[0.72, 0.08], [0.04, 0.16]], {'wet': 10.0})
    """
    network = read_network(path)
    _known("target", [target], network.states)
    values = [positive] if isinstance(positive, str) else list(positive)
    _known("positive", values, network.states[target])
    is_positive = np.isin(network.states[target], values)
    if is_positive.all():
        raise InvalidInputError(
            "positive", "must leave a value for the other class", values, "Leave one out."
        )
    by_class = np.stack([~is_positive, is_positive]).astype(np.float64)
    others = [name for name in network.states if name != target]
    if covariates is not None:
        _known("covariates", covariates, others)
        others = list(covariates)
    information = {
        name: _information(by_class @ network.marginal([target, name])) for name in others
    }
    chosen = others if covariates is not None else _affordable(network, information)
    joint = np.tensordot(by_class, network.marginal([target, *chosen]), axes=1)
    most = max([information[name] for name in chosen], default=0.0) or 1.0
    prices = {
        name: round(_LEAST_PRICE + (_MOST_PRICE - _LEAST_PRICE) * information[name] / most, 2)
        for name in chosen
    }
    return DiscreteProblem(joint / joint.sum(), prices)


def _known(name: str, wanted: Iterable[str], there: Iterable[str]) -> None:
    names = list(there)
    unknown = [each for each in wanted if each not in names]
    if unknown:
        raise InvalidInputError(
            name, "must be in the network", unknown[0], choices(unknown, names, "There are")
        )


def _information(joint: Floats) -> float:
    """Mutual information of the two axes of a table of probabilities, in nats."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    there = joint > 0
    return max(float((joint[there] * np.log(joint[there] / apart[there])).sum()), 0.0)


def _affordable(network: BayesianNetwork, information: dict[str, float]) -> list[str]:
    """The most informative variables whose rows and states are not too many, in file order."""
    chosen: list[str] = []
    n_rows = n_states = 1
    for name in sorted(information, key=lambda each: -information[each]):
        size = len(network.states[name])
        if n_rows * size <= MOST_ROWS and n_states * (size + 1) <= MOST_STATES:
            chosen.append(name)
            n_rows, n_states = n_rows * size, n_states * (size + 1)
        if len(chosen) == MOST_COVARIATES:
            break
    return [name for name in information if name in chosen]
