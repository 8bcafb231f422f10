from dataclasses import FrozenInstanceError
from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from residua import metrics
from residua.graph import Graph

NAN = float("nan")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def forecast(rng):
    y, mean, std = rng.normal(size=(3, 50))
    return y, mean, np.abs(std) + 0.1


# Errors of a prediction


def test_r2_is_one_for_the_truth_and_zero_for_the_mean(rng):
    y = rng.normal(size=30)
    assert metrics.r2(y, y) == 1
    assert_allclose(metrics.r2(y, np.full(30, y.mean())), 0, atol=1e-15)


def test_r2_of_least_squares_is_the_squared_correlation(rng):
    x = rng.normal(size=40)
    y = x + rng.normal(size=40)
    line = np.polyval(np.polyfit(x, y, 1), x)
    assert_allclose(metrics.r2(y, line), np.corrcoef(x, y)[0, 1] ** 2)


def test_rmse_is_the_shift_of_a_shifted_prediction(rng):
    y = rng.normal(size=30)
    assert_allclose(metrics.rmse(y, y - 2.5), 2.5)


def test_sign_accuracy_counts_shared_sides_of_zero():
    assert metrics.sign_accuracy([1, 1, -1, -1, -1], [0.1, -0.1, -3, 3, 0]) == 3 / 5


# Scores of a distribution


def test_gaussian_nll_is_the_mean_log_density(forecast):
    y, mean, std = forecast
    assert_allclose(metrics.gaussian_nll(y, mean, std), -stats.norm(mean, std).logpdf(y).mean())


@pytest.mark.parametrize(("y", "mean", "std"), [(0.3, 0.0, 1.0), (-2.0, 1.0, 0.4), (5.0, 5.0, 3.0)])
def test_gaussian_crps_is_the_integral_that_defines_it(y, mean, std):
    cdf = stats.norm(mean, std).cdf
    below = integrate.quad(lambda t: cdf(t) ** 2, mean - 12 * std, y)[0]
    above = integrate.quad(lambda t: (1 - cdf(t)) ** 2, y, mean + 12 * std)[0]
    assert_allclose(metrics.gaussian_crps([y], [mean], [std]), below + above, rtol=1e-6)


def test_gaussian_crps_tends_to_the_absolute_error_as_std_vanishes(forecast):
    y, mean, _ = forecast
    assert_allclose(metrics.gaussian_crps(y, mean, np.full(50, 1e-9)), np.abs(y - mean).mean(), rtol=1e-6)


@pytest.mark.parametrize("score", [metrics.gaussian_nll, metrics.gaussian_crps])
@pytest.mark.parametrize(("shift", "stretch"), [(0.3, 1), (0, 0.6), (0, 1.6)])
def test_the_true_distribution_scores_best(rng, score, shift, stretch):
    y = rng.normal(size=4000)
    ones = np.ones(4000)
    assert score(y, 0 * ones, ones) < score(y, shift * ones, stretch * ones)


def test_coverage_includes_the_ends_and_allows_infinite_ones():
    assert metrics.coverage([0, 1, 2, 3], [0, 0, 0, -np.inf], [1, 1, 1, np.inf]) == 3 / 4


@pytest.mark.parametrize("other", [0.5, 0.8, 0.98])
def test_interval_score_is_lowest_for_the_interval_it_asks_for(rng, other):
    y = rng.normal(size=4000)

    def score(level):
        low, high = stats.norm.interval(level)
        return metrics.interval_score(y, np.full(4000, low), np.full(4000, high), coverage=0.9)

    assert score(0.9) < score(other)


@pytest.mark.parametrize("score", [metrics.r2, metrics.rmse, metrics.sign_accuracy])
def test_unknown_labels_are_left_out_of_errors(rng, score):
    y, prediction = rng.normal(size=(2, 20))
    hidden = np.where(np.arange(20) < 5, NAN, y)
    assert score(hidden, prediction) == score(y[5:], prediction[5:])
    assert score(hidden, prediction) != score(y, prediction)


def test_unknown_labels_are_left_out_of_scores(forecast):
    y, mean, std = forecast
    hidden, std = np.where(np.arange(50) < 20, NAN, y), np.where(np.arange(50) < 20, 0, std)
    assert metrics.gaussian_nll(hidden, mean, std) == metrics.gaussian_nll(y[20:], mean[20:], std[20:])
    assert metrics.gaussian_crps(hidden, mean, std) == metrics.gaussian_crps(y[20:], mean[20:], std[20:])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.r2([1, 1, NAN], [0, 1, 2]), r"y is 1\.0 at all 2 known nodes.*use rmse"),
        (lambda: metrics.rmse([1, 2], [1, 2, 3]), "prediction has 3 entries but y has 2"),
        (lambda: metrics.rmse([NAN, NAN], [1, 2]), "y has 2 entries and none is known"),
        (lambda: metrics.rmse([1, np.inf], [1, 2]), "y is infinite at index 1"),
        (lambda: metrics.rmse([NAN, 1], [NAN, NAN]), "prediction is nan at index 1, where y is known"),
        (lambda: metrics.rmse([0, 1], [0, np.inf]), "prediction is inf at index 1"),
        (lambda: metrics.rmse([[1.0]], [1]), r"y has shape \(1, 1\)"),
        (lambda: metrics.gaussian_nll([1, 2], [1, 2], [1, 0]), r"std is 0\.0 at 1 of 2 known nodes"),
        (lambda: metrics.gaussian_crps([1, 2], [1, 2], [-1, 1]), r"std is -1\.0 at 1 of 2"),
        (
            lambda: metrics.coverage([1, 2], [0, 3], [1, 2]),
            r"lower exceeds upper at 1 nodes, first 3\.0 > 2\.0",
        ),
        (lambda: metrics.interval_score([1], [0], [1], coverage=90), "coverage is 90; give a share between"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Moran's I


def ring(n):
    return Graph.from_edges(np.arange(n), np.roll(np.arange(n), -1))


def complete(n):
    return Graph.from_edges(*np.triu_indices(n, k=1))


GRAPHS = {
    "path": Graph.from_edges(range(5), range(1, 6)),
    "star": Graph.from_edges([0] * 5, range(1, 6)),
    "isolate": Graph.from_edges([0, 1, 2], [1, 2, 3], nodes=range(6)),
    "two components": Graph.from_edges([0, 1, 0, 3], [1, 2, 2, 4], nodes=range(6)),
    "weighted": Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], weight=[1.0, 0.2, 3.0, 0.7, 5.0]),
    "two types": Graph.from_edges([0, 1, 2, 0, 1], [1, 2, 3, 1, 5], type=list("aaabb"), nodes=range(6)),
}
VALUES = np.array([0.3, -1.2, 2.5, 0.1, -0.4, 7.0])


def dense_weights(graph):
    W = graph.adjacency().toarray()
    np.fill_diagonal(W, 0)
    return W


def dense_moran(W, x):
    x = x - x.mean()
    return len(x) / W.sum() * (x @ W @ x) / (x @ x)


@pytest.mark.parametrize("name", GRAPHS)
def test_morans_i_and_its_z_score_equal_full_enumeration_of_permutations(name):
    W = dense_weights(GRAPHS[name])
    result = metrics.morans_i(VALUES, GRAPHS[name])
    every = np.array([dense_moran(W, VALUES[list(order)]) for order in permutations(range(6))])
    assert_allclose(result.statistic, dense_moran(W, VALUES), rtol=1e-12)
    assert_allclose(result.expected, every.mean(), rtol=1e-10)
    assert_allclose(result.z_score, (result.statistic - every.mean()) / every.std(), rtol=1e-10)
    assert_allclose(result.p_value, 2 * stats.norm.sf(abs(result.z_score)))


def test_two_edge_types_add_their_weights():
    graph = Graph.from_edges([0, 0, 1, 2], [1, 1, 2, 3], weight=[1.0, 2.0, 1.0, 1.0], type=list("abaa"))
    total = Graph.from_edges([0, 1, 2], [1, 2, 3], weight=[3.0, 1.0, 1.0])
    assert metrics.morans_i(VALUES[:4], graph) == metrics.morans_i(VALUES[:4], total)


def test_nan_leaves_out_the_node_and_its_edges():
    values = np.append(VALUES, NAN)
    graph = Graph.from_edges([0, 1, 2, 3, 4, 6, 6, 6], [1, 2, 3, 4, 5, 0, 2, 4], nodes=range(7))
    assert metrics.morans_i(values, graph) == metrics.morans_i(VALUES, GRAPHS["path"])


def test_self_loops_do_not_count():
    loops = Graph.from_edges([*range(5), 0, 3], [*range(1, 6), 0, 3], weight=[1.0] * 5 + [2.0, 6.0])
    assert loops.adjacency().diagonal().sum() == 8
    assert metrics.morans_i(VALUES, loops) == metrics.morans_i(VALUES, GRAPHS["path"])


def test_units_do_not_matter():
    result, other = (metrics.morans_i(v, GRAPHS["star"]) for v in (VALUES, 1e100 * (VALUES + 3)))
    assert_allclose([other.statistic, other.z_score], [result.statistic, result.z_score], rtol=1e-9)


def test_smooth_values_are_positive_and_alternating_ones_negative():
    n = 40
    assert metrics.morans_i(np.sin(2 * np.pi * np.arange(n) / n), ring(n)).z_score > 4
    result = metrics.morans_i((-1.0) ** np.arange(n), ring(n))
    assert_allclose(result.statistic, -1)
    assert result.z_score < -4


def test_noise_is_rejected_as_often_as_the_level_says():
    graph, draws = ring(300), np.random.default_rng(1).standard_exponential((600, 300))
    p = np.array([metrics.morans_i(x, graph).p_value for x in draws])
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(p < level) - level) < 4 * np.sqrt(level * (1 - level) / 600)


def test_a_complete_graph_tells_nothing():
    result = metrics.morans_i(VALUES, complete(6))
    assert_allclose(result.statistic, result.expected)
    assert (result.z_score, result.p_value) == (0, 1)


def test_a_moran_result_is_frozen():
    with pytest.raises(FrozenInstanceError):
        metrics.morans_i(VALUES, GRAPHS["path"]).p_value = 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (VALUES[:5], "values has 5 entries but graph has 6 nodes; give one a node"),
        (np.full(6, 0.1), r"values is 0\.1 at all 6 known nodes"),
        ([1, 2, 3, NAN, NAN, NAN], "values is known at 3 nodes"),
        ([1, 2, 3, 4, np.inf, 6], "values is infinite at index 4"),
        (np.full(6, NAN), "values has 6 entries and none is known"),
    ],
)
def test_morans_i_names_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        metrics.morans_i(values, GRAPHS["path"])


def test_morans_i_needs_an_edge_between_known_nodes():
    graph = Graph.from_edges([0, 2], [1, 3], nodes=range(8))
    with pytest.raises(ValueError, match="graph has no edge among the 5 nodes with a value"):
        metrics.morans_i([NAN, 1, NAN, 2, 3, 4, 5, NAN], graph)


def test_crps_of_draws_is_its_definition(rng):
    y, draws = rng.normal(size=7), rng.normal(size=(5, 7))
    pairs = np.abs(draws[:, None] - draws[None]).mean(axis=(0, 1))
    assert_allclose(metrics.sample_crps(y, draws), np.mean(np.abs(draws - y).mean(axis=0) - pairs / 2))
    assert_allclose(metrics.sample_crps(y, draws[:1]), np.abs(draws[0] - y).mean())
    hidden = np.where(np.arange(7) < 3, y, np.nan)
    assert_allclose(metrics.sample_crps(hidden, draws), metrics.sample_crps(y[:3], draws[:, :3]))


def test_crps_of_many_draws_is_that_of_their_distribution(rng):
    y, mean, std = rng.normal(size=20), rng.normal(size=20), rng.uniform(0.5, 2, 20)
    draws = mean + std * rng.normal(size=(20_000, 20))
    assert_allclose(metrics.sample_crps(y, draws), metrics.gaussian_crps(y, mean, std), rtol=0.01)


@pytest.mark.parametrize(
    ("y", "draws", "message"),
    [
        ([1.0], [1.0], r"draws has shape \(1,\); give at least one row"),
        ([1.0], np.empty((0, 1)), "give at least one row"),
        ([1.0, 2.0], [[1.0]], "draws has 1 entries but y has 2"),
        ([1.0], [[1.0], [np.inf]], "draws is inf at index 0"),
    ],
)
def test_crps_of_draws_checks_its_arguments(y, draws, message):
    with pytest.raises(ValueError, match=message):
        metrics.sample_crps(y, draws)


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-160, 1e155, 1e300])
def test_scores_are_right_in_any_unit(unit, rng):
    """Squares of such numbers are zero or infinite."""
    y = rng.standard_normal(50)
    prediction = y + rng.standard_normal(50)
    assert metrics.r2(y * unit, prediction * unit) == pytest.approx(metrics.r2(y, prediction), rel=1e-12)
    assert metrics.rmse(y * unit, prediction * unit) == pytest.approx(
        metrics.rmse(y, prediction) * unit, rel=1e-12, abs=0
    )
