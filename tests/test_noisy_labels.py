"""Noise of labels from fit to file: who gives it, by what name, and what the model then says of each node."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

import residua
from residua import GraphRegressor

ELECT = residua.datasets.load_elect80()


def places(n=250, seed=0):
    """A part of the map, its features, noisy labels at three of five nodes, the values, and the noise's variances."""
    rng = np.random.default_rng(seed)
    part = ELECT.graph.adjacency()[:n, :n].tocoo()
    keep = part.row < part.col
    ids = ELECT.graph.nodes[:n]
    graph = residua.Graph.from_edges(ids[part.row[keep]], ids[part.col[keep]], nodes=ids)
    truth = ELECT.y[:n]
    N = rng.uniform(0.0005, 0.02, n)
    y = np.where(rng.random(n) < 0.6, truth + np.sqrt(N) * rng.standard_normal(n), np.nan)
    return graph, np.asarray(ELECT.X[:n]), y, truth, N


GRAPH, X, Y, TRUTH, N = places()
KNOWN = np.isfinite(Y)


@pytest.fixture(scope="module")
def model():
    return GraphRegressor("linear").fit(X, Y, graph=GRAPH, noise_variance=N)


def test_a_labelled_node_is_predicted_by_its_value_not_by_its_label(model):
    mean, std = model.predict(return_std=True)
    assert (std > 0).all()
    assert (mean[KNOWN] != Y[KNOWN]).all()
    assert (std[KNOWN] ** 2 < N[KNOWN]).mean() > 0.9  # the neighbours know something too
    assert np.mean((mean - TRUTH)[KNOWN] ** 2) < 0.7 * np.mean((Y - TRUTH)[KNOWN] ** 2)


def test_variances_by_position_by_id_and_as_one_number_are_the_same_fit(model):
    series = pd.Series(N, index=GRAPH.nodes).sample(frac=1, random_state=0)
    few = {node: N[k] for k, node in enumerate(GRAPH.nodes) if KNOWN[k]}
    for given in (series, few):
        again = GraphRegressor("linear").fit(X, Y, graph=GRAPH, noise_variance=given)
        assert again.alpha_ == model.alpha_
        assert again.beta_ == model.beta_
    named = GRAPH.with_features(X)
    by_name = GraphRegressor("linear").fit(GRAPH.nodes[KNOWN], Y[KNOWN], graph=named, noise_variance=N[KNOWN])
    assert by_name.alpha_ == model.alpha_
    one, many = (
        GraphRegressor("mean").fit(None, Y, graph=GRAPH, noise_variance=v) for v in (0.004, np.full(len(Y), 0.004))
    )
    assert one.beta_ == many.beta_


def test_weights_are_inverse_variances_up_to_a_factor_that_is_learned():
    first, tenth = (GraphRegressor("linear").fit(X, Y, graph=GRAPH, sample_weight=w) for w in (1 / N, 0.1 / N))
    assert_allclose(tenth.correlation_.noise_variance, 0.1 * first.correlation_.noise_variance, rtol=0.02)
    assert_allclose(tenth.predict(), first.predict(), rtol=1e-3)
    assert 0.5 < first.correlation_.noise_variance < 2
    assert_allclose(first.field_.noise[KNOWN], first.correlation_.noise_variance * N[KNOWN])


def test_one_number_is_learned():
    rng = np.random.default_rng(1)
    y = np.where(KNOWN, TRUTH + 0.1 * rng.standard_normal(len(TRUTH)), np.nan)
    found = GraphRegressor("linear").fit(X, y, graph=GRAPH, noise_variance="learned").correlation_
    assert (
        abs(found.noise_variance - 0.01) < 3 * found.noise_stderr + 0.004
    )  # what a county has for itself is noise too
    assert "noise variance" in str(found)


def test_no_noise_is_the_fit_without(model):
    plain = GraphRegressor("linear").fit(X, Y, graph=GRAPH)
    zero = GraphRegressor("linear").fit(X, Y, graph=GRAPH, noise_variance=0)
    assert zero.alpha_ == plain.alpha_
    assert zero.field_.noise is None
    assert (zero.predict()[KNOWN] == Y[KNOWN]).all()


def test_exact_labels_among_noisy_ones_are_returned_as_they_are():
    exact = np.where(np.arange(len(N)) % 3 == 0, 0.0, N)
    mean, std = GraphRegressor("linear").fit(X, Y, graph=GRAPH, noise_variance=exact).predict(return_std=True)
    there = KNOWN & (exact == 0)
    assert (mean[there] == Y[there]).all()
    assert (std[there] == 0).all()
    assert (std[~there] > 0).all()


def test_a_new_label_is_less_sure_than_its_value(model):
    _mean, std = model.predict(return_std=True)
    low, high = model.predict_interval(method="gaussian")
    low_new, high_new = model.predict_interval(method="gaussian", label_noise=0.01)
    width = model.interval_width(method="gaussian")
    assert_allclose((high - low) / 2, width * std)
    assert_allclose((high_new - low_new) / 2, width * np.sqrt(std**2 + 0.01))
    frame = model.predict_frame(method="gaussian", label_noise=pd.Series(0.01, index=GRAPH.nodes))
    assert_allclose(frame["upper"], high_new)
    assert_allclose(frame["std"], std)
    part = model.predict_interval(method="gaussian", label_noise=N, nodes=GRAPH.nodes[[5, 2]])
    assert_allclose(part[1] - part[0], 2 * width * np.sqrt(std[[5, 2]] ** 2 + N[[5, 2]]))
    with pytest.raises(ValueError, match="the fit learned no noise"):
        model.predict_interval(label_noise="learned")


def test_left_out_values_have_the_variance_of_left_out_labels_less_their_noise(model):
    _, std = model.predict(return_std=True, known="predict")
    assert_allclose(std[KNOWN] ** 2, model.field_.prediction.leave_one_out.variance - N[KNOWN])
    assert (std[KNOWN] > model.predict(return_std=True)[1][KNOWN]).all()
    scores = model.field_.prediction.scores
    assert 0.85 < np.mean(scores < 1.645) < 0.95


def test_later_labels_bring_their_noise_along(model):
    node, at = GRAPH.nodes[~KNOWN][0], np.flatnonzero(~KNOWN)[0]
    with pytest.raises(ValueError, match="noise_variance="):
        model.predict(y={node: 0.9})
    exact, noisy, vague = (
        model.predict(y={node: 0.9}, noise_variance={node: v}, return_std=True) for v in (0.0, 0.01, 1e6)
    )
    before = model.predict(return_std=True)
    assert exact[0][at] == 0.9
    assert exact[1][at] == 0
    assert before[0][at] < noisy[0][at] < 0.9
    assert 0 < noisy[1][at] < before[1][at]
    assert_allclose(vague[0], before[0], rtol=1e-5)
    both = Y.copy()
    both[at] = 0.9
    variances = N.copy()
    variances[at] = 0.01
    beta, alpha = model.beta_, model.alpha_
    full = residua.field.Conditional(
        GRAPH, np.isfinite(both), alpha, beta, noise=variances, design=model.base_.design(X)
    )
    theta_mean = full.mean_of(both)
    expected = theta_mean + full.conditional_mean(both - theta_mean)
    assert_allclose(noisy[0], expected, rtol=1e-4)


def test_a_fit_without_noise_takes_noisy_labels_later():
    plain = GraphRegressor("mean").fit(None, TRUTH, graph=GRAPH)
    node = GRAPH.nodes[3]
    moved = plain.predict(y={node: 2.0}, noise_variance=0.001)
    assert TRUTH[3] < moved[3] < 2.0
    with pytest.raises(ValueError, match="there is no y"):
        plain.predict(noise_variance=0.001)


def test_a_grown_graph_knows_the_noise_of_the_labels_of_the_fit(model):
    grown = GRAPH.with_nodes(["new"], [("new", GRAPH.nodes[0])])
    wide = np.vstack([X, X[:1]])
    mean, std = model.predict(wide, graph=grown, return_std=True)
    assert (std > 0).all()
    assert np.abs(mean[:-1] - model.predict()).max() < 0.05


def test_a_saved_model_is_the_same(model, tmp_path):
    learned = GraphRegressor("splines").fit(X, Y, graph=GRAPH, sample_weight=1 / N)
    for k, one in enumerate((model, learned)):
        one.save(tmp_path / f"{k}.residua")
        again = residua.load(tmp_path / f"{k}.residua")
        for a, b in zip(one.predict(return_std=True), again.predict(return_std=True), strict=True):
            assert (a == b).all()
        assert (again.field_.noise[KNOWN] == one.field_.noise[KNOWN]).all()
        assert again.correlation_.interval() == one.correlation_.interval()
        assert again.correlation_.noise_variance == one.correlation_.noise_variance


def test_what_people_read_knows_of_noise():
    learned = GraphRegressor("linear").fit(X, Y, graph=GRAPH, noise_variance="learned")
    text = str(learned.summary())
    assert "Noise variance" in text
    assert "of unknown strength" in text
    plain = GraphRegressor("linear").fit(X, Y, graph=GRAPH).summary().facts
    facts = learned.summary().facts
    parameters = (facts["aic"] + 2 * facts["log_likelihood"]) - (plain["aic"] + 2 * plain["log_likelihood"])
    assert_allclose(parameters, 2.0)  # one parameter more
    assert learned.diagnose().r2_corrected > 0


def test_an_average_of_models_of_the_same_noisy_labels(model):
    other = GraphRegressor(Ridge(), training="post-hoc").fit(X, Y, graph=GRAPH, noise_variance=N)
    mean, std = residua.Average([model, other]).predict(return_std=True)
    assert_allclose(mean, (model.predict() + other.predict()) / 2)
    assert (std > 0).all()
    with pytest.raises(ValueError, match="knows of noise"):
        residua.Average([model, GraphRegressor("linear").fit(X, Y, graph=GRAPH)])


def test_draws_are_of_the_values(model):
    draws = model.sample(2000)
    mean, std = model.predict(return_std=True)
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * std / np.sqrt(2000)).all()
    assert_allclose(draws.std(axis=0), std, rtol=0.12)


def test_several_targets_have_their_own_noise(model):
    both = np.column_stack([Y, 2 * Y])
    found = GraphRegressor("linear").fit(X, both, graph=GRAPH, noise_variance=np.column_stack([N, 4 * N]))
    assert found.targets_[0].alpha_ == model.alpha_
    assert_allclose(found.predict()[:, 1], 2 * model.predict(), rtol=1e-3)
    shared = GraphRegressor("mean").fit(None, both, graph=GRAPH, noise_variance=N)
    assert_allclose(shared.targets_[1].field_.noise[KNOWN], N[KNOWN])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"noise_variance": np.where(np.arange(250) == KNOWN.argmax(), -1.0, N)}, "noise_variance is -1.0 at"),
        ({"noise_variance": np.where(np.arange(250) < 9, np.nan, N)}, "noise_variance is nan at node"),
        ({"noise_variance": "unknown"}, '"learned"'),
        ({"sample_weight": np.zeros(250)}, "positive weight"),
        ({"sample_weight": np.ones(249)}, "sample_weight has shape"),
        ({"sample_weight": N, "noise_variance": N}, "give one of them"),
    ],
)
def test_nonsense_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        GraphRegressor("linear").fit(X, Y, graph=GRAPH, **given)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base": "linear", "correlation": None}, 'correlation="learned"'),
        ({"base": "linear", "correlation": "propagate"}, 'correlation="learned"'),
        ({"base": "trees"}, "linear base"),
        ({"base": Ridge()}, 'training="post-hoc"'),
    ],
)
def test_what_knows_no_noise_says_so(settings, message):
    with pytest.raises(ValueError, match=message):
        GraphRegressor(**settings).fit(X, Y, graph=GRAPH, noise_variance=N)
