"""The torch module against the likelihood it wraps."""

import numpy as np
import pandas as pd
import pytest

import dense
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
