"""Problems that are hard on purpose, drawn at random: what tests of the numerical edges, and longer runs of them, try.

A problem is a graph of an awkward shape with awkward weights, labels of an awkward size at awkward places, and awkward
features. ``judge`` fits a model to it and holds the answer to dense algebra; ``explore`` does so until time is up.
"""

import warnings
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.linear_model import Ridge

import dense
from graphs import Case, case, grid, small_world
from residua import GraphRegressor
from residua.field import Conditional, Likelihood
from residua.linalg import NotConverged
from soak.verdicts import Budget, until

# What may be said of a problem that has no answer.
REASONS = ("there is nothing", "fits all", "residual is zero", "known value", "variances are not defined")
LIMIT = 1 - 1e-6


@dataclass(frozen=True)
class Problem:
    """What a model is fitted to, and how; ``name`` says how it was made."""

    name: str
    case: Case
    X: np.ndarray | None
    y: np.ndarray  # (n,), NaN where unknown
    base: str | Ridge
    correlation: str | None


def star(n: int) -> Case:
    return case(n, [(0, i) for i in range(1, n)], [])


def pairs(n: int) -> Case:
    return case(2 * (n // 2), [(i, i + 1) for i in range(0, 2 * (n // 2), 2)], [])


def path(n: int) -> Case:
    return case(n, [(i, i + 1) for i in range(n - 1)], [])


def bridged_cliques(n: int) -> Case:
    """Two cliques and one edge between them."""
    half = n // 2
    inside = [(i, j) for part in (range(half), range(half, n)) for i in part for j in part if i < j]
    return case(n, [*inside, (0, half)], [])


def with_isolates(n: int) -> Case:
    """A third of the nodes has no edge."""
    return replace(path(n - n // 3), n=n, labelled=np.zeros(n, bool))


def looped(n: int) -> Case:
    return case(n, [(i, i + 1) for i in range(n - 1)] + [(i, i) for i in range(0, n, 3)], [])


def two_types(n: int) -> Case:
    return small_world(max(n, 12), 4, 0.3, types=2)


SHAPES = {
    "star": star,
    "pairs": pairs,
    "path": path,
    "bridge": bridged_cliques,
    "isolates": with_isolates,
    "loops": looped,
    "grid": lambda n: grid(3, max(n // 3, 2)),
    "two types": two_types,
}


def weighted(c: Case, kind: str, rng: np.random.Generator) -> Case:
    """Weights of 1, over 24 decades, or of two sizes far apart."""
    m = len(c.source)
    weight = {
        "ones": np.ones(m),
        "decades": 10.0 ** rng.uniform(-12, 12, m),
        "bottleneck": np.where(rng.random(m) < 0.5, 1e-9, 1e9),
    }[kind]
    return replace(c, weight=weight)


def labelled(c: Case, kind: str, rng: np.random.Generator) -> Case:
    """Labels at half of the nodes, at all, at all but one, at three, or at one of each component."""
    order = rng.permutation(c.n)
    if kind == "one a component":
        _, order = np.unique(c.graph.components[order], return_index=True)
        return c.with_labels(order)
    count = {"half": c.n // 2, "all": c.n, "all but one": c.n - 1, "three": 3}[kind]
    return c.with_labels(order[:count])


def values(c: Case, kind: str, rng: np.random.Generator) -> np.ndarray:
    """(n,) labels of every size, some of them correlated up to the limit."""
    alpha = {"near one": LIMIT, "near minus one": -LIMIT}.get(kind, rng.uniform(-0.95, 0.95))
    y = dense.draw(c.S, [alpha] * len(c.types), 1.0, rng)[0]
    change = {
        "huge": lambda: 1e9 * y,
        "tiny": lambda: 1e-9 * y,
        "far from zero": lambda: 1e9 + y,
        "constant": lambda: np.full(c.n, 7.0),
        "one spike": lambda: np.where(np.arange(c.n) == rng.integers(c.n), 1e9, 0.0),
        "counts": lambda: np.floor(np.exp(y)),
    }
    return change.get(kind, lambda: y)()


def features(n: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    x = rng.standard_normal((n, 2))
    return {
        "plain": x,
        "constant": np.column_stack([x, np.full(n, 3.0), np.zeros(n)]),
        "collinear": np.column_stack([x, x @ [2.0, -1.0], x[:, 0] * (1 + 1e-13)]),
        "units": x * [1e12, 1e-12],
        "far from zero": 1e9 + x,
        "wide": rng.standard_normal((n, 4 * n)),
        "float32": x.astype(np.float32),
        "alone": np.column_stack([x, np.arange(n) == rng.integers(n)]),
    }[kind]


WEIGHTS = ("ones", "ones", "decades", "bottleneck")
LABELS = ("half", "half", "all", "all but one", "three", "one a component")
VALUES = ("plain", "near one", "near minus one", "huge", "tiny", "far from zero", "constant", "one spike", "counts")
FEATURES = ("plain", "constant", "collinear", "units", "far from zero", "wide", "float32", "alone")


def draw_problem(rng: np.random.Generator) -> Problem:
    """One problem, each part of it chosen by chance."""
    shape, weight, label, value, feature = (
        str(rng.choice(k)) for k in (list(SHAPES), WEIGHTS, LABELS, VALUES, FEATURES)
    )
    c = weighted(SHAPES[shape](int(rng.integers(6, 40))), weight, rng)
    c = labelled(c, label, rng)
    base = [*["zero", "mean", "linear"], Ridge()][rng.integers(4)]
    correlation = [*["learned"] * 4, "propagate", None][rng.integers(6)]
    y = np.where(c.labelled, values(c, value, rng), np.nan)
    name = f"{shape} of {c.n}, weights {weight}, labels {label}, y {value}, X {feature}, {base} {correlation}"
    return Problem(name, c, features(c.n, feature, rng), y, base, correlation)


def judge(problem: Problem) -> str:
    """Fit and predict; "answered", or why not. Raises AssertionError where an answer is wrong."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = GraphRegressor(problem.base, problem.correlation).fit(
                problem.X, problem.y, graph=problem.case.graph
            )
            numbers = check_finite(model)
        except ValueError as error:
            text = str(error)
            assert any(reason in text for reason in REASONS), f"{problem.name}: {text}"
            assert "\n" not in text
            return "refused"
        check_against_dense(problem.case, model, numbers[0])
    # LinAlgWarning is scikit-learn's own word on a ridge regression of columns in other units.
    strange = [w for w in told if not issubclass(w.category, (UserWarning, LinAlgWarning))]
    assert not strange, f"{problem.name}: {strange[0].message}"
    return "warned" if any(issubclass(w.category, NotConverged) for w in told) else "answered"


def check_finite(model: GraphRegressor) -> tuple[np.ndarray, ...]:
    """Mean and deviation of a model that has no infinite number anywhere, ordered as they should be."""
    mean, std = model.predict(return_std=True)
    left_out, spread = model.predict(return_std=True, known="predict")
    lower, upper = model.predict_interval()
    everything = (mean, std, left_out, spread, lower, upper, model.sample(3), list(model.alpha_.values()))
    assert all(np.isfinite(part).all() for part in everything)
    assert (std >= 0).all()
    assert (spread >= 0).all()
    assert (lower <= mean).all()
    assert (mean <= upper).all()
    assert 0 < model.beta_ < np.inf
    assert str(model.diagnose())
    return mean, std


def check_against_dense(c: Case, model: GraphRegressor, mean: np.ndarray) -> None:
    """The likelihood and the conditional distribution at the fitted alpha are those of dense algebra."""
    alpha = np.array([model.alpha_[t] for t in c.types])
    if (alpha == 1).all():
        return  # propagation is held to dense algebra elsewhere, component by component
    known = ~np.isnan(model.y_)
    r = model.outcome_.residual
    size = np.abs(r).max()
    beta = model.beta_ * size**2
    omega = Likelihood(c.graph, known).omega(r / size, alpha, beta)
    expected = dense.omega(c.S, alpha, beta, known, r / size)
    slack = 1e-16 / (1 - np.abs(alpha).max()) ** 2 + 1e-9  # twice the condition number: of a Schur complement
    assert abs(omega.value - expected) <= slack * (abs(expected) + len(r) + beta * (r / size) @ (r / size))
    if known.all():
        return
    full = np.where(known, 0.0, np.nan)
    full[known] = r / size
    conditional = Conditional(c.graph, known, model.alpha_, beta)
    shift, spread = dense.conditional(c.S, alpha, beta, known, r / size)
    assert np.abs(conditional.conditional_mean(full)[~known] - shift).max() <= slack * 1e3 * max(np.abs(shift).max(), 1)
    variance = conditional.variance().value[~known]
    assert np.abs(variance / np.diag(spread) - 1).max() <= slack * 1e3
    near = np.abs(mean[~known] - (model.base_.predict(c.graph, model.X_)[~known] + size * shift))
    assert near.max() <= slack * 1e3 * max(np.abs(model.y_[known]).max(), size, np.abs(mean).max())


def explore(budget: Budget, random_state: int) -> dict[str, int]:
    """Judge problems until time is up: how many were answered, refused with a reason, and answered with a warning."""
    counts: Counter[str] = Counter()
    for seed in until(budget):
        counts[judge(draw_problem(np.random.default_rng([random_state, seed])))] += 1
    return dict(counts)
