"""A search that starts near an alpha ends at the likelihood's maximum all the same, wherever it starts."""

import numpy as np
import pytest

import dense
from graphs import grid, small_world
from residua import Cholesky, GraphRegressor, Network, fit_correlation
from residua.field import Likelihood, correlator
from residua.field import search as searching
from residua.field.precision import A_MAX
from residua.field.profile import Profile
from residua.field.search import COARSE_GRID, search
from residua.linalg.logdet import choice
from residua.linalg.logdet.exact import FactorRatio

STARTS = (-5.0, -3.0, -1.5, 0.1, 1.5, 3.0, 5.0)


@pytest.mark.parametrize("seed", range(8))
def test_far_from_the_start_the_optimum_is_that_of_a_search_everywhere(seed):
    """Residuals without correlation: near -1 and 1 the likelihood is flat, and wide steps pass over its maximum."""
    c = small_world(n=120, degree=6, share=0.5, seed=3)
    profile = Profile(Likelihood(c.graph, c.labelled), np.random.default_rng(seed).standard_normal(c.labelled.sum()))
    best = profile.omega(search(profile)[0])
    for start in STARTS:
        assert profile.omega(search(profile, np.array([start]))[0]) < best + 1e-3, f"started at {start}"


@pytest.mark.parametrize("start", [0.9, 1.6, 3.4])
def test_a_search_walks_a_few_moves_without_looking_everywhere(start):
    """Each alpha costs two factors here; the optimum is the one that a search everywhere finds."""
    c = small_world(n=120, degree=6, share=0.5, seed=3)
    r = dense.draw(c.S, [0.98], 1.0, np.random.default_rng(1))[0][c.labelled]
    profile, whole = (Profile(Likelihood(c.graph, c.labelled, Cholesky()), r) for _ in range(2))
    found, best = search(profile, np.array([start]))[0], search(whole)[0]
    np.testing.assert_allclose(found, best, atol=1e-5)
    assert len(profile.logdets) < min(COARSE_GRID, len(whole.logdets))


@pytest.mark.parametrize("rough", [False, True])
def test_a_start_at_the_limit_stays_there_where_that_is_the_optimum(rough):
    """With triangles nothing is singular at -1, and the likelihood is flat there; the labels speak all the same."""
    c = small_world(n=120, degree=6, share=0.7, seed=3)
    r = dense.draw(c.S, [-1.0], 1.0, np.random.default_rng(1))[0]
    profile = Profile(Likelihood(c.graph, c.labelled), r[c.labelled])
    found = search(profile, np.array([-A_MAX]), rough)[0]
    assert np.tanh(found[0]) < -0.999
    assert profile.omega(found) < profile.omega(np.zeros(1)) - 4


@pytest.mark.parametrize("seed", range(4))
def test_two_types_end_no_worse_than_without_a_correlation(seed):
    c = small_world(n=80, degree=6, share=0.5, seed=3, types=2)
    profile = Profile(Likelihood(c.graph, c.labelled), np.random.default_rng(seed).standard_normal(c.labelled.sum()))
    for start in ((5.0, 5.0), (-5.0, 5.0), (5.0, -5.0), (-5.0, -5.0)):
        assert profile.omega(search(profile, np.array(start))[0]) <= profile.omega(np.zeros(2)), f"started at {start}"


def test_more_types_than_the_labels_can_tell_apart_are_said_to_be():
    c = small_world(n=60, degree=6, share=0.5, types=5, seed=1)
    y = np.where(c.labelled, np.random.default_rng(1).standard_normal(c.n), np.nan)
    with pytest.warns(UserWarning, match="5 edge types are more than 30 labels can tell apart"):
        fit_correlation(y, c.graph)


@pytest.fixture
def smooth_map():
    """A map whose labels are so smooth that few probes and steps are not enough."""
    c = grid(50, 50, share=0.5, seed=2)
    r = dense.draw(c.S, [0.9995], 1.0, np.random.default_rng(3))[0]
    return c, np.where(c.labelled, r, np.nan)


@pytest.mark.parametrize("grid_given", ["by error", "elsewhere"])
def test_factors_that_take_over_from_probes_find_the_same_maximum_at_few_alphas(smooth_map, monkeypatch, grid_given):
    c, y = smooth_map
    exact = fit_correlation(y, c.graph, logdet=Cholesky())
    asked = []
    value = FactorRatio.value
    monkeypatch.setattr(FactorRatio, "value", lambda self, alpha: asked.append(alpha[0]) or value(self, alpha))
    monkeypatch.setattr(choice, "EXACT_SECONDS", 0.0)
    if grid_given == "elsewhere":
        monkeypatch.setattr(searching, "_plausible", lambda profile, a: np.array([-4.0, -3.0, -2.0]))
    fit = fit_correlation(y, c.graph)
    assert fit.methods["log-determinant"] == exact.methods["log-determinant"]
    assert abs(fit.alpha["edge"] - exact.alpha["edge"]) < 1e-3 * exact.alpha_stderr["edge"]
    assert fit.restricted_log_likelihood == pytest.approx(exact.restricted_log_likelihood, abs=1e-6)
    if grid_given == "by error":
        assert len(set(asked)) < 20


def test_a_network_s_alpha_is_the_maximum_although_training_ended_far_from_it(monkeypatch):
    pytest.importorskip("torch")
    c = small_world(n=120, degree=6, share=0.5, seed=3)
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((c.n, 2)), np.where(c.labelled, rng.standard_normal(c.n), np.nan)
    whole = correlator.maximise_likelihood

    def from_afar(profile, edge_types, start, bartlett):
        return whole(profile, edge_types, np.full_like(start, 5.0), bartlett)

    found = []
    for how in (whole, from_afar):
        monkeypatch.setattr(correlator, "maximise_likelihood", how)
        model = GraphRegressor(Network("hops", epochs=10)).fit(X, y, graph=c.graph)
        found.append((model.alpha_["edge"], model.correlation_.p_value))
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)
