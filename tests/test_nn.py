"""The torch module against the likelihood it wraps."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import dense
import residua
from graphs import CASES, small_world
from residua.graph import Graph

torch = pytest.importorskip("torch")

from residua.nn import CorrelatedResidual  # noqa: E402


def setting(name, outputs=1, seed=0):
    case = CASES[name]
    rng = np.random.default_rng(seed)
    shape = (case.n,) if outputs == 1 else (case.n, outputs)
    y, prediction = (torch.tensor(rng.standard_normal(shape)) for _ in "ab")
    module = CorrelatedResidual(case.graph, case.labelled, outputs=outputs, alpha=0.4, beta=1.5)
    return case, module, prediction, y


@pytest.mark.parametrize("name", ["path", "isolate", "self-loops", "weighted", "two types"])
def test_loss_is_the_dense_likelihood_a_label(name):
    case, module, prediction, y = setting(name)
    r = (y - prediction).numpy()[case.labelled]
    expected = dense.omega(case.S, [0.4] * len(case.types), 1.5, case.labelled, r) / len(r)
    assert module.loss(prediction, y).item() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("name", ["path", "star", "isolate", "weighted"])
def test_the_laplacian_field_is_the_dense_one(name):
    case, _, prediction, y = setting(name)
    module = CorrelatedResidual(case.graph, case.labelled, alpha=0.6, beta=1.5, field="laplacian")
    a = 0.6 / (0.4 * case.laplacian.diagonal().max())
    r = (y - prediction).numpy()[case.labelled]
    expected = dense.omega(-case.laplacian[None], [a], 1.5 * 0.4, case.labelled, r) / len(r)
    loss = module.loss(prediction, y)
    assert loss.item() == pytest.approx(expected, abs=1e-8)
    loss.backward()
    assert module.a.grad is not None
    mean, _ = dense.conditional(-case.laplacian[None], [a], 1.5 * 0.4, case.labelled, r)
    assert module.correct(prediction, y).numpy()[case.U] == pytest.approx(prediction.numpy()[case.U] + mean)
    with pytest.raises(ValueError, match="chosen by leave-one-out, in GraphRegressor"):
        CorrelatedResidual(case.graph, case.labelled, field="auto")


@pytest.mark.parametrize("name", ["path", "two components", "two types"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_gradients_pass_gradcheck(name, outputs):
    _, module, prediction, y = setting(name, outputs)
    shapes = module.a.shape, module.b.shape

    def loss(p, a, b):
        state = {"a": a.reshape(shapes[0]), "b": b.reshape(shapes[1])}
        return torch.func.functional_call(Loss(module), {f"module.{k}": v for k, v in state.items()}, (p, y))

    inputs = prediction.requires_grad_(), module.a.detach().clone().requires_grad_(), module.b.detach().clone()
    assert torch.autograd.gradcheck(loss, (*inputs[:2], inputs[2].requires_grad_()), atol=1e-6)


class Loss(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, prediction, y):
        return self.module.loss(prediction, y)


def test_correct_gives_mean_spread_and_samples_of_the_conditional():
    case, module, prediction, y = setting("weighted")
    mean, std, draws = module.correct(prediction, y, return_std=True, samples=4000)
    r = (y - prediction).numpy()[case.labelled]
    expected, covariance = dense.conditional(case.S, [0.4], 1.5, case.labelled, r)
    np.testing.assert_allclose(mean.numpy()[case.U], prediction.numpy()[case.U] + expected, atol=1e-8)
    assert torch.equal(mean[case.L], y[case.L])
    np.testing.assert_allclose(std.numpy()[case.U], np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert draws.shape == (4000, case.n)
    np.testing.assert_allclose(draws.numpy()[:, case.U].std(axis=0), std.numpy()[case.U], rtol=0.06)


def test_two_outputs_keep_their_own_correlation():
    case = small_world(n=400, degree=6, share=0.7)
    rng = np.random.default_rng(0)
    y = torch.tensor(np.stack([dense.draw(case.S, [a], 1.0, rng)[0] for a in (0.95, -0.9)], axis=1))
    module = CorrelatedResidual(case.graph, case.labelled, outputs=2)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.1)
    for _ in range(80):
        optimiser.zero_grad()
        module.loss(torch.zeros_like(y), y).backward()
        optimiser.step()
    alpha = module.alpha.detach()
    assert alpha[0, 0] > 0.7
    assert alpha[1, 0] < -0.5
    mean = module.correct(torch.zeros_like(y), y)
    assert torch.equal(mean[case.L], y[case.L])


def test_single_precision_network_outputs_are_kept():
    _, module, prediction, y = setting("path")
    mean, std = module.correct(prediction.float(), y.float(), return_std=True)
    assert mean.dtype == std.dtype == torch.float32
    loss = module.loss(prediction.float().requires_grad_(), y.float())
    assert loss.dtype == torch.float32


def test_wrong_shapes_are_named():
    case, module, prediction, y = setting("path")
    with pytest.raises(ValueError, match=r"shape \(7,\); the graph has 8 nodes, this module 1 outputs"):
        module.loss(prediction[:7], y[:7])
    with pytest.raises(ValueError, match="train_mask has shape"):
        CorrelatedResidual(case.graph, np.ones(3, bool))
    with pytest.raises(ValueError, match="train_mask is True at no node"):
        CorrelatedResidual(case.graph, np.zeros(case.n, bool))


def test_labels_and_predictions_that_are_not_finite_are_refused_under_the_mask():
    case, module, prediction, y = setting("path")
    known, unknown = case.L[0], case.U[0]
    for ask in (module.loss, module.correct):
        for value in (np.nan, np.inf):
            for wrong in ((put(prediction, known, value), y), (prediction, put(y, known, value))):
                with pytest.raises(ValueError, match="not finite at a node of train_mask"):
                    ask(*wrong)
        assert torch.equal(ask(prediction, put(y, unknown, np.nan)), ask(prediction, y))


def put(values, at, value):
    changed = values.clone()
    changed[at] = value
    return changed


def test_tensors_that_are_no_floats_are_refused():
    """What comes back is of the kind of the prediction: corrections of whole numbers would be cut off."""
    _, module, prediction, y = setting("path")
    for ask in (module.loss, module.correct):
        for kind in (torch.int64, torch.bool, torch.complex128):
            with pytest.raises(TypeError, match=f"prediction is a tensor of {kind}; give floats"):
                ask(prediction.to(kind), y)
        with pytest.raises(TypeError, match=r"y is a tensor of torch\.complex128; give real numbers"):
            ask(prediction, y.to(torch.complex128))
        counts = (10 * y).to(torch.int64)  # labels may be counts
        assert torch.equal(ask(prediction, counts), ask(prediction, counts.to(torch.float64)))


def named_ring(n=12):
    names = np.array([f"n{k}" for k in range(n)])
    return Graph.from_edges(names, np.roll(names, -1), nodes=names)


def test_labels_of_pandas_are_matched_by_id():
    graph, rng = named_ring(), np.random.default_rng(0)
    y, order = rng.standard_normal(12), rng.permutation(12)
    module = CorrelatedResidual(graph, np.arange(12) % 3 > 0, alpha=0.6)
    prediction = torch.tensor(rng.standard_normal(12), requires_grad=True)
    shuffled = pd.Series(y[order], index=graph.nodes[order])
    for labels in (shuffled, shuffled.to_frame(), y, y.tolist()):
        assert module.loss(prediction, labels).item() == module.loss(prediction, torch.tensor(y)).item()
        assert torch.equal(module.correct(prediction, labels), module.correct(prediction, torch.tensor(y)))
    with pytest.raises(ValueError, match="y has 1 id that the graph has not, 'zzz'"):
        module.loss(prediction, shuffled.rename({"n3": "zzz"}))
    with pytest.raises(TypeError, match=r"prediction is ndarray, not a Tensor; pass torch\.as_tensor"):
        module.loss(y, shuffled)


def test_only_flags_make_a_training_mask():
    graph, known = named_ring(), np.arange(12) % 3 > 0
    for mask in (known, known.astype(int), known.astype(float), known.astype(object), torch.tensor(known)):
        np.testing.assert_array_equal(CorrelatedResidual(graph, mask).labelled, known)
    y = np.where(known, 1.5, np.nan)
    wrong = (y, np.where(known, 1.0, np.nan), known.astype(str), known + 1, dict(zip(graph.nodes, known, strict=True)))
    for mask in (*wrong, torch.tensor(y)):
        with pytest.raises(ValueError, match=r"^train_mask"):
            CorrelatedResidual(graph, mask)


def test_the_mean_gradient_of_a_network_over_batches_is_that_of_all_labels():
    """By every batch of one size; the signs that a batch draws leave an error, held to its standard error."""
    case = CASES["weighted"]
    rng = np.random.default_rng(0)
    x, y = torch.tensor(rng.standard_normal((case.n, 2))), torch.tensor(rng.standard_normal(case.n))
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 1).double()
    module = CorrelatedResidual(case.graph, case.labelled, alpha=0.4, beta=1.5)
    weights = [*net.parameters(), *module.parameters()]
    remembered = rng.standard_normal((len(case.L), 1))

    def gradient(loss):
        return torch.cat([g.ravel() for g in torch.autograd.grad(loss, weights)]).numpy()

    expected = gradient(module.loss(net(x)[:, 0], y))
    means = []
    for _ in range(40):
        found = []
        for part in combinations(case.L, 3):
            nodes = np.array(part)
            module.remembered = remembered.copy()
            batch = module.loss(net(x[nodes])[:, 0], y[nodes], nodes=torch.tensor(nodes), unbiased=True)
            found.append(gradient(batch))
        means.append(np.mean(found, axis=0))
    stderr = np.std(means, axis=0) / np.sqrt(len(means))
    assert (np.abs(np.mean(means, axis=0) - expected) < 4 * stderr + 1e-9).all()
    assert (stderr < 0.1 * np.abs(expected).max()).all()


def test_a_batch_remembers_what_it_was_told_and_nothing_else():
    case, module, prediction, y = setting("weighted", outputs=2)
    nodes = case.L[[2, 0]]
    module.loss(prediction[nodes], y[nodes], nodes=nodes)
    expected = np.zeros((len(case.L), 2))
    expected[[2, 0]] = (y - prediction)[nodes].numpy()
    np.testing.assert_array_equal(module.remembered, expected)
    module.loss(prediction, y)
    np.testing.assert_array_equal(module.remembered, (y - prediction)[case.L].numpy())


@pytest.mark.parametrize("unbiased", [True, False])
def test_a_batch_of_all_labels_is_the_loss_of_all_in_any_order(unbiased):
    case, module, prediction, y = setting("two types", outputs=2)
    nodes = np.random.default_rng(0).permutation(case.L)
    batch = module.loss(prediction[nodes], y[nodes], nodes=nodes, unbiased=unbiased)
    assert batch.item() == pytest.approx(module.loss(prediction, y).item(), rel=1e-9)


def test_the_loss_of_a_batch_is_that_of_all_labels_where_the_others_are_as_remembered():
    case, module, prediction, y = setting("weighted")
    nodes = case.L[:3]
    module.remembered = 0.1 * np.random.default_rng(4).standard_normal((len(case.L), 1))
    expected = prediction.clone()
    expected[case.L] = y[case.L] - torch.as_tensor(module.remembered[:, 0])
    expected[nodes] = prediction[nodes]
    batch = module.loss(prediction[nodes], y[nodes], nodes=nodes)
    assert batch.item() == pytest.approx(module.loss(expected, y).item(), rel=1e-9)


def test_batches_that_cannot_be_right_are_refused():
    case, module, prediction, y = setting("weighted")
    one, out = case.L[:1], np.flatnonzero(~case.labelled)
    for nodes, match in (
        (one, r"nodes has 1 nodes, 1 of them different; draw at least two"),
        (np.repeat(one, 2), "nodes has 2 nodes, 1 of them different"),
        (np.r_[one, out], rf"outside of train_mask, such as {out[0]}; draw batches from it: input_nodes=train_mask"),
        (np.array([0, 99]), "give positions in graph.nodes, whole numbers from 0 to"),
        (case.labelled, r"dtype bool; give positions"),
    ):
        with pytest.raises(ValueError, match=match):
            module.loss(prediction[: len(nodes)], y[: len(nodes)], nodes=nodes)
    with pytest.raises(ValueError, match="nodes has 2 nodes, this module 1 outputs"):
        module.loss(prediction, y, nodes=case.L[:2])


def test_the_module_is_an_attribute_of_the_package():
    assert residua.nn.CorrelatedResidual is CorrelatedResidual


@pytest.mark.parametrize("name", ["path", "isolate", "two types", "component without label"])
def test_labels_with_noise_have_the_dense_likelihood_and_its_gradients(name):
    c = CASES[name]
    noise = np.random.default_rng(0).uniform(0.1, 2, c.n)
    module = CorrelatedResidual(c.graph, c.labelled, alpha=0.5, beta=1.3, noise_variance=noise)
    y = torch.as_tensor(np.random.default_rng(1).standard_normal(c.n))
    C = dense.covariance(c.S, np.full(len(c.types), 0.5), 1.3)
    V, r = dense.block(C, c.labelled) + np.diag(noise[c.labelled]), y.numpy()[c.labelled]
    loss = module.loss(torch.zeros(c.n, dtype=torch.float64), y)
    np.testing.assert_allclose(loss.item() * len(r), -2 * multivariate_normal(cov=V).logpdf(r), rtol=1e-9)
    mean, std = module.correct(torch.zeros(c.n, dtype=torch.float64), y, return_std=True)
    weights = np.linalg.solve(V, C[c.labelled]).T
    np.testing.assert_allclose(mean.numpy(), weights @ r, atol=1e-5)
    np.testing.assert_allclose(std.numpy() ** 2, np.diag(C - weights @ C[c.labelled]), rtol=1e-6)

    def loss_at(r, a, b):
        return residua.nn._Omega.apply(r, torch.tanh(a[0]), torch.exp(b[0]), module._omega)

    given = torch.as_tensor(r), module.a.detach().clone(), module.b.detach().clone()
    assert torch.autograd.gradcheck(loss_at, tuple(x.requires_grad_() for x in given), atol=1e-5, rtol=1e-4)


def test_a_batch_of_labels_with_noise_is_refused():
    c = CASES["path"]
    module = CorrelatedResidual(c.graph, c.labelled, noise_variance=0.1)
    with pytest.raises(ValueError, match="labels with noise"):
        module.loss(torch.zeros(2), np.zeros(2), nodes=c.L[:2])
    with pytest.raises(ValueError, match="GraphRegressor"):
        CorrelatedResidual(c.graph, c.labelled, noise_variance="learned")
