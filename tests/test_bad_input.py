"""Wrong input: one clear error that names the argument, the value and the remedy; never a wrong or infinite number."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import Ridge

import residua
from graphs import CASES
from residua import Graph, GraphRegressor

PATH = CASES["path"].graph
Y = np.array([1.0, 2.0, np.nan, 4.0, 3.0, np.nan, 2.5, np.nan])
X = np.arange(16.0).reshape(8, 2) ** 1.5


def with_value(array, at, value):
    out = np.array(array, dtype=object if isinstance(value, str) else float)
    out[at] = value
    return out


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (X, np.full(8, np.nan), r"y has no known value \(all NaN\); at least 3"),
        (X, np.where(np.arange(8) < 2, 1.0, np.nan), "y has only 2 known values; at least 3"),
        (X, with_value(Y, 1, np.inf), r"y\[1\] is inf; replace infinite values"),
        (X, Y[:5], r"y has shape \(5,\) but graph has 8 nodes"),
        (X, with_value(Y, 0, "many"), "y is not numeric .*'many'.*give numbers"),
        (with_value(X, (2, 1), np.nan), Y, "X has nan in row 2, column 1; fill or drop"),
        (with_value(X, (3, 0), -np.inf), Y, "X has -inf in row 3, column 0"),
        (X[:4], Y, r"X has shape \(4, 2\) but graph has 8 nodes; .*ordered like graph.nodes"),
        (X[:, 0], Y, r"X, of one dimension and so ids of nodes, has .* not a node of this graph"),
        (with_value(X, (0, 0), "red"), Y, "X is not numeric .*'red'.*encode text columns"),
        (pd.DataFrame({"size": X[:, 0], "colour": list("abcdefgh")}), Y, r"not numbers: \['colour'\]; encode or drop"),
        (pd.DataFrame(X, index=np.arange(8)[::-1]), Y, r"another order .* y has no ids.*X.loc\[graph.nodes\]"),
        (None, Y, "X is None; this base needs features"),
    ],
)
def test_fit_names_what_is_wrong(X, y, message):
    with pytest.raises(ValueError, match=message):
        GraphRegressor("linear").fit(X, y, graph=PATH)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"base": "forest"},
            'base=.forest. is unknown; use "zero", "mean", "linear", "splines", "trees", "mlp".* a scikit-learn',
        ),
        ({"base": Ridge}, "base=<class .*Ridge'> is unknown"),
        ({"base": 3}, "base=3 is unknown"),
        ({"correlation": "strong"}, "correlation='strong' is unknown; use one of 'learned', 'propagate', None"),
        ({"correlation": 0.5}, "correlation=0.5 is unknown"),
        ({"logdet": "exact"}, "logdet='exact' is unknown; use \"auto\", Eigen"),
        ({"base": Ridge(), "folds": 1}, "folds=1 is below 2"),
        ({"random_state": "now"}, "random_state='now' is not a whole number"),
    ],
)
def test_fit_names_the_wrong_parameter(parameters, message):
    with pytest.raises(ValueError, match=message):
        GraphRegressor(**parameters).fit(X, Y, graph=PATH)


def test_graph_must_be_a_graph():
    for wrong in (None, np.eye(8)):
        with pytest.raises(TypeError, match=r"graph is .*, not a residua.Graph; build one with Graph.from_edges"):
            GraphRegressor("linear").fit(X, Y, graph=wrong)
        with pytest.raises(TypeError, match=r"not a residua\.Graph"):
            residua.propagate(Y, wrong)


def test_a_graph_needs_edges_known_nodes_and_distinct_ids():
    with pytest.raises(ValueError, match="no edges"):
        Graph.from_edges([], [], nodes=["a", "b"])
    with pytest.raises(ValueError, match=r"'c'.*nodes"):
        Graph.from_edges(["a"], ["c"], nodes=["a", "b"])
    with pytest.raises(ValueError, match=r"nodes.*'a'"):
        Graph.from_edges(["a"], ["b"], nodes=["a", "b", "a"])


@pytest.mark.parametrize("alpha", [1.2, -1.0, np.nan])
def test_alpha_outside_its_range_is_refused(alpha):
    from residua.field import Conditional

    with pytest.raises(ValueError, match=rf"alpha={alpha} is outside \(-1, 1\)"):
        Conditional(PATH, ~np.isnan(Y), alpha)


def test_a_constant_residual_of_zero_has_nothing_to_correlate():
    with pytest.raises(ValueError, match="residual is zero at every labelled node"):
        residua.fit_correlation(Y * 0, PATH)


@pytest.mark.parametrize("correlation", [None, "propagate", "learned"])
def test_as_many_features_as_labels_are_refused(correlation):
    wide = np.random.default_rng(0).standard_normal((8, 6))
    with pytest.raises(ValueError, match=r"fits all 5 labels exactly with 7 column.*use fewer"):
        GraphRegressor("linear", correlation).fit(wide, Y, graph=PATH)


def test_prediction_on_another_graph_checks_features_and_edge_types():
    model = GraphRegressor("linear").fit(X, Y, graph=PATH)
    other = CASES["star"].graph
    with pytest.raises(ValueError, match="X has 3 columns but the model was fitted on 2"):
        model.predict(np.ones((7, 3)), graph=other)
    with pytest.raises(ValueError, match=r"edge types.*'road'.*learned.*'edge'"):
        model.predict(np.ones((9, 2)), graph=CASES["two types"].graph)
    with pytest.raises(ValueError, match=r"X has shape \(7, 2\) but graph has 8 nodes"):
        model.predict(X[:7])


@pytest.mark.parametrize(("coverage", "method"), [(0.0, "gaussian"), (1.0, "gaussian"), (0.9, "exact")])
def test_intervals_check_their_arguments(coverage, method):
    model = GraphRegressor("linear").fit(X, Y, graph=PATH)
    with pytest.raises(ValueError, match=r"coverage=|method='exact'"):
        model.predict_interval(coverage=coverage, method=method)


REASONS = ("known value", "there is nothing", "fits all", "residual is zero", "floats do not hold their squares")


@st.composite
def random_problem(draw):
    n = draw(st.integers(3, 12))
    ends = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=25))
    weight = draw(st.lists(st.floats(1e-3, 1e3), min_size=len(edges), max_size=len(edges)))
    pairs = {(min(e), max(e)): w for e, w in zip(edges, weight, strict=True)}
    values = st.one_of(st.just(np.nan), st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0]))
    y = draw(arrays(float, n, elements=values))
    X = draw(arrays(float, (n, draw(st.integers(1, 3))), elements=st.floats(-100, 100)))
    types = draw(st.booleans())
    kinds = [("a", "b")[k % 2] if types else "edge" for k in range(len(pairs))]
    source, target = zip(*pairs, strict=True)
    return Graph.from_edges(source, target, list(pairs.values()), kinds, nodes=np.arange(n)), X, y


@given(random_problem(), st.sampled_from(["zero", "mean", "linear"]), st.sampled_from([None, "propagate", "learned"]))
def test_any_input_gives_finite_numbers_or_a_clear_error(problem, base, correlation):
    graph, X, y = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = GraphRegressor(base, correlation).fit(X, y, graph=graph)
        except ValueError as error:
            reason = str(error)
            assert any(word in reason for word in REASONS), reason
            return
        mean, std = model.predict(return_std=True, known="predict")
        lower, upper = model.predict_interval()
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std >= 0).all()
    assert (lower <= upper).all()
    assert np.isfinite(list(model.alpha_.values())).all()
    assert 0 < model.beta_ < np.inf


@pytest.mark.parametrize("size", [2.5e-272, 1e-160, 3.0])
def test_a_constant_column_of_any_size_changes_nothing(size):
    graph, y = Graph.from_edges(range(9), range(1, 10)), np.sin(np.arange(10.0))
    y[3] = np.nan
    model = GraphRegressor("linear").fit(np.full((10, 1), size), y, graph=graph)
    np.testing.assert_allclose(model.predict(), GraphRegressor("mean").fit(None, y, graph=graph).predict(), rtol=1e-6)


def test_ids_left_in_a_column_are_told_to_be_made_the_index():
    graph = Graph.from_edges(["a", "b", "c"], ["b", "c", "d"])
    X = pd.DataFrame({"id": list("dcba"), "x": [1.0, 2.0, 4.0, 3.0]})
    with pytest.raises(
        ValueError, match=r"X has the ids of the nodes in column 'id'; make them its index: X.set_index"
    ):
        GraphRegressor("linear").fit(X, [1.0, 2.0, 3.0, 5.0], graph=graph)
