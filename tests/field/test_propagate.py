"""Label propagation is the dense harmonic solution, and says which nodes it could not reach."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dense
import residua
from graphs import CASES, case, grid, small_world

REACHED = ["path", "star", "labelled hub", "two components", "weighted", "self-loops", "two types"]
LARGER = {
    "small world": small_world(n=300, share=0.1),
    "grid": grid(20, 20, share=0.02),
    "long path": case(1200, [(i, i + 1) for i in range(1199)], [0, 700, 1199]),
    "two types": small_world(n=200, types=2, share=0.05),
}


def known(c, rng):
    return np.where(c.labelled, rng.standard_normal(c.n), np.nan)


@pytest.mark.parametrize("name", REACHED)
def test_propagation_is_the_dense_harmonic_solution(name, rng):
    c = CASES[name]
    y = known(c, rng)
    assert_allclose(residua.propagate(y, c.graph), dense.harmonic(c.S, c.labelled, y), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", LARGER)
def test_propagation_on_larger_graphs(name, rng):
    c = LARGER[name]
    y = known(c, rng)
    assert_allclose(residua.propagate(y, c.graph), dense.harmonic(c.S, c.labelled, y), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", [*REACHED, "two types"])
def test_propagated_constant_is_the_eigenvector_of_the_graph(name):
    """S has D^1/2 1 for eigenvalue 1: labels proportional to it are carried on without a change."""
    c = CASES[name]
    constant = 3 * np.sqrt(c.graph.degree)
    assert_allclose(residua.propagate(np.where(c.labelled, constant, np.nan), c.graph), constant, rtol=1e-8)


def test_one_label_fills_a_component():
    c = CASES["weighted"].with_labels([4])
    filled = residua.propagate(np.where(c.labelled, 2.0, np.nan), c.graph)
    assert_allclose(filled, 2.0 * np.sqrt(c.graph.degree / c.graph.degree[4]), rtol=1e-8)


def test_every_node_known_is_returned_as_it_came(any_case, rng):
    y = rng.standard_normal(any_case.n)
    assert_array_equal(residua.propagate(y, any_case.graph), y)


def test_known_values_do_not_change(rng):
    c = LARGER["small world"]
    y = known(c, rng)
    assert_array_equal(residua.propagate(y, c.graph)[c.L], y[c.L])


@pytest.mark.parametrize("scale", [1e9, 1e-9])
def test_propagation_is_linear(scale, rng):
    c = LARGER["grid"]
    y, z = known(c, rng), known(c, rng)
    total = residua.propagate(scale * (y + 2 * z), c.graph)
    parts = residua.propagate(y, c.graph) + 2 * residua.propagate(z, c.graph)
    assert_allclose(total / scale, parts, atol=1e-7)


@pytest.mark.parametrize("name", ["weighted", "self-loops", "two types"])
def test_propagation_follows_the_nodes_when_they_change_places(name, rng):
    c = CASES[name]
    order = rng.permutation(c.n)
    y = known(c, rng)
    assert_allclose(
        residua.propagate(y[order], c.permuted(order).graph), residua.propagate(y, c.graph)[order], atol=1e-9
    )


def test_components_without_labels_are_named_and_get_the_mean():
    c = CASES["component without label"]
    y = np.where(c.labelled, np.arange(8.0), np.nan)
    with pytest.warns(
        UserWarning, match=r"1 of 2 components have no label \(4 nodes: 4, 5, 6, \.\.\.\); they get 1.667"
    ):
        filled = residua.propagate(y, c.graph)
    assert_allclose(filled[4:], 5 / 3)
    reached = dense.harmonic(dense.block(c.S[0], range(4))[None], c.labelled[:4], y[:4])
    assert_allclose(filled[:4], reached, rtol=1e-8)


def test_isolated_nodes_are_named_by_their_ids():
    graph = residua.Graph.from_edges(["a", "b"], ["b", "c"], nodes=["a", "lone", "b", "c", "island"])
    with pytest.warns(UserWarning, match=r"2 of 3 components have no label \(2 nodes: 'lone', 'island'\); they get 7"):
        filled = residua.propagate([1.0, np.nan, np.nan, 3.0, np.nan], graph, fallback=7.0)
    assert_array_equal(filled[[1, 4]], 7.0)


def test_no_warning_where_every_component_has_a_label(rng):
    c = CASES["two components"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        residua.propagate(known(c, rng), c.graph)


def test_lists_series_and_columns_are_alike():
    ring = residua.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    values = [1.0, np.nan, 3.0, np.nan]
    for given in (values, np.array(values), np.array(values)[:, None], pd.Series(values)):
        assert_allclose(residua.propagate(given, ring), [1.0, 2.0, 3.0, 2.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([np.nan] * 4, "values has no known value"),
        ([1.0, np.inf, 2.0, np.nan], r"values\[1\] is inf"),
        ([1.0, 2.0, 3.0], r"values has shape \(3,\) but graph has 4 nodes"),
        (["a", "b", "c", "d"], "values is not numeric"),
    ],
)
def test_bad_values_get_one_clear_error(values, message):
    ring = residua.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    with pytest.raises(ValueError, match=message):
        residua.propagate(values, ring)


def test_something_that_is_no_graph_is_refused():
    with pytest.raises(TypeError, match=r"graph is ndarray, not a residua\.Graph"):
        residua.propagate([1.0, 2.0], np.eye(2))
