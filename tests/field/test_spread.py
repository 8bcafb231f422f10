"""A learned spread: its likelihood, what it recovers of simulated noise, and where it stays constant."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.stats import kstest, norm, t

import dense
import residua
from graphs import grid, small_world
from residua.field.neighbour_errors import HOPS, LARGEST, Neighbourhood
from residua.field.spread import FEWEST, SLIMMEST, Likelihood, Scores, Spread, fit_spread

CHANCE = 0.001  # of a false alarm


def scores(n=400, k=3, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.random((HOPS + 1, n))
    around = Neighbourhood(weights * rng.chisquare(1, (HOPS + 1, n)), weights)
    return Scores(rng.standard_t(5, n), rng.standard_normal((n, k)), tuple("abc"[:k]), around)


THETA = np.array([0.1, 0.4, -0.3, -0.7, 0.8, 0.2, -0.1, 0.3])


def test_the_likelihood_is_that_of_students_t_at_the_local_scale():
    given = scores()
    b, r, nu = np.exp(0.4), 1 / (1 + np.exp(0.3)), SLIMMEST + np.exp(0.8)
    a, m = np.exp(-0.7), np.mean(np.minimum(given.z**2, LARGEST))
    w = (a * m + given.around.squares[2]) / (a + given.around.weights[2])
    top, bottom = (one[0] + r * one[1] for one in given.around)
    s = np.exp(0.1 + given.columns @ THETA[5:]) * np.sqrt((b * w + top) / (b + bottom))
    expected = t.logpdf(given.z, nu, scale=s * np.sqrt((nu - 2) / nu)).sum()
    assert_allclose(Likelihood(given).log_likelihood(THETA), expected, rtol=1e-12)
    spread = Likelihood(given).spread(THETA, Spread(centre=np.zeros(3), unit=np.ones(3)), 0.0)
    clipped = np.abs(given.columns).max(axis=1) > 2.5
    assert_allclose(spread.scale(given.columns, given.around)[~clipped], s[~clipped], rtol=1e-12)


@pytest.mark.parametrize("local", [True, False])
def test_the_gradient_is_that_of_differences(local):
    likelihood = Likelihood(scores(60), local)
    slopes = approx_fprime(THETA, lambda x: likelihood.penalised(x, 3.0)[0], 1e-6)
    found = likelihood.penalised(THETA, 3.0)[1]
    if not local:
        assert_array_equal(found[1:4], 0)
        found[1:4] = slopes[1:4]
    assert_allclose(found, slopes, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("df", [2.6, 4.0, 30.0, np.inf])
def test_std_is_a_standard_deviation_and_widths_and_draws_are_those_of_the_density(df):
    spread = Spread(df=df)
    law = norm() if df == np.inf else t(df, scale=np.sqrt((df - 2) / df))
    assert_allclose(law.std(), 1)
    for level in (0.5, 0.9, 0.99):
        assert_allclose(law.cdf(spread.width(level)) - law.cdf(-spread.width(level)), level, rtol=1e-9)
    z = np.linspace(-5, 5, 23)
    assert_allclose(spread.log_density(z), law.logpdf(z), rtol=1e-9)
    drawn = spread.with_tails(np.random.default_rng(0).standard_normal(4000))
    assert kstest(drawn, law.cdf).pvalue > CHANCE


def test_columns_and_tails_are_recovered():
    rng = np.random.default_rng(3)
    n, g = 6000, np.array([0.5, 0.0, -0.3])
    V = rng.standard_normal((n, 3))
    none = Neighbourhood(np.zeros((HOPS + 1, n)), np.zeros((HOPS + 1, n)))
    z = rng.standard_t(6, n) * np.sqrt(4 / 6) * np.exp(np.clip(V, -2.5, 2.5) @ g)
    found = fit_spread(Scores(z, V, tuple("abc"), none))
    error = np.sqrt((6 + 3) / (2 * 6) / n)  # by Fisher's information
    assert (np.abs(found.coefficients - g) < 4.5 * error).all()
    assert 4.5 < found.df < 9


def test_noise_of_one_size_loses_next_to_nothing():
    left, lost = 0, []
    for seed in range(12):
        rng, case = np.random.default_rng(seed), scores(500, seed=seed)
        around = Neighbourhood(case.around.weights * 1.0, case.around.weights)
        found = fit_spread(case._replace(z=rng.standard_normal(500), around=around))
        left += found.gaussian
        new, s = rng.standard_normal(500), found.scale(case.columns[:, : len(found.names)], around)
        lost.append(norm.logpdf(new).mean() - np.mean(found.log_density(new / s) - np.log(s)))
    assert left >= 8
    assert np.mean(lost) < 0.01


def test_few_labels_and_errors_of_nothing_leave_the_field_as_it_is():
    assert fit_spread(scores(FEWEST - 1)).gaussian
    assert not fit_spread(scores(2000)).gaussian
    many = scores(200)
    assert fit_spread(many._replace(z=np.zeros(200))).gaussian


def halves(seed=0, side=30):
    """A map whose right half is twice as loud; three of five labels are known."""
    case, rng = grid(side, side, share=0.6, seed=seed), np.random.default_rng(seed)
    loud = np.arange(case.n) % side >= side // 2
    y = dense.draw(case.S, 0.9, 1.0, rng)[0] * 0.2 + rng.standard_normal(case.n) * np.where(loud, 2.0, 1.0)
    return case, y, loud


def test_loud_and_quiet_nodes_are_covered_alike():
    inside = {"learned": np.zeros((2, 2)), "constant": np.zeros((2, 2))}
    for seed in range(5):
        case, y, loud = halves(seed)
        for spread, found in inside.items():
            model = residua.GraphRegressor("mean", spread=spread).fit(
                None, np.where(case.labelled, y, np.nan), graph=case.graph
            )
            for k, method in enumerate(("predictive", "conformal")):
                low, high = model.predict_interval(method=method)
                within = (low <= y) & (y <= high)
                found[k] += [within[~case.labelled & half].mean() / 5 for half in (loud, ~loud)]
    assert ((inside["learned"] > 0.85) & (inside["learned"] < 0.95)).all(), inside
    assert (inside["constant"][:, 0] < 0.85).all(), inside


@pytest.fixture(scope="module")
def learned():
    case, y, loud = halves(7, side=20)
    X = np.column_stack([loud, np.random.default_rng(0).standard_normal(case.n)]).astype(float)
    known = np.where(case.labelled, y, np.nan)
    models = [residua.GraphRegressor("linear", spread=how).fit(X, known, graph=case.graph) for how in SPREADS]
    return case, X, y, models


SPREADS = ("learned", "constant")


def test_means_and_errors_do_not_change(learned):
    *_, (one, other) = learned
    assert not one.field_.spread.gaussian
    assert other.field_.spread.gaussian
    assert_array_equal(one.predict(), other.predict())
    assert_array_equal(one.predict(known="predict"), other.predict(known="predict"))
    assert not np.array_equal(one.predict(return_std=True)[1], other.predict(return_std=True)[1])


def test_draws_have_the_means_the_deviations_and_the_tails(learned):
    case, _, _, (model, _) = learned
    mean, std = model.predict(return_std=True)
    drawn = model.sample(4000, random_state=3)
    assert_array_equal(drawn[:, case.labelled], np.tile(mean[case.labelled], (4000, 1)))
    U = ~case.labelled
    z = (drawn[:, U] - mean[U]) / std[U]
    nu = model.field_.spread.df
    each = [kstest(column, t(nu, scale=np.sqrt((nu - 2) / nu)).cdf).pvalue for column in z[:, ::10].T]
    assert min(each) > CHANCE / len(each)


def test_left_out_labels_are_scaled_by_what_others_say_of_them(learned):
    case, _, _, (model, constant) = learned
    own = model.field_.prediction
    s = own.scale
    _, wide = constant.predict(known="predict", return_std=True)
    _, std = model.predict(known="predict", return_std=True)
    assert_allclose(std, s * wide, rtol=1e-12)
    assert_allclose(own.scores, constant.field_.prediction.scores / s[case.labelled], rtol=1e-12)


def test_a_grown_graph_later_labels_and_another_graph_have_the_spread(learned):
    case, X, y, (model, constant) = learned
    later = np.where(np.arange(case.n) % 7 == 0, y, np.nan)
    (_, one), (_, plain) = (each.predict(y=later, return_std=True) for each in (model, constant))
    hidden = ~case.labelled & np.isnan(later)
    assert (one[~hidden] == 0).all()
    loud = X[:, 0] > 0
    assert one[hidden & loud].mean() > 1.5 * one[hidden & ~loud].mean()
    assert plain[hidden & loud].mean() < 1.1 * plain[hidden & ~loud].mean()
    copied = residua.Graph.from_scipy(case.graph.adjacency())
    there = model.field_.on(copied, X, np.where(case.labelled, y, np.nan))
    assert_allclose(there.std, model.predict(return_std=True)[1], rtol=0.2)  # coefficients are taken as they are
    alone = model.field_.on(copied, X)  # without a label columns say what there is to say
    assert_allclose(alone.around.weights, 0)
    assert alone.scale[X[:, 0] > 0].mean() > alone.scale[X[:, 0] == 0].mean()


def test_pickles_and_files_answer_alike(learned, tmp_path):
    *_, (model, constant) = learned
    _, std = model.predict(return_std=True)
    model.save(tmp_path / "model.residua")
    loaded = residua.load(tmp_path / "model.residua")
    assert isinstance(loaded.field_.spread_setting, Spread)  # which a file has once it was asked for
    for again in (pickle.loads(pickle.dumps(model)), loaded):
        assert_array_equal(again.predict(return_std=True)[1], std)
        assert_array_equal(again.sample(2), model.sample(2))
    constant.save(tmp_path / "constant.residua")
    assert residua.load(tmp_path / "constant.residua").field_.spread.gaussian


def test_the_former_name_of_predictive_intervals_is_accepted(learned):
    *_, (model, _) = learned
    assert model.interval_width(0.8, "gaussian") == model.interval_width(0.8, "predictive")


def test_the_diagnosis_and_the_summary_say_where_it_is_sure(learned):
    *_, (model, constant) = learned
    diagnosis = model.diagnose()
    assert "where feature 0 is high" in diagnosis.spread or "errors of labels around are large" in diagnosis.spread
    assert diagnosis.spread in str(diagnosis)
    assert diagnosis.spread in str(model.summary())
    assert "Predictive 90 % intervals" in str(diagnosis)
    assert diagnosis.coverages[0.9] == np.mean(
        model.field_.prediction.scores <= model.interval_width(0.9, "predictive")
    )
    assert "Gaussian 90 % intervals" in str(constant.diagnose())
    assert constant.diagnose().spread == ""


def test_an_average_has_the_tails_of_its_errors(learned):
    *_, (model, constant) = learned
    average = residua.Average([model, constant])
    assert np.isfinite(average.tails_.df)
    assert average.interval_width(0.9, "predictive") == average.tails_.width(0.9)
    assert residua.Average([constant, constant]).tails_.gaussian


def test_a_network_trained_on_every_label_keeps_the_field():
    pytest.importorskip("torch")
    case = small_world(200, 4, share=0.8, seed=2)
    X = np.random.default_rng(0).standard_normal((case.n, 2))
    y = np.where(case.labelled, X[:, 0], np.nan)
    model = residua.GraphRegressor(residua.Network("hops", epochs=3), training="paper", spread="learned")
    model.fit(X, y, graph=case.graph)
    assert model.field_.in_sample
    assert model.field_.spread.gaussian
