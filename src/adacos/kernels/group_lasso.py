"""Logistic group lasso: one fit, and the order in which covariates enter as the penalty falls.

A covariate is a group of columns of ``X`` (its basis functions). Minimised over (b, β):

    Σ_k s_k log(1 + exp(-(2 y_k - 1)(b + x_k'β)))  +  (ρ / 2) ‖β‖²  +  λ Σ_g w_g ‖β_g‖₂

- The loss is summed over rows, not averaged; s_k are sample weights (1 by default), y in {0, 1}.
- ‖·‖₂ carries no factor √size: the caller's ``weights`` w_g are the whole penalty factor.
- The intercept b and groups with w_g = 0 are not penalised.
- ρ = 1e-8 Σ_k s_k makes the optimum exist and be unique when unpenalised columns separate the
  classes, are duplicated or are all zero. It is far below what any λ of interest does.
- Columns are taken as they come: the caller centres and scales them.

Method: proximal Newton on a working set of groups. The quadratic model is a Gram matrix of the
working columns, from which the intercept has been eliminated; it is minimised by exact block
updates alternating with Newton steps on the non-zero groups, where the penalty is smooth. The Gram
matrix is kept while it contracts well: gradients and stopping rule are those of the objective.

Stopping rule: the largest over groups of the norm of the smallest subgradient, divided by λ w_g.
The intercept and unpenalised groups are divided by the smallest positive λ w_g instead (by √Σ s_k,
the size of the gradient of a standardised column by chance alone, when there is none).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrs
from scipy.special import expit

from adacos.exceptions import InvalidInputError
from adacos.kernels.irls import cholesky
from adacos.kernels.line_search import halve
from adacos.typing import Bools, Floats, Ints

RIDGE = 1e-8
# Newton weights p(1 - p) underflow on separated data; the floor keeps the model non-degenerate.
MIN_NEWTON_WEIGHT = 1e-10
# Gradients are not known better than this share of the total weight, for standardised columns.
GRADIENT_ROUNDING = 1e-10
# A Gram matrix that shrinks the residual by less than this in one step is recomputed.
STALE_CONTRACTION = 0.2
# The path ends at this fraction of the λ at which the dearest group would enter by chance alone.
PATH_FLOOR = 1e-3
# Extrapolation along the path is trusted down to this fraction of the current λ.
LARGEST_STEP = 0.5


@dataclass(frozen=True)
class Solution:
    """Minimiser at one λ.

    ``kkt`` is the residual of the stopping rule; it exceeds the tolerance only when the Newton
    steps allowed were not enough.
    """

    intercept: float
    coef: Floats
    kkt: float
    iterations: int


@dataclass(frozen=True)
class EntryOrder:
    """Penalised groups by first entry, and the λ at which each entered.

    ``lam`` is interpolated between the solutions on either side, good to about a percent, and 0
    for groups that had not entered at the end of the path. The order does not depend on it.
    """

    order: list[int]
    lam: Floats


def solve(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike,
    weights: ArrayLike,
    lam: float,
    *,
    sample_weight: ArrayLike | None = None,
    init: Solution | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> Solution:
    """Minimise the objective at one λ.

    Parameters
    ----------
    X : (n, P) columns, centred and scaled by the caller.
    y : (n,) classes 0 and 1, both present.
    groups : (P,) group of each column: 0, ..., p - 1, columns of a group side by side.
    weights : (p,) penalty factors w_g >= 0; 0 leaves a group unpenalised.
    lam : λ >= 0.
    sample_weight : (n,) s_k >= 0.
    init : where to start, for instance the solution at a neighbouring λ.
    tol : bound on the residual of the stopping rule.
    max_iter : most Newton steps.
    """
    inputs = X, y, groups, weights, [lam]
    return solve_path(*inputs, sample_weight=sample_weight, init=init, tol=tol, max_iter=max_iter)[
        0
    ]


def solve_path(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike,
    weights: ArrayLike,
    lams: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    init: Solution | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> list[Solution]:
    """Minimise the objective at each of several λ, each from the one before; see ``solve``."""
    problem = _problem(X, y, groups, weights, sample_weight)
    strengths = np.asarray(lams, dtype=np.float64)
    for lam in strengths[~(np.isfinite(strengths) & (strengths >= 0))]:
        raise InvalidInputError("lam", "must be finite and >= 0", lam, "Pass a number >= 0.")
    coef = np.zeros(problem.X.shape[1]) if init is None else init.coef
    started = _group_norms(coef, problem.starts) > 0
    work = _working_set(problem, np.flatnonzero(started | (strengths.max() * problem.weights == 0)))
    point = _Point(_null_intercept(problem) if init is None else init.intercept, coef[work.columns])
    path = []
    for lam in strengths.tolist():
        point, solution = _solve_from(problem, work, point, lam, tol, max_iter)
        path.append(solution)
    return path


def _solve_from(
    problem: _Problem, work: _WorkingSet, point: _Point, lam: float, tol: float, max_iter: int
) -> tuple[_Point, Solution]:
    """Minimiser at one λ from a point; groups that it needs join the working set."""
    iterations = 0
    while True:
        fit = _fit(problem, work, point, lam, tol, max_iter - iterations)
        iterations += fit.iterations
        outside = np.setdiff1d(np.arange(len(problem.weights)), work.groups)
        norms = _group_norms(fit.gradient, problem.starts)[outside]
        thresholds = lam * problem.weights[outside]
        # Where λ falls to 0 everything belongs to the working set.
        excess = np.divide(
            norms, thresholds, out=np.full(len(outside), np.inf), where=thresholds > 0
        )
        excess -= 1
        kkt = max(fit.kkt, float(excess.max(initial=0.0)))
        if kkt <= tol or iterations >= max_iter:
            break
        # Few at a time: what the strongest explain, the others need not.
        strongest = np.argsort(-excess, kind="stable")[:5]
        point = fit.point
        for group in outside[strongest[excess[strongest] > 0]]:
            point = _admit(problem, work, int(group), point)
    coef = np.zeros(problem.X.shape[1])
    coef[work.columns] = fit.point.beta
    return fit.point, Solution(fit.point.intercept, coef, kkt, iterations)


def entry_order(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike,
    weights: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    resolution: float = 1e-3,
) -> EntryOrder:
    """Order in which penalised groups first become non-zero as λ falls from infinity.

    The path is followed between entries: the derivative of the solution with respect to λ predicts
    the next λ at which a waiting group meets its bound, ‖X_g'r‖ = λ w_g with r the residuals, and
    the solution there. A bracket in which several groups enter is narrowed until one is left, or
    to the relative width ``resolution``; then the larger ‖X_g'r‖ / w_g goes first, then the lower
    index. A group keeps its place if it leaves the support later.

    A group within half of ``resolution`` of its bound counts as entered: the twin of a group that
    has entered stays at the bound for ever. Groups that have not entered at the end of the path
    (constant covariates, separated classes) come last, by the same two criteria.

    Parameters are those of ``solve``.
    """
    problem = _problem(X, y, groups, weights, sample_weight)
    if not 0 < resolution < 1:
        raise InvalidInputError(
            "resolution", "must lie in (0, 1)", resolution, "Leave it at 1e-3 or lower it."
        )
    tol = 0.1 * resolution
    bound = 1 - 0.5 * resolution
    penalised = problem.weights > 0
    work = _working_set(problem, np.flatnonzero(~penalised))
    start = _Point(_null_intercept(problem), np.zeros(len(work.columns)))
    above = _fit(problem, work, start, 0.0, tol)
    ratios = ratios_above = _ratios(problem, above)
    chance = _chance_norms(problem, above)
    waiting = penalised & (chance > 0)
    floor = PATH_FLOOR * (chance[waiting] / problem.weights[waiting]).min(initial=np.inf)
    high = 2 * float(ratios.max())
    smallest_step = resolution
    low, start = _predict(problem, work, above, high, waiting, smallest_step)
    order: list[int] = []
    entries: list[float] = []
    while waiting.any() and high > floor:
        fit = _fit(problem, work, start, low, tol)
        ratios = _ratios(problem, fit)
        entering = np.flatnonzero(waiting & (ratios >= bound * low))
        if len(entering) == 0:
            high, above, ratios_above = low, fit, ratios
            # Doubled until something enters, so that a group that hugs its bound cannot stall us.
            smallest_step *= 2
            low, start = _predict(problem, work, above, high, waiting, smallest_step)
            continue
        past = ratios[entering] - bound * low
        short = bound * high - ratios_above[entering]
        crossings = low + (high - low) * past / (past + short)
        if len(entering) > 1 and high - low > resolution * high:
            second, first = np.sort(crossings)[-2:]
            margin = 0.1 * (high - low)
            middle = float(np.clip((first + second) / 2, low + margin, high - margin))
            start = _between(above.point, fit.point, (middle - low) / (high - low))
            low = middle
            continue
        # Twins differ by rounding only; the lower index goes first.
        leader = np.flatnonzero(ratios[entering] >= (1 - 1e-9) * ratios[entering].max())[0]
        group = int(entering[leader])
        order.append(group)
        entries.append(min([bound * float(crossings[leader]), *entries[-1:]]))
        waiting[group] = False
        start = _admit(problem, work, group, fit.point)
        smallest_step = resolution
    rest = np.setdiff1d(np.flatnonzero(penalised), order)
    order.extend(int(g) for g in rest[np.argsort(-ratios[rest], kind="stable")])
    return EntryOrder(order, np.array(entries + [0.0] * len(rest)))


@dataclass(frozen=True)
class _Problem:
    X: Floats
    y: Floats
    sample_weight: Floats
    weights: Floats
    starts: Ints
    sizes: Ints
    ridge: float


@dataclass
class _WorkingSet:
    """Groups the solver may move, in order of admission, and the quadratic model over them."""

    # One row per admitted column, filled from the top: products with it are contiguous.
    buffer: Floats
    groups: list[int] = field(default_factory=list)
    blocks: list[slice] = field(default_factory=list)
    columns: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    # Newton weights v of the model, Σv, Zv, Z diag(v) Z' - (Zv)(Zv)'/Σv + ρ I, and the
    # eigendecompositions of its diagonal blocks.
    newton_weights: Floats | None = None
    mass: float = 0.0
    cross: Floats = field(default_factory=lambda: np.empty(0))
    gram: Floats = field(default_factory=lambda: np.empty((0, 0)))
    spectra: list[tuple[Floats, Floats]] = field(default_factory=list)

    @property
    def Z(self) -> Floats:
        """Admitted columns, one per row."""
        return self.buffer[: len(self.columns)]

    @property
    def starts(self) -> Ints:
        """First row of each group."""
        return np.array([block.start for block in self.blocks], dtype=np.intp)


@dataclass(frozen=True)
class _Point:
    intercept: float
    beta: Floats


@dataclass(frozen=True)
class _Fit:
    """Minimiser over the working set, with s (p - y), X'(s (p - y)) and s p (1 - p) there."""

    point: _Point
    residual: Floats
    gradient: Floats
    newton_weights: Floats
    kkt: float
    iterations: int


def _problem(
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike,
    weights: ArrayLike,
    sample_weight: ArrayLike | None,
) -> _Problem:
    X, y, w = (np.asarray(a, dtype=np.float64) for a in (X, y, weights))
    ids = np.asarray(groups)
    if X.ndim != 2 or 0 in X.shape or not np.isfinite(X).all():
        raise InvalidInputError(
            "X", "must be a non-empty finite matrix", X, "Impute missing values first."
        )
    n, P = X.shape
    s = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if s.shape != (n,) or not (np.isfinite(s) & (s >= 0)).all():
        raise InvalidInputError(
            "sample_weight", f"must hold {n} finite numbers >= 0", s, "Pass one weight per row."
        )
    if y.shape != (n,) or not np.isin(y, (0, 1)).all() or len(np.unique(y[s > 0])) < 2:
        raise InvalidInputError(
            "y",
            f"must hold {n} values 0 or 1, both among rows of positive weight",
            y,
            "Encode the classes as 0 and 1 and pass rows of both.",
        )
    if ids.shape != (P,) or ids[0] != 0 or not np.isin(np.diff(ids), (0, 1)).all():
        raise InvalidInputError(
            "groups",
            f"must hold {P} integers that start at 0 and rise by 0 or 1",
            ids,
            "Number the groups from 0 and place the columns of a group side by side.",
        )
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    if w.shape != starts.shape or not (np.isfinite(w) & (w >= 0)).all():
        raise InvalidInputError(
            "weights", f"must hold {len(starts)} finite numbers >= 0", w, "Pass one per group."
        )
    return _Problem(X, y, s, w, starts, np.diff(starts, append=P), RIDGE * float(s.sum()))


def _null_intercept(problem: _Problem) -> float:
    ones = float(problem.sample_weight @ problem.y)
    return float(np.log(ones / float(problem.sample_weight @ (1 - problem.y))))


def _group_norms(v: Floats, starts: Ints) -> Floats:
    return np.sqrt(np.add.reduceat(v * v, starts)) if len(starts) else np.empty(0)


def _ratios(problem: _Problem, fit: _Fit) -> Floats:
    """‖X_g'r‖ / w_g, the λ at which a group outside the support is at its bound."""
    norms = _group_norms(fit.gradient, problem.starts)
    return np.divide(norms, problem.weights, out=np.zeros_like(norms), where=problem.weights > 0)


def _chance_norms(problem: _Problem, fit: _Fit) -> Floats:
    """Root mean square of ‖X_g'r‖ when the signs of the residuals r are random."""
    squares = np.einsum("k,kj,kj->j", fit.residual**2, problem.X, problem.X)
    return np.sqrt(np.add.reduceat(squares, problem.starts))


def _working_set(problem: _Problem, groups: Ints) -> _WorkingSet:
    work = _WorkingSet(np.empty(problem.X.shape[::-1]))
    point = _Point(0.0, np.empty(0))
    for group in groups:
        point = _admit(problem, work, int(group), point)
    return work


def _admit(problem: _Problem, work: _WorkingSet, group: int, point: _Point) -> _Point:
    """Add a group to the working set; returns the same point, with zeros for the group."""
    size, new = len(work.columns), int(problem.sizes[group])
    block = slice(size, size + new)
    columns = problem.starts[group] + np.arange(new)
    work.groups.append(group)
    work.blocks.append(block)
    work.columns = np.append(work.columns, columns)
    work.buffer[block] = problem.X[:, columns].T
    if work.newton_weights is not None:
        weighted = work.buffer[block] * work.newton_weights
        work.cross = np.append(work.cross, weighted.sum(axis=1))
        rows = weighted @ work.Z.T - np.outer(work.cross[block], work.cross) / work.mass
        rows[:, block] += problem.ridge * np.eye(new)
        work.gram = np.block([[work.gram, rows[:, :size].T], [rows]])
        work.spectra.append(_spectrum(rows[:, block], problem.ridge))
    return _Point(point.intercept, np.append(point.beta, np.zeros(new)))


def _refresh(problem: _Problem, work: _WorkingSet, newton_weights: Floats) -> None:
    """Take the quadratic model at new Newton weights."""
    weighted = work.Z * np.sqrt(newton_weights)
    work.newton_weights = newton_weights
    work.mass = float(newton_weights.sum())
    work.cross = work.Z @ newton_weights
    work.gram = weighted @ weighted.T - np.outer(work.cross, work.cross) / work.mass
    work.gram.flat[:: len(work.gram) + 1] += problem.ridge
    work.spectra = [_spectrum(work.gram[b, b], problem.ridge) for b in work.blocks]


def _spectrum(block: Floats, ridge: float) -> tuple[Floats, Floats]:
    values, vectors = np.linalg.eigh(block)
    # Rounding may take the smallest below the ridge that was added.
    return np.maximum(values, ridge), vectors


def _fit(
    problem: _Problem,
    work: _WorkingSet,
    point: _Point,
    lam: float,
    tol: float,
    max_iter: int = 200,
) -> _Fit:
    """Minimise the objective over the working set, groups outside it at zero."""
    Z, starts, s = work.Z, work.starts, problem.sample_weight
    sign = 2 * problem.y - 1
    thresholds = lam * problem.weights[work.groups]
    positive = lam * problem.weights[problem.weights > 0]
    reference = float(positive.min()) if lam > 0 and len(positive) else float(np.sqrt(s.sum()))
    # Bounds that differ by many powers of ten: below rounding of the gradient none can be met.
    rounding = GRADIENT_ROUNDING * float(s.sum())
    reference = max(reference, rounding)
    scale = np.where(thresholds > 0, np.maximum(thresholds, rounding), reference)

    def objective(eta: Floats, beta: Floats) -> float:
        loss = s @ np.logaddexp(0.0, -sign * eta)
        penalty = thresholds @ _group_norms(beta, starts)
        return float(loss + 0.5 * problem.ridge * (beta @ beta) + penalty)

    intercept, beta = point.intercept, point.beta
    eta = intercept + beta @ Z
    value, previous, damped, iterations = objective(eta, beta), np.inf, False, 0
    while True:
        p = expit(eta)
        residual = s * (p - problem.y)
        newton_weights = s * np.maximum(p * (1 - p), MIN_NEWTON_WEIGHT)
        gradient = Z @ residual + problem.ridge * beta
        slope = float(residual.sum())
        kkt = max(abs(slope) / reference, _kkt(-gradient, beta, starts, thresholds, scale))
        if kkt <= tol or iterations >= max_iter:
            point, pull = _Point(intercept, beta), residual @ problem.X
            return _Fit(point, residual, pull, newton_weights, kkt, iterations)
        if work.newton_weights is None or damped or kkt > STALE_CONTRACTION * previous:
            _refresh(problem, work, newton_weights)
        # The model as a function of β alone: the intercept follows by -(slope + cross'step) / mass.
        linear = work.gram @ beta - gradient + work.cross * (slope / work.mass)
        target = _minimise_quadratic(
            work, linear, beta, thresholds, scale, max(0.1 * kkt, 0.3 * tol)
        )
        step = target - beta
        step_intercept = -(slope + float(work.cross @ step)) / work.mass
        move = step_intercept + step @ Z
        change = float(
            gradient @ step
            + slope * step_intercept
            + thresholds @ (_group_norms(target, starts) - _group_norms(beta, starts))
        )
        # Near the optimum rounding in the objective hides the change.
        length, eta, beta, value = halve(
            objective, eta, move, beta, step, value, change, slack=1e-13 * abs(value)
        )
        intercept += length * step_intercept
        previous, damped, iterations = kkt, length < 1, iterations + 1


def _subgradient(
    pull: Floats, beta: Floats, starts: Ints, thresholds: Floats
) -> tuple[Floats, Floats]:
    """Pull - t_g β_g / ‖β_g‖ (the pull itself where β_g = 0), and the norms ‖β_g‖."""
    norms = _group_norms(beta, starts)
    pressure = np.divide(thresholds, norms, out=np.zeros_like(norms), where=norms > 0)
    return pull - np.repeat(pressure, np.diff(starts, append=len(beta))) * beta, norms


def _kkt(pull: Floats, beta: Floats, starts: Ints, thresholds: Floats, scale: Floats) -> float:
    """Largest scaled norm of the smallest subgradient; ``pull`` is minus the smooth gradient."""
    force, norms = _subgradient(pull, beta, starts, thresholds)
    excess = _group_norms(force, starts) - np.where(norms > 0, 0.0, thresholds)
    return float((excess / scale).max(initial=0.0))


def _minimise_quadratic(
    work: _WorkingSet,
    linear: Floats,
    beta: Floats,
    thresholds: Floats,
    scale: Floats,
    tol: float,
) -> Floats:
    """Minimise ½ β'Gβ - c'β + Σ t_g ‖β_g‖, with G the Gram matrix, c ``linear``, t ``thresholds``.

    Block updates settle which groups are zero; Newton steps on the others converge fast where
    block updates crawl, on correlated groups.
    """
    gram, starts = work.gram, work.starts
    beta = beta.copy()
    pull = linear - gram @ beta
    for _ in range(200):
        force, norms = _subgradient(pull, beta, starts, thresholds)
        step = _solve_on_support(work, beta, norms, thresholds, force)
        curvature = gram @ step
        for length in (1.0, 0.5, 0.25, 0.125):
            smooth = length * (0.5 * length * (step @ curvature) - pull @ step)
            if smooth + thresholds @ (_group_norms(beta + length * step, starts) - norms) < 0:
                beta += length * step
                pull -= length * curvature
                break
        if _kkt(pull, beta, starts, thresholds, scale) <= tol:
            break
        for block, (values, vectors), threshold in zip(
            work.blocks, work.spectra, thresholds, strict=True
        ):
            old = beta[block].copy()
            partial = pull[block] + gram[block, block] @ old
            beta[block] = _block_update(values, vectors, partial, float(threshold), old)
            pull -= (beta[block] - old) @ gram[block]
        if _kkt(pull, beta, starts, thresholds, scale) <= tol:
            break
    return beta


def _solve_on_support(
    work: _WorkingSet,
    beta: Floats,
    norms: Floats,
    thresholds: Floats,
    force: Floats,
) -> Floats:
    """Solve (G + penalty's Hessian) x = force over the non-zero groups; x is 0 on the others."""
    hessian, force = work.gram.copy(), force.copy()
    for block, norm, threshold in zip(work.blocks, norms, thresholds, strict=True):
        if norm == 0:
            hessian[block] = hessian[:, block] = 0.0
            hessian[block, block] = np.eye(block.stop - block.start)
            force[block] = 0.0
        else:
            unit = beta[block] / norm
            hessian[block, block] += threshold / norm * (np.eye(len(unit)) - np.outer(unit, unit))
    step, _ = dpotrs(cholesky(hessian), force, lower=0)
    return np.asarray(step)


def _block_update(
    values: Floats, vectors: Floats, pull: Floats, threshold: float, old: Floats
) -> Floats:
    """Minimise ½ z'Az - pull'z + threshold ‖z‖ with A = vectors diag(values) vectors'.

    A non-zero minimum is z = (A + threshold / r)⁻¹ pull with r = ‖z‖, hence
    φ(r) = Σ c_i² / (r values_i + threshold)² = 1 with c the rotated pull. 1 / √φ is concave and
    nearly linear in r: Newton on it, started from the old ‖z‖, needs a few steps.
    """
    rotated = pull @ vectors
    if threshold == 0:
        return np.asarray(vectors @ (rotated / values))
    if rotated @ rotated <= threshold**2:
        return np.zeros_like(pull)
    r = float(np.sqrt(old @ old))
    for _ in range(100):
        shifted = r * values + threshold
        terms = (rotated / shifted) ** 2
        phi = float(terms.sum())
        if abs(phi - 1) < 1e-12:
            break
        r = max(0.0, r + phi * (phi**0.5 - 1) / float(terms @ (values / shifted)))
    return np.asarray(vectors @ (r * rotated / (r * values + threshold)))


def _predict(
    problem: _Problem,
    work: _WorkingSet,
    fit: _Fit,
    lam: float,
    waiting: Bools,
    smallest_step: float,
) -> tuple[float, _Point]:
    """Next λ to solve at, between the next two predicted entries, and the point to start from.

    On the support, gradient + λ w_g β_g / ‖β_g‖ = 0. Differentiated in λ this gives β' = dβ/dλ,
    hence the derivatives of the linear predictor and of every gradient.
    """
    beta, weights = fit.point.beta, problem.weights[work.groups]
    gradient = fit.gradient
    d_beta, d_intercept, d_gradient = np.zeros_like(beta), 0.0, np.zeros_like(gradient)
    force, norms = _subgradient(d_beta, beta, work.starts, weights)
    if force.any():
        d_beta = _solve_on_support(work, beta, norms, lam * weights, force)
        d_intercept = -float(work.cross @ d_beta) / work.mass
        d_gradient = (fit.newton_weights * (d_intercept + d_beta @ work.Z)) @ problem.X
    # ‖gradient_g + d d_gradient_g‖² = w_g² (λ + d)² is a d² + 2 b d + c = 0, and c < 0 as the
    # group is inside its bound; where b < 0 the root nearest to 0 is the entry.
    w2 = problem.weights**2
    a = np.add.reduceat(d_gradient**2, problem.starts) - w2
    b = np.add.reduceat(gradient * d_gradient, problem.starts) - w2 * lam
    c = np.add.reduceat(gradient**2, problem.starts) - w2 * lam**2
    meets = waiting & (b * b >= a * c) & (b < 0)
    a, b, c = a[meets], b[meets], c[meets]
    first, second = np.sort([*c / (np.sqrt(b * b - a * c) - b), -np.inf, -np.inf])[:-3:-1]
    d = max((first + second) / 2, 1.2 * first)
    d = float(np.clip(d, (LARGEST_STEP - 1) * lam, -min(smallest_step, 1 - LARGEST_STEP) * lam))
    return lam + d, _Point(fit.point.intercept + d * d_intercept, beta + d * d_beta)


def _between(high: _Point, low: _Point, share: float) -> _Point:
    """``share`` of the way from ``low`` to ``high``, without the last groups in its working set."""
    beta = np.append(high.beta, np.zeros(len(low.beta) - len(high.beta)))
    return _Point(
        low.intercept + share * (high.intercept - low.intercept),
        low.beta + share * (beta - low.beta),
    )
