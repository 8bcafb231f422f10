"""The first screen of the report: sentences whose numbers are those of the model."""

import numpy as np
import pytest

import residua
from graphs import small_world
from residua.views.contents import Contents
from residua.views.page.words import Words, about

N = 120


def data(strength=1.0, seed=0, features=1):
    case = small_world(N, 6, seed=seed)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, features))
    field = np.linalg.solve(np.eye(N) - 0.98 * case.graph.operators["edge"].to_scipy().toarray(), rng.normal(size=N))
    y = X[:, 0] + strength * field + 0.05 * rng.normal(size=N)
    return case.graph, X, np.where(np.arange(N) % 4 == 1, np.nan, y)


def words(model):
    return Words(Contents(model))


def test_numbers_of_the_first_screen_are_those_of_the_model():
    graph, X, y = data()
    model = residua.GraphRegressor("linear").fit(X, y, graph=graph)
    found = words(model)
    known = ~np.isnan(y)
    miss = np.abs(y - model.predict(known="predict"))[known].mean()
    assert found.errors[1] == pytest.approx(miss)
    base = np.abs(model.outcome_.base_out_of_fold_error).mean()
    assert found.errors[0] == pytest.approx(base)
    assert (
        found.found
        == f"The neighbours help: predictions miss by {about(miss)} on average, and by {about(base)} without them."
    )
    assert found.asked.startswith(
        f"It is known at {known.sum()} of {N} nodes and predicted at {N - known.sum()}, from 1 feature"
    )
    typical, sure, *_ = found.cards
    assert typical.value == about(miss)
    lower, upper = model.predict_interval()
    assert sure.value == f"± {about(float(np.median((upper - lower)[~known]) / 2))}"


def test_neighbours_that_do_not_help_are_not_said_to():
    graph, X, y = data(strength=0.0)
    assert words(residua.GraphRegressor("linear").fit(X, y, graph=graph)).found.startswith(
        ("The neighbours do not help", "Whether neighbours are alike")
    )
    none = words(residua.GraphRegressor("linear", None).fit(X, y, graph=graph)).found
    assert none.startswith("The neighbours have no say; from the features alone, predictions miss by")


def test_what_to_mind_is_named_and_counted():
    graph, X, y = data()
    nodes = np.arange(N + 2)
    edges = graph.adjacency().tocoo()
    lonely = residua.Graph.from_edges(edges.row, edges.col, nodes=nodes)
    X, y = np.vstack([X, [[9.0], [0.0]]]), np.append(y, [np.nan, np.nan])
    care = list(words(residua.GraphRegressor("linear").fit(X, y, graph=lonely)).care)
    assert "2 of the nodes have no neighbours; there the features alone speak." in care
    beyond = int(((X[:, 0] > X[~np.isnan(y), 0].max()) | (X[:, 0] < X[~np.isnan(y), 0].min()))[np.isnan(y)].sum())
    assert f"{beyond} of the nodes have a feature below or above all that was seen at known labels." in care
    assert any(text.startswith("Only 90 labels tell") for text in care)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (32514.3, "32,500"),
        (0.044123, "0.0441"),
        (-1234567, "−1,230,000"),
        (float("nan"), "–"),
        (0.0, "0"),
        (99.96, "100"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert about(value) == text
