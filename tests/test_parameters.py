"""Parameters that are changed after a fit have no effect on what was fitted."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import Ridge

import residua
from graphs import small_world
from residua import Eigen, GraphRegressor, Lanczos, Network

CHANGES = {
    "base": ["mean", Ridge(), "sage"],
    "correlation": ["propagate", None, "learned"],
    "training": ["post-hoc", "paper"],
    "ensemble": [3],
    "logdet": [Eigen(), Lanczos(probes=2, steps=3)],
    "folds": [2],
    "random_state": [7],
    "checkpoint": ["elsewhere"],
    "device": ["auto"],
    "field": ["laplacian", "auto"],
    "spread": ["learned"],
}


def problem(n=90):
    case = small_world(n, 6, share=0.6, seed=2)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    truth = X[:, 0] + rng.standard_normal(n)
    other = small_world(50, 6, share=0.4, seed=4)
    return case.graph, X, np.where(case.labelled, truth, np.nan), truth, other


def answers(model, tmp_path):
    """All that a fitted model is asked, by name."""
    _, X, y, truth, other = problem()
    there = np.random.default_rng(1).standard_normal((other.n, 2)), np.where(other.labelled, 1.0, np.nan)
    later = np.where(np.arange(len(y)) % 5 == 0, truth, np.nan)
    mean, std = model.predict(return_std=True)
    left_out = model.predict(return_std=True, known="predict")
    model.save(tmp_path / "model.residua")
    loaded = residua.load(tmp_path / "model.residua", trusted=[]).predict(return_std=True)
    drawn = residua.load(tmp_path / "model.residua", trusted=[]).sample(2)
    return {
        "mean": mean,
        "std": std,
        "left out": np.array(left_out),
        "intervals": np.array([model.predict_interval(method=m) for m in ("conformal", "gaussian")]),
        "later labels": np.array(model.predict(y=later, return_std=True)),
        "another graph": np.array(model.predict(*there, graph=other.graph, return_std=True)),
        "draws": model.sample(2),
        "diagnosis": str(model.diagnose()),
        "score": model.score(X, truth),
        "alpha, beta": (model.alpha_, model.alpha_stderr_, model.beta_),
        "correlation": str(model.correlation_),
        "alpha's interval": model.correlation_ and model.correlation_.interval(),
        "average": np.array(residua.Average([model]).predict(return_std=True)),
        "file": np.array(loaded),
        "draws of the file": drawn,
    }


@pytest.mark.parametrize("correlation", ["learned", "propagate", None])
@pytest.mark.parametrize("base", ["linear", "Ridge", "network"])
def test_no_parameter_changed_after_the_fit_changes_what_was_fitted(base, correlation, tmp_path):
    if base == "network":
        pytest.importorskip("torch")
    graph, X, y, *_ = problem()
    of = {"linear": "linear", "Ridge": Ridge(), "network": Network("hops", epochs=15, validation=0.4)}[base]
    fitted = GraphRegressor(of, correlation).fit(X, y, graph=graph)
    before = answers(fitted, tmp_path)
    assert set(CHANGES) == set(GraphRegressor().get_params(deep=False))
    for name, values in CHANGES.items():
        for value in values:
            if value == "sage" and base != "network":
                continue
            after = answers(copy.deepcopy(fitted).set_params(**{name: value}), tmp_path)
            for what, expected in before.items():
                assert_array_equal(after[what], expected, err_msg=f"{what}, {name}={value!r}")


def test_settings_of_a_base_changed_after_the_fit_change_nothing_either(tmp_path):
    pytest.importorskip("torch")
    graph, X, y, *_ = problem()
    changes = [
        (Ridge(), {"alpha": 50.0, "fit_intercept": False}),
        (
            Network("hops", epochs=15, validation=0.4),
            {"kind": "mlp", "hops": 1, "widths": (3,), "validation": 0.0, "epochs": 1},
        ),
    ]
    for base, settings in changes:
        model = GraphRegressor(base).fit(X, y, graph=graph)
        before = answers(model, tmp_path)
        model.set_params(**{f"base__{name}": value for name, value in settings.items()})
        after = answers(model, tmp_path)
        for what, expected in before.items():
            assert_array_equal(after[what], expected, err_msg=what)


def test_a_module_changed_after_the_fit_changes_nothing():
    torch = pytest.importorskip("torch")
    graph, X, y, *_ = problem()
    from networks import plain_module

    module = plain_module()
    model = GraphRegressor(Network(module, epochs=5)).fit(X, y, graph=graph)
    before = model.predict(problem()[1][:50], graph=problem()[-1].graph)
    with torch.no_grad():
        for weight in module.float().parameters():
            weight.zero_()
    assert_array_equal(model.predict(problem()[1][:50], graph=problem()[-1].graph), before)


@pytest.mark.parametrize("name", ["random_state", "folds"])
def test_a_fine_tuning_goes_on_from_the_fit_as_it_was(name):
    pytest.importorskip("torch")
    graph, X, y, _, other = problem()
    there = (
        np.random.default_rng(1).standard_normal((other.n, 2)),
        np.where(other.labelled, 1.0 + np.arange(50), np.nan),
    )
    models = [GraphRegressor(Network("mlp", epochs=5)).fit(X, y, graph=graph) for _ in range(2)]
    models[1].set_params(**{name: 9})
    first, second = (model.fine_tune(*there, graph=other.graph, steps=5) for model in models)
    assert_array_equal(first.predict(return_std=True), second.predict(return_std=True))
