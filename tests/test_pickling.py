"""A used model is pickled, dumped, copied and sent to another process, and answers the same bits there."""

import copy
import io
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor

from graphs import small_world
from residua import Average, GraphRegressor, fit_correlation

BASES = {
    "linear": {"base": "linear"},
    "mean": {"base": "mean", "correlation": "propagate"},
    "boosting": {"base": HistGradientBoostingRegressor(max_iter=5)},
}
if find_spec("torch"):
    BASES["network"] = {"base": "network", "ensemble": 2}


def answers(model):
    """All that a model computes: each of these has a factor, draws or a solve behind it."""
    parts = [*model.predict(return_std=True), *model.predict(known="predict", return_std=True)]
    parts += model.predict_interval()
    if isinstance(model, GraphRegressor):
        parts += [model.sample(2), np.array(list(model.diagnose().alpha_interval.values()))]
    return np.concatenate([np.ravel(part) for part in parts])


def fitted(name):
    case = small_world(150, 6, share=0.6, seed=1)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((case.n, 3))
    y = np.where(case.labelled, X.sum(axis=1) + rng.standard_normal(case.n), np.nan)
    settings = dict(BASES[name])
    if settings["base"] == "network":
        from residua import Network

        settings["base"] = Network("hops", epochs=3, widths=(4,))
    return GraphRegressor(**settings).fit(X, y, graph=case.graph)


def average():
    return Average([fitted("linear"), fitted("boosting")])


MAKERS = {name: lambda name=name: fitted(name) for name in BASES} | {"average": average}


@pytest.fixture(scope="module", params=MAKERS)
def used(request):
    """A model that has answered, so that its workspace is full."""
    model = MAKERS[request.param]()
    size = len(pickle.dumps(model))
    return model, answers(model), size


def joblib_round_trip(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize(
    "send", [lambda model: pickle.loads(pickle.dumps(model)), joblib_round_trip, copy.deepcopy, copy.copy]
)
def test_a_copy_of_a_used_model_answers_the_same_bits(used, send):
    model, expected, _ = used
    again = send(model)
    assert_array_equal(answers(again), expected)
    assert_array_equal(answers(model), expected)


def test_another_process_answers_the_same_bits():
    models = [make() for make in MAKERS.values()]
    expected = [answers(model) for model in models]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for found, right in zip(pool.map(answers, models), expected, strict=True):
            assert_array_equal(found, right)


def test_a_used_model_is_not_larger_than_a_fresh_one(used):
    model, _, size = used
    assert len(pickle.dumps(model)) == size


def test_a_prediction_can_be_sent_too():
    field = fitted("linear").field_
    expected = field.prediction.std, field.prediction.leave_one_out.error
    again = pickle.loads(pickle.dumps(field.prediction))
    assert_array_equal(again.std, expected[0])
    assert_array_equal(again.leave_one_out.error, expected[1])


def test_a_fitted_correlation_answers_the_same_after_a_journey():
    case = small_world(150, 6, share=0.6, seed=1)
    r = np.where(case.labelled, np.random.default_rng(2).standard_normal(case.n), np.nan)
    fit = fit_correlation(r, case.graph)
    expected = fit.interval()
    for again in (pickle.loads(pickle.dumps(fit)), copy.deepcopy(fit)):
        assert again.interval() == expected
    graph = pickle.loads(pickle.dumps(case.graph))
    assert fit_correlation(r, graph).interval() == expected


def test_a_fitted_value_cannot_be_changed():
    field = fitted("linear").field_
    with pytest.raises(AttributeError):
        field.alpha = {}
    for array in (field.X, field.y, field.prediction.mean, field.prediction.std):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_what_a_fit_knows_cannot_be_written_to_here_or_after_pickling():
    model = fitted("linear")
    for field in (model.field_, pickle.loads(pickle.dumps(model.field_))):
        with pytest.raises(TypeError):
            field.alpha["edge"] = 0.0
        for array in (field.X, field.y):
            assert not array.flags.writeable
    model.alpha_["edge"] = 0.0
    assert model.field_.alpha["edge"] != 0.0
