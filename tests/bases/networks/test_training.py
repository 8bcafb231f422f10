"""How networks are trained: plain training as the special case alpha = 0, batches, the paper's updates, and Ctrl-C."""

import numpy as np
import pytest

from graphs import CASES, small_world
from residua import GraphRegressor, Network

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.nn")


from networks import fitted, inputs, plain_module, problem, small  # noqa: E402
from residua.bases.networks import base as network_base  # noqa: E402
from residua.bases.networks import checkpoint  # noqa: E402
from residua.bases.networks.architectures import make_network  # noqa: E402
from residua.bases.networks.checkpoint import Checkpoint  # noqa: E402
from residua.bases.networks.training import Inputs, Learner, Schedule, SquaredError, train  # noqa: E402
from residua.field import Likelihood  # noqa: E402
from residua.field.profile import Profile  # noqa: E402
from residua.field.search import search  # noqa: E402
from residua.field.training_loss import Objective, PaperObjective  # noqa: E402


def test_at_alpha_zero_the_likelihood_pulls_where_squared_error_pulls():
    graph, X, y = small()
    data, known = inputs(graph, X, y), ~np.isnan(y)
    net = plain_module()
    net(data.x, data.edge_index)[known].sub(torch.tensor(data.y[known])).square().mean().backward()
    expected = torch.cat([p.grad.flatten() for p in net.parameters()])
    net.zero_grad()
    out = net(data.x, data.edge_index)
    r = (data.y - out.detach().numpy())[known]
    value, slope = Objective(graph, known).loss(r)
    out[known].backward(torch.tensor(-slope))
    found = torch.cat([p.grad.flatten() for p in net.parameters()])
    # The loss is the logarithm of the mean square, so its gradient is that of the mean square divided by it.
    assert value == pytest.approx(np.log(np.mean(r**2)), abs=1e-12)
    torch.testing.assert_close(found, expected / np.mean(r**2), rtol=1e-9, atol=1e-12)


def test_without_correlation_training_is_a_plain_loop_over_the_network():
    graph, X, y = small()
    data, known = inputs(graph, X, y), ~np.isnan(y)
    net, target = plain_module(), torch.tensor(data.y[known])
    optimiser = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=1e-3)
    lowest, best = np.inf, None
    for step in range(61):
        out = net(data.x, data.edge_index)
        loss = torch.nn.functional.mse_loss(out[known], target)
        if loss.item() < lowest:
            lowest, best = loss.item(), out.detach().numpy()
        if step == 60:
            break  # the last step is judged too
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    base = Network(plain_module(), epochs=60, learning_rate=0.02, weight_decay=1e-3, validation=0)
    model = GraphRegressor(base, correlation=None).fit(X, y, graph=graph)
    expected = y[known].mean() + y[known].std() * best
    np.testing.assert_allclose(model.base_.predict(graph, X), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.predict()[~known], expected[~known], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["two types", "weighted", "isolate"])
def test_the_slope_of_a_batch_is_that_of_all_labels(name):
    case = CASES[name]
    objective = Objective(case.graph, case.labelled)
    rng = np.random.default_rng(0)
    r = rng.standard_normal(int(case.labelled.sum()))
    objective._set(np.full(len(case.graph.edge_types), 0.3))
    objective.loss(r)
    moved, at = r.copy(), np.array([0, len(r) - 1])
    moved[at] += rng.standard_normal(2)
    found = objective.slope(at, moved[at])
    full, rows = objective._last, objective.likelihood.L[at]
    G = objective.likelihood.precisions(objective.alpha)[0].dense()
    np.testing.assert_allclose(full[rows], moved[at])
    np.testing.assert_allclose(found, 2 * (G @ full)[rows] / objective._q, rtol=1e-9, atol=1e-12)


def test_alpha_is_followed_by_newton_steps_between_thorough_searches():
    case = small_world(300, 6, seed=2)
    rng = np.random.default_rng(2)
    base = rng.standard_normal(int(case.labelled.sum()))
    objective = Objective(case.graph, case.labelled)
    for k in range(1, 8):
        r = base + 0.1 * k * np.sign(base)
        objective.loss(r)
        objective.refit(r)
        optimum, _ = search(Profile(Likelihood(case.graph, case.labelled), r))
        np.testing.assert_allclose(objective._a, optimum, atol=0.05)


@pytest.mark.parametrize("batch", [None, 40])
def test_alpha_moves_only_from_residuals_that_have_just_been_carried_on(batch):
    """A batch overwrites some of them, which would mix old residuals and new."""

    class Spy(SquaredError):
        calls = []  # noqa: RUF012

        def loss(self, r):
            self.calls.append("loss")
            return super().loss(r)

        def slope(self, at, r):
            self.calls.append("slope")
            return super().slope(at, r)

        def refit(self, r):
            self.calls.append("refit")

    graph, X, y, _ = problem()
    labels = np.flatnonzero(~np.isnan(y))
    A = graph.adjacency().tocoo()
    data = Inputs(torch.tensor(X, dtype=torch.float32), torch.tensor(np.stack([A.row, A.col]), dtype=torch.int64), y)
    spy, plan = Spy(graph.n_nodes, len(labels) - 30), Schedule(50, 0.01, 0.0, 100, seed=0, batch=batch)
    net = make_network("mlp", 3, None, 0)
    learner = Learner(labels[30:], labels[:30], spy)
    train(net, data, [learner], plan, lambda *_: None, checkpoint.Checkpoint(None, "").section("0"))
    at = [i for i, call in enumerate(spy.calls) if call == "refit"]
    assert len(at) == (3 if batch is None else 50)
    assert all(spy.calls[i - 1] == "loss" for i in at)


@pytest.mark.parametrize("correlation", ["learned", None])
def test_batches_learn_as_the_whole_does(correlation):
    graph, X, y, truth = problem(2000)
    scores = [
        GraphRegressor(Network("hops", epochs=150, batch_size=size), correlation).fit(X, y, graph=graph).score(X, truth)
        for size in (10**6, 100)
    ]
    assert min(scores) > 0.6
    assert scores[1] > scores[0] - 0.05


def test_paper_training_keeps_the_alpha_and_beta_that_it_reached():
    graph, X, y, _ = problem()
    few, more = (
        GraphRegressor(Network("mlp", steps=steps), training="paper").fit(X, y, graph=graph) for steps in (10, 40)
    )
    start = np.exp(3) / few.base_.y_spread**2
    assert abs(few.beta_ - start) < abs(more.beta_ - start)
    assert "as training left them" in few.correlation_.summary()
    assert np.isnan(few.alpha_stderr_["edge"])
    assert "as training left it" in str(few.diagnose())


def test_paper_training_reports_where_its_own_steps_ended(monkeypatch):
    made = []
    monkeypatch.setattr(PaperObjective, "update", lambda self, r: (made.append(self), PaperObjective._descend(self, r)))
    graph, X, y, _ = problem()
    model = GraphRegressor(Network("mlp", steps=50), training="paper").fit(X, y, graph=graph)
    assert len(made) == 5
    assert model.alpha_["edge"] == pytest.approx(np.tanh(made[0].a[0]), rel=1e-12)
    assert model.beta_ == pytest.approx(np.exp(made[0].b) / model.base_.y_spread**2)
    likelihood = Likelihood(graph, ~np.isnan(y))
    told = likelihood.omega(model.outcome_.residual, np.tanh(made[0].a), model.beta_).value
    assert model.correlation_.log_likelihood == pytest.approx(-told / 2)


def test_a_diagnosis_says_where_no_label_was_held_out():
    graph, X, y, _ = problem()
    for training, told in (("paper", True), ("joint", False)):
        found = GraphRegressor(Network("mlp", steps=20, epochs=20), training=training).fit(X, y, graph=graph).diagnose()
        assert ("that the network was trained on" in found.verdict) is told
        assert any("better here than for new nodes" in note for note in found.warnings) is told


def test_a_step_of_the_paper_goes_down_the_likelihood_and_lbfgs_to_its_bottom():
    case = small_world(200, 6)
    rng = np.random.default_rng(1)
    r = rng.standard_normal(int(case.labelled.sum()))
    paper = PaperObjective(case.graph, case.labelled, "auto", 0)
    bottom = PaperObjective(case.graph, case.labelled, "auto", 0, lbfgs=True)
    values = []
    for _ in range(4):
        values.append(paper._omega(np.append(paper.a, paper.b), r)[0])
        paper.update(r)
    bottom.update(r)
    lowest, slope = bottom._omega(np.append(bottom.a, bottom.b), r)
    assert values == sorted(values, reverse=True)
    assert lowest < values[-1]
    np.testing.assert_allclose(slope, 0, atol=1e-3)


def test_the_twitch_setting_ends_at_the_optimum():
    graph, X, y, _ = problem()
    model = GraphRegressor(Network("mlp", steps=100, lbfgs=True), training="paper").fit(X, y, graph=graph)
    a = np.arctanh(model.alpha_["edge"])
    v = Profile(Likelihood(graph, ~np.isnan(y)), model.outcome_.residual)
    here = v.omega(np.array([a]))
    assert here <= min(v.omega(np.array([a + d])) for d in (-0.3, 0.3)) + 0.05


def interrupting(at):
    """A report that does what Ctrl-C does at the call number ``at``, and the errors it has seen."""
    errors = []

    def report(step, steps, error):
        if len(errors) == at:
            raise KeyboardInterrupt
        errors.append(error)

    return report, errors


def test_ctrl_c_leaves_the_best_network_so_far():
    graph, X, y = small()
    data, labels = inputs(graph, X, y), np.flatnonzero(~np.isnan(y))
    net, (report, errors) = plain_module(), interrupting(at=30)
    fit, held = labels[::2], labels[1::2]
    # So fast that the last network is not the best.
    plan, error = Schedule(100, 0.3, 0.0, 100, seed=0), SquaredError(graph.n_nodes, len(fit))
    learner = Learner(fit, held, error)
    done = train(net, data, [learner], plan, report, Checkpoint(None, "").section("0"))
    assert not done
    net.load_state_dict(learner.best)
    assert errors[-1] > min(errors)
    with torch.no_grad():
        error = np.mean((net(data.x, data.edge_index).numpy() - data.y)[held] ** 2)
    assert error == pytest.approx(min(errors))


@pytest.mark.parametrize(
    ("kind", "training", "at", "kept"),
    [("gcn", "joint", 30, 2), ("mlp", "paper", 30, 2), ("mlp", "joint", 10, 3), ("mlp", "joint", 0, 3)],
)
def test_ctrl_c_ends_a_fit_with_one_warning_and_what_it_has(kind, training, at, kept, monkeypatch):
    class Interrupting:
        def __init__(self, title, verbose=False):
            self.report, _ = interrupting(at)

        def __enter__(self):
            return lambda share, words: self.report(0, 0, 0.0)

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(network_base, "progress", Interrupting)
    with pytest.warns(UserWarning, match=f"training was interrupted; the best {kept} networks so far") as caught:
        model = fitted(Network(kind, epochs=25, steps=25), ensemble=3, training=training)
    assert len(caught) == 1
    assert len(model.base_.members) == kept
    assert np.isfinite(model.predict()).all()


def test_ctrl_c_between_two_networks_keeps_those_that_are_trained(monkeypatch):
    begin = network_base.NetworkBase._learner

    def learner(self, k, *given):
        if k == 2:
            raise KeyboardInterrupt
        return begin(self, k, *given)

    monkeypatch.setattr(network_base.NetworkBase, "_learner", learner)
    with pytest.warns(UserWarning, match="training was interrupted; the best 2 networks so far are kept"):
        model = fitted(Network("gcn", epochs=5), ensemble=3)
    assert len(model.base_.members) == 2
    monkeypatch.setattr(network_base.NetworkBase, "_learner", lambda *_: learner(None, 2))
    with pytest.raises(KeyboardInterrupt):
        fitted(Network("gcn", epochs=5), ensemble=3)


def test_numbers_that_are_not_finite_are_named():
    class Broken(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, x, edge_index):
            return self.layer(x) / 0

    graph, X, y, _ = problem(80)
    with pytest.raises(ValueError, match="not finite after 0 steps"):
        GraphRegressor(Broken()).fit(X, y, graph=graph)
    fast = GraphRegressor(Network("mlp", learning_rate=1e30)).fit(X, y, graph=graph)
    assert np.isfinite(fast.predict()).all()  # the first network was the best


def test_one_step_is_taken_and_judged():
    graph, X, y, _ = problem(80)
    slow, fast = (
        GraphRegressor(Network("mlp", epochs=1, learning_rate=rate), None).fit(X, y, graph=graph).predict()
        for rate in (1e-9, 1e-3)
    )
    assert not np.allclose(slow, fast)


def test_a_module_is_judged_as_it_will_predict():
    """With much dropout the errors in training are far above those of the same network in prediction."""
    graph, X, y, _ = problem()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Dropout(0.8), torch.nn.Linear(16, 1))

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net
            self.asked = []

        def forward(self, x, edge_index):
            self.asked.append(self.training)
            return self.net(x)

    model = GraphRegressor(Network(Wrapped(), epochs=3), None).fit(X, y, graph=graph)
    asked = model.base_.members[0].asked
    assert asked[:4] == [False, True, False, True]
