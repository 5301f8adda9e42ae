"""Plans for three or more classes: what following each costs by the true class, and the best one.

A belief is a vector p of class probabilities. A plan has an expected cost for each true class, so
that it costs p'a at the belief p; labels are plans whose vector is a column of C[y, label]. The
least cost over plans is concave and piecewise linear in p, as in any problem of sequential
decision. What an acquisition says is a sample of likelihood vectors: evidence l takes p to
p * l, normalised, and has the share w_k among what is seen when k is the true class.
"""

from __future__ import annotations

import numpy as np

from adacos.typing import Floats

# Entries of a temporary array: it stays in the processor's cache.
_BLOCK = 262_144


def cost_by_class(belief: Floats, likelihood: Floats, shares: Floats, plans: Floats) -> Floats:
    """Expected cost by true class of taking the best plan once the evidence is in, (rows, K).

    Parameters
    ----------
    belief : (rows, K) before the evidence.
    likelihood : (samples, K) of what may be seen.
    shares : (samples, K) of each sample where k is the true class; columns sum to 1.
    plans : (plans, K) expected cost by true class.
    """
    n_samples, size = likelihood.shape
    result = np.empty(belief.shape)
    at_once = max(_BLOCK // (n_samples * len(plans)), 1)
    for first in range(0, len(belief), at_once):
        rows = belief[first : first + at_once]
        after = (rows[:, None, :] * likelihood).reshape(-1, size)
        best = (after @ plans.T).argmin(axis=1)
        chosen = plans[best].reshape(len(rows), n_samples, size)
        result[first : first + at_once] = np.einsum("nsk,sk->nk", chosen, shares)
    return result


def expected_cost(belief: Floats, likelihood: Floats, shares: Floats, plans: Floats) -> Floats:
    """Expected cost of taking the best plan once the evidence is in, (rows,)."""
    costs = cost_by_class(belief, likelihood, shares, plans)
    return np.asarray((belief * costs).sum(axis=1))


def least_cost(belief: Floats, plans: Floats) -> Floats:
    """Expected cost of the best plan at each belief, (rows,); infinite without plans."""
    return np.asarray((belief @ plans.T).min(axis=1, initial=np.inf))
