"""How networks are trained: aggregation, batches, checkpoints, the paper's updates, fine-tuning."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import residua

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.nn import GCNConv, SAGEConv  # noqa: E402

from graphs import CASES, small_world  # noqa: E402
from residua import Graph, GraphRegressor, Lanczos, Network  # noqa: E402
from residua.bases.base import Task  # noqa: E402
from residua.bases.networks import base as network_base  # noqa: E402
from residua.bases.networks import checkpoint, stack  # noqa: E402
from residua.bases.networks.architectures import make_network  # noqa: E402
from residua.bases.networks.layers import GCN, MaxSAGE, MeanSAGE, SelfSAGE, neighbours_of  # noqa: E402
from residua.bases.networks.training import Inputs, Learner, Schedule, SquaredError, train  # noqa: E402
from residua.bases.registry import make_base  # noqa: E402
from residua.field import Correlator, Likelihood  # noqa: E402
from residua.field.profile import Profile  # noqa: E402
from residua.field.search import search  # noqa: E402
from residua.field.training_loss import Objective, PaperObjective  # noqa: E402
from residua.linalg import operator  # noqa: E402


def problem(n=300, seed=0, types=1):
    case = small_world(n, 6, seed=seed, types=types)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    truth = np.tanh(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    return case.graph, X, np.where(case.labelled, truth, np.nan), truth


# Aggregation


EDGES = {
    "both directions": ([0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 3, 0]),
    "one direction": ([0, 1, 2, 2], [1, 2, 0, 3]),
    "twice the same": ([0, 0, 1], [1, 1, 0]),
    "none": ([], []),
}


class _WithLoops(SAGEConv):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, root_weight=False)

    def forward(self, x, edge_index):
        return super().forward(x, torch.cat([edge_index, torch.arange(len(x)).expand(2, -1)], dim=1))


LAYERS = {
    "mean": (SAGEConv, MeanSAGE),
    "max": (lambda *sizes: SAGEConv(*sizes, aggr="max"), MaxSAGE),
    "pool": (
        lambda *sizes: SAGEConv(*sizes, aggr="max", project=True),
        lambda *sizes: MaxSAGE(*sizes, project=True),
    ),
    "gcn": (GCNConv, GCN),
    "gcn of GraphSAGE": (_WithLoops, SelfSAGE),
}


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize(("inputs", "outputs"), [(3, 2), (2, 3), (16, 8)])
@pytest.mark.parametrize("learns", [True, False])
def test_layers_are_those_of_pyg_in_value_and_gradient(kind, name, inputs, outputs, learns):
    torch.manual_seed(0)
    theirs, ours = (make(inputs, outputs).double() for make in LAYERS[kind])
    with torch.no_grad():
        for value in theirs.parameters():
            value += torch.randn_like(value) / 3  # PyG begins with zero biases
    ours.load_state_dict(theirs.state_dict())
    edge_index = torch.tensor(np.array(EDGES[name], int).reshape(2, -1))
    # With ties; not at 0, where PyTorch gives a part of the gradient to nobody. ReLU would pass none of it on.
    x = torch.randn(5, inputs, dtype=torch.float64).round(decimals=1).relu() + 1
    found = []
    for layer in (theirs, ours):
        here = x.clone().requires_grad_(learns)
        out = layer(here, edge_index)
        (out**3).sum().backward()
        found.append([out.detach(), here.grad, *(p.grad for p in layer.parameters())])
    for a, b in zip(*found, strict=True):
        assert (a is None and b is None) or torch.allclose(a, b, rtol=1e-6, atol=1e-7)  # degrees are float32


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_pass_gradcheck(kind):
    torch.manual_seed(1)
    layer = LAYERS[kind][1](4, 2).double()
    edge_index = torch.tensor(EDGES["one direction"])
    x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: layer(v, edge_index), (x,))


def test_an_input_that_does_not_learn_is_gathered_once_unless_it_changes_or_another_way():
    x, edge_index = torch.arange(12.0).reshape(4, 3), torch.tensor(EDGES["both directions"])
    neighbours = neighbours_of(edge_index, 4)
    mean = neighbours.mean(x)
    assert neighbours.mean(x) is mean
    x += 1
    assert torch.allclose(neighbours.mean(x), mean + 1)
    assert not torch.allclose(neighbours.maximum(x), mean + 1)
    assert torch.allclose(neighbours.mean(x), mean + 1)


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_predict_in_inference_mode_and_learn_afterwards(kind):
    layers, edge_index = [LAYERS[kind][1](3, 3) for _ in range(2)], torch.tensor(EDGES["both directions"])
    x = torch.randn(4, 3)

    def predicted():
        return layers[1](layers[0](x, edge_index), edge_index)

    with torch.inference_mode():
        found = predicted()
    again = predicted()
    again.sum().backward()
    assert torch.allclose(found, again)


@pytest.mark.parametrize("kind", LAYERS)
def test_not_a_number_reaches_the_same_nodes_as_in_pyg(kind):
    theirs, ours = (make(3, 2) for make in LAYERS[kind])
    ours.load_state_dict(theirs.state_dict())
    x, edge_index = torch.ones(5, 3), torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 4]])
    x[1, 0] = torch.nan
    assert ours(x, edge_index).isnan().equal(theirs(x, edge_index).isnan())


def test_an_input_of_a_maximum_that_changes_before_the_gradient_is_noticed():
    x = torch.randn(4, 3, requires_grad=True)
    h = 1 * x
    out = neighbours_of(torch.tensor(EDGES["both directions"]), 4).maximum(h)
    h.mul_(-1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_maxima_of_many_entries_are_those_of_few(monkeypatch):
    rng = np.random.default_rng(0)
    edge_index = torch.from_numpy(rng.integers(50, size=(2, 400)))
    x = torch.from_numpy(rng.integers(4, size=(50, 6)).astype(float))
    found = []
    for limit in (operator.SMALL_PRODUCT, 0):  # in one thread, and dealt to several
        monkeypatch.setattr(operator, "SMALL_PRODUCT", limit)
        here = x.clone().requires_grad_()
        out = neighbours_of(edge_index.clone(), 50).maximum(here)
        (out * torch.arange(6)).sum().backward()
        found.append((out.detach(), here.grad))
    for few, many in zip(*found, strict=True):
        assert torch.equal(few, many)


FORK = """
import os, numpy as np, residua
graph = residua.Graph.from_edges(np.arange(59), np.arange(1, 60))
def fit():
    X = np.sin(np.arange(120.0)).reshape(60, 2)
    model = residua.GraphRegressor(residua.Network("sage-max", epochs=3)).fit(X, X[:, 0], graph=graph)
fit()
child = os.fork()
if not child:
    fit()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_small_network_of_maxima_wakes_no_threads_so_that_a_process_can_fork():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True)


# The criterion in batches


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


# The paper's updates


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


# Checkpoints


def settings(kind, training, lanczos=False):
    network = Network(kind, epochs=30, patience=4, steps=30, batch_size=40 if kind == "hops" else 10**6)
    return {"base": network, "training": training, "ensemble": 2, "logdet": Lanczos() if lanczos else "auto"}


def dropout():
    torch.manual_seed(3)
    return Drop()


class Drop(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.3))
        self.out = torch.nn.Linear(4, 1)

    def forward(self, x, edge_index):
        return self.out(self.inner(x))


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize(
    ("kind", "training", "lanczos"),
    [("sage", "joint", True), ("hops", "joint", False), (None, "joint", False), ("mlp", "paper", True)],
)
@pytest.mark.parametrize("at", [5, 20])
def test_a_killed_training_goes_on_to_the_same_bits(kind, training, lanczos, at, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    graph, X, y, _ = problem()
    given = settings(kind or dropout(), training, lanczos)
    whole = GraphRegressor(**given).fit(X, y, graph=graph)
    path, writes, write = tmp_path / "half.ckpt", [], checkpoint.Checkpoint._write

    def stop(self):
        write(self)
        writes.append(1)
        if len(writes) == at:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Checkpoint, "_write", stop)
        with pytest.raises(Killed):
            GraphRegressor(**given, checkpoint=path).fit(X, y, graph=graph)
    resumed = GraphRegressor(**given, checkpoint=path).fit(X, y, graph=graph)
    np.testing.assert_array_equal(resumed.predict(), whole.predict())
    assert resumed.alpha_ == whole.alpha_
    again = GraphRegressor(**given, checkpoint=str(path)).fit(X, y, graph=graph)
    np.testing.assert_array_equal(again.predict(), whole.predict())


def test_a_process_killed_at_any_time_leaves_a_checkpoint_that_can_be_used(tmp_path):
    path = tmp_path / "run.ckpt"
    program = textwrap.dedent(f"""
        import sys
        sys.path[:0] = {[str(p) for p in (Path(__file__).parent, Path(__file__).parents[1])]!r}
        from test_training import *
        checkpoint.SECONDS = 0.0
        graph, X, y, _ = problem()
        print("ready", flush=True)
        GraphRegressor(Network("mlp", epochs=10**6, patience=10**6), checkpoint={str(path)!r}).fit(X, y, graph=graph)
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGKILL)
    graph, X, y, _ = problem()
    base = Network("mlp", epochs=10**6, patience=10**6)
    kept = (
        checkpoint.Checkpoint(path, checkpoint_mark(GraphRegressor(base, checkpoint=path), graph, X, y))
        .section("0")
        .state()
    )
    assert kept["run"][0] > 0
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".residua-")] == ["run.ckpt"]


def checkpoint_mark(model, graph, X, y):
    """The mark that a fit of this model writes."""
    labelled = ~np.isnan(y)
    correlate = Correlator(graph, labelled, model.logdet, model.random_state)
    return make_base(model.base)._mark(Task(graph, X, y, labelled, model.folds, model.random_state), correlate)


@pytest.mark.parametrize("change", ["y", "X", "random_state", "ensemble", "epochs", "correlation"])
def test_a_checkpoint_of_another_fit_is_refused(change, tmp_path):
    graph, X, y, _ = problem(80)
    path = tmp_path / "a.ckpt"

    def fit(X=X, y=y, epochs=3, **parameters):
        return GraphRegressor(Network("mlp", epochs=epochs), checkpoint=path, **parameters).fit(X, y, graph=graph)

    fit()
    other = {"y": y + 1, "X": X + 1, "random_state": 1, "ensemble": 2, "epochs": 4, "correlation": None}
    with pytest.raises(ValueError, match=r"belongs to another fit .*remove this one"):
        fit(**{change: other[change]})


def test_a_broken_checkpoint_and_a_missing_folder_are_named(tmp_path):
    graph, X, y, _ = problem(80)
    path = tmp_path / "a.ckpt"
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match=r"a.ckpt' cannot be read .* remove it to start anew"):
        GraphRegressor("mlp", checkpoint=path).fit(X, y, graph=graph)
    with pytest.raises(FileNotFoundError, match=r"folder .* does not exist"):
        GraphRegressor("mlp", checkpoint=tmp_path / "none" / "a.ckpt").fit(X, y, graph=graph)


def test_a_saved_model_forgets_its_checkpoint(tmp_path):
    graph, X, y, _ = problem(80)
    model = GraphRegressor(Network("mlp", epochs=3), checkpoint=tmp_path / "a.ckpt").fit(X, y, graph=graph)
    model.save(tmp_path / "m.residua")
    assert residua.load(tmp_path / "m.residua").checkpoint is None


# Fine-tuning


@pytest.mark.parametrize("correlation", [None, "learned"])
def test_fine_tuning_learns_what_is_new_on_another_graph_and_leaves_the_first_model(correlation):
    graph, X, y, _ = problem(600)
    model = GraphRegressor(Network("mlp", epochs=60), correlation, ensemble=2).fit(X, y, graph=graph)
    before = model.predict()
    other, Z, known, _ = problem(600, seed=9)
    shifted = np.tanh(Z[:, 0]) + Z[:, 1] * Z[:, 2] + 2.0
    known = np.where(np.isnan(known), np.nan, shifted)
    tuned = model.fine_tune(Z, known, graph=other)
    if correlation is None:  # with it, the first model learns the shift from the residuals
        assert tuned.score(Z, shifted) > model.score(Z, shifted, known=known, graph=other)
    assert squared_error(tuned.base_.predict(other, Z), shifted) < 0.5 * squared_error(
        model.base_.predict(other, Z), shifted
    )
    np.testing.assert_array_equal(model.predict(), before)
    assert tuned.alpha_ == model.alpha_
    np.testing.assert_array_equal(tuned.predict(), model.fine_tune(Z, known, graph=other).predict())


def squared_error(prediction, truth):
    return np.mean((prediction - truth) ** 2)


def test_only_networks_can_be_fine_tuned():
    graph, X, y, _ = problem(80)
    with pytest.raises(ValueError, match='base "linear" cannot be fine-tuned'):
        GraphRegressor("linear").fit(X, y, graph=graph).fine_tune(X, y, graph=problem(80, seed=1)[0])
    with pytest.raises(ValueError, match="steps=0"):
        GraphRegressor(Network("mlp", epochs=2)).fit(X, y, graph=graph).fine_tune(X, y, graph=graph, steps=0)


# Several members


@pytest.mark.parametrize("seed", range(3))
def test_a_completed_fit_is_found_again_in_its_checkpoint(seed, tmp_path):
    """After members that ended by patience: the kept state must not change when the network takes its best weights."""
    graph, X, y, _ = problem(150)
    given = {"base": Network("hops", epochs=300, patience=8), "ensemble": 3, "random_state": seed}
    first, second = (
        GraphRegressor(**given, checkpoint=tmp_path / "a.ckpt").fit(X, y, graph=graph).predict() for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_another_module_is_another_fit(tmp_path):
    graph, X, y, _ = problem(80)
    fit = lambda module: GraphRegressor(Network(module, epochs=3), checkpoint=tmp_path / "a").fit(X, y, graph=graph)  # noqa: E731
    fit(dropout())
    other = dropout()
    other.inner[2].p = 0.9
    with pytest.raises(ValueError, match="belongs to another fit"):
        fit(other)


def test_edge_types_go_by_name_on_another_graph(tmp_path):
    rng = np.random.default_rng(0)
    n = 200
    source, target = np.arange(n), (np.arange(n) + 1) % n
    far = (np.arange(n) + 7) % n
    ends = np.concatenate([source, source]), np.concatenate([target, far])
    kind = np.repeat(["rail", "road"], n)
    here = Graph.from_edges(*ends, type=kind, nodes=np.arange(n))
    back = np.argsort(kind)[::-1]
    there = Graph.from_edges(ends[0][back], ends[1][back], type=kind[back], nodes=np.arange(n))
    assert here.edge_types != there.edge_types
    X = rng.standard_normal((n, 2))
    y = np.where(rng.random(n) < 0.6, X[target, 0] - X[far, 1], np.nan)
    model = GraphRegressor(Network("hops", epochs=40)).fit(X, y, graph=here)
    model.save(tmp_path / "m")
    for fitted in (model, residua.load(tmp_path / "m")):
        np.testing.assert_allclose(fitted.base_.predict(there, X), fitted.base_.predict(here, X))
    only = Graph.from_edges(source, target, type=np.repeat(["road"], n), nodes=np.arange(n))
    assert np.isfinite(model.predict(X, y, graph=only)).all()
    sea = Graph.from_edges(source, target, type=np.repeat(["sea"], n))
    features = residua.NeighbourFeatures().fit(X, graph=here)
    with pytest.raises(ValueError, match=r"edge types \['sea'\], which fit has not seen"):
        features.transform(X, graph=sea)


def test_errors_left_out_are_those_of_each_network_by_itself():
    """Jointly trained networks differ by a level each; the spread of levels is no error of the model."""
    side = 14
    house = np.arange(side * side).reshape(side, side)
    grid = Graph.from_edges(
        np.concatenate([house[:, :-1].ravel(), house[:-1].ravel()]),
        np.concatenate([house[:, 1:].ravel(), house[1:].ravel()]),
    )
    rng = np.random.default_rng(0)
    X = rng.standard_normal((side * side, 2))
    truth = X[:, 0] + 3 * np.sin(house // side / 4).ravel() + 3 * np.cos(house % side / 4).ravel()
    y = np.where(rng.random(side * side) < 0.6, truth, np.nan)
    model = GraphRegressor(Network("mlp", epochs=150), ensemble=5).fit(X, y, graph=grid)
    assert model.diagnose().r2_corrected == pytest.approx(model.score(X, truth), abs=0.04)


@pytest.mark.parametrize(
    ("base", "X", "y", "message"),
    [
        ("sage", np.empty((80, 0)), None, "X has no columns"),
        ("mlp", None, 3.0, "y is 3.0 at all"),
        (Network("mlp", widths=8), None, None, "widths=8 is not a list"),
        (torch.nn.Identity(), None, None, "no parameters to train"),
    ],
    ids=["no columns", "constant", "widths", "no parameters"],
)
def test_what_cannot_be_trained_is_named(base, X, y, message):
    graph, features, labels, _ = problem(80)
    X, y = features if X is None else X, labels if y is None else np.where(np.isnan(labels), np.nan, y)
    with pytest.raises(ValueError, match=message):
        GraphRegressor(base).fit(X, y, graph=graph)


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


def test_later_members_of_a_module_of_ones_own_have_weights_of_their_own():
    graph, X, y, _ = problem(80)
    base = Network(dropout(), epochs=1, learning_rate=1e-9)
    first, second = GraphRegressor(base, ensemble=2).fit(X, y, graph=graph).base_.members
    given = dropout().out.weight
    assert torch.allclose(first.out.weight, given, atol=1e-6)
    assert not torch.allclose(second.out.weight, given, atol=1e-2)


def test_enough_members_hold_out_folds_and_give_out_of_fold_residuals():
    graph, X, y, _ = problem()
    labels = ~np.isnan(y)
    for training, out_of_fold in (("post-hoc", True), ("joint", False)):
        model = GraphRegressor(Network("mlp", epochs=20), training=training, ensemble=5).fit(X, y, graph=graph)
        held_out = model.outcome_.out_of_sample_residual
        assert np.isfinite(held_out).all()
        everyone = (y - model.base_.predict(graph, X))[labels]
        np.testing.assert_allclose(model.outcome_.residual, held_out if out_of_fold else everyone)
        assert np.mean(held_out**2) > np.mean(everyone**2)
    few = GraphRegressor(Network("mlp", epochs=20), ensemble=2).fit(X, y, graph=graph)
    assert 0 < np.isfinite(few.outcome_.out_of_sample_residual).sum() < labels.sum()


def test_graph_without_edges_at_a_node_averages_to_zero():
    graph = Graph.from_edges([0, 1], [1, 2], nodes=range(5))
    y = np.array([1.0, 2.0, 3.0, 4.0, np.nan])
    model = GraphRegressor(Network("sage", epochs=3), None).fit(np.arange(5.0)[:, None], y, graph=graph)
    assert np.isfinite(model.predict()).all()


# Several members in one pass


@pytest.mark.parametrize("training", ["joint", "post-hoc"])
@pytest.mark.parametrize(("kind", "ensemble"), [("mlp", 2), ("hops", 5), ("sage", 3)])
def test_members_trained_together_are_those_trained_one_by_one(kind, ensemble, training, monkeypatch):
    graph, X, y, _ = problem(150)
    model = GraphRegressor(Network(kind, epochs=25), training=training, ensemble=ensemble)
    together = model.fit(X, y, graph=graph).base_.states()
    monkeypatch.setattr(stack, "MOST", {})
    alone = model.fit(X, y, graph=graph).base_.states()
    assert len(together) == len(alone) == ensemble
    for one, other in zip(together, alone, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_allclose(one[name], other[name], atol=2e-3)


def test_members_trained_together_stop_each_on_its_own(monkeypatch):
    graph, X, y, _ = problem()
    stopped, train_all = [], network_base.train
    monkeypatch.setattr(network_base, "train", lambda *a: (train_all(*a), stopped.extend(a[2]))[0])
    GraphRegressor(Network("hops", epochs=60, patience=3, learning_rate=0.05), ensemble=4).fit(X, y, graph=graph)
    assert len({learner.lowest for learner in stopped}) == 4
    assert len({tuple(learner.out_of_sample) for learner in stopped}) == 4
    assert any(learner.since > 3 for learner in stopped)


@pytest.mark.parametrize("kind", stack.MOST)
def test_a_stack_gives_the_outputs_the_weights_and_the_gradients_of_its_members(kind):
    nets = [make_network(kind, 3, (5, 4), seed) for seed in range(3)]
    x, edge_index = torch.randn(4, 3), torch.tensor(EDGES["both directions"])
    pile = stack.stack(nets)
    alone, together = torch.stack([net(x, edge_index) for net in nets]), pile(x, edge_index)
    torch.testing.assert_close(together, alone)
    weights = torch.randn_like(alone)
    together.backward(weights)
    alone.backward(weights)
    slopes = stack.stack(nets)
    for value, parameter in zip(slopes.values, pile.values, strict=True):
        value.data = parameter.grad
    for k, net in enumerate(nets):
        torch.testing.assert_close(pile.state_of(k), dict(net.state_dict()))
        torch.testing.assert_close(slopes.state_of(k), {name: p.grad for name, p in net.named_parameters()})


def test_large_networks_are_trained_one_by_one():
    assert stack.worth_stacking("hops", 3_000, (16, 16, 8))
    assert not stack.worth_stacking("hops", 100_000, (16, 16, 8))
    assert not stack.worth_stacking("gcn", 100, (16, 8))
    assert not stack.worth_stacking(torch.nn.Linear(1, 1), 100, (16, 8))


def test_a_damaged_checkpoint_is_told_of_in_one_printable_line(tmp_path):
    """The library that reads it says what it found there, whatever that does to a terminal."""
    header = b'{"x":{"dtype":"\x7f32\\u001b[2J","shape":[1],"data_offsets":[0,4]}}'
    path = tmp_path / "half.ckpt"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(ValueError, match="cannot be read") as told:
        checkpoint.Checkpoint(path, "mark")
    assert str(told.value).isprintable()
