"""The correlation of residuals as a torch module, for one's own training loop.

    loss = Omega / |L|,   Omega = beta q(alpha; r_L) - |L| log beta - h(alpha) + |L| log 2 pi,   r = y - prediction

alpha = tanh(a) and beta = exp(b) are parameters of the module, one set for each output column. The graph stays on the
CPU, where its sparse solvers live: between devices only vectors of length n move.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from residua.extras import needs

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise ImportError(needs("residua.nn", "PyTorch", "gnn", error)) from None

from residua.arrays import as_flags, as_floats
from residua.field import Conditional, Likelihood
from residua.graph import Graph
from residua.graph.alignment import align
from residua.linalg import Strategy
from residua.validation import check_graph

__all__ = ["CorrelatedResidual"]


def _array(values: Tensor) -> np.ndarray:
    return values.detach().cpu().double().numpy()


def _flags(values: Any) -> np.ndarray:
    """Return flags, given as such or as 0 and 1."""
    flags = np.asarray(values)
    if flags.dtype == bool:
        return flags
    remedy = "give True at the nodes whose labels are used and False elsewhere, such as ~np.isnan(y)"
    numbers = as_floats(flags, "train_mask", remedy)
    wrong = ~np.isin(numbers, (0, 1))
    if wrong.any():
        raise ValueError(f"train_mask holds {numbers[wrong][0]}, which is no flag; {remedy}.")
    return numbers == 1


def _check_finite(residual: Tensor) -> None:
    if not torch.isfinite(residual).all():
        raise ValueError("y or the prediction is not finite at a node of train_mask; mask such nodes out.")


class _Omega(torch.autograd.Function):
    """-2 log-likelihood of one column, with the analytic gradients of the envelope theorem."""

    @staticmethod
    def forward(ctx: Any, residual: Tensor, alpha: Tensor, beta: Tensor, likelihood: Likelihood) -> Tensor:
        omega = likelihood.omega(_array(residual), _array(alpha), float(beta))
        slopes = (residual, omega.residual), (alpha, omega.alpha), (beta, omega.beta)
        ctx.save_for_backward(*(given.new_tensor(slope) for given, slope in slopes))
        return residual.new_tensor(omega.value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return (*(gradients[0] * saved for saved in ctx.saved_tensors), None)


class CorrelatedResidual(torch.nn.Module):
    """Learn how residuals are correlated along the edges of a graph, inside any PyTorch loop.

    Parameters
    ----------
    graph : Graph
        The graph.
    train_mask : Tensor, ndarray or Series of shape (n,)
        True at nodes whose labels are used; a Series is matched by id.
    outputs : int
        Number of output columns, each with its own alpha and beta.
    alpha : float
        Where learning begins.
    beta : float
        Where learning begins.
    logdet : "auto" or Strategy
        ``Eigen()``, ``Cholesky()`` or ``Lanczos(...)``; "auto" is exact where that is cheap.
    random_state : int
        Seed of probes and samples.

    Examples
    --------
    >>> import torch, residua
    >>> from residua.nn import CorrelatedResidual
    >>> ring = residua.Graph.from_edges(range(6), [1, 2, 3, 4, 5, 0])
    >>> known = torch.tensor([True, True, False, True, True, False])
    >>> y = torch.tensor([1.0, 0.8, 0.2, -0.5, -0.4, 0.3])
    >>> residual = CorrelatedResidual(ring, known)
    >>> loss = residual.loss(torch.zeros(6), y)
    >>> loss.backward()
    >>> prediction, std = residual.correct(torch.zeros(6), y, return_std=True)
    """

    def __init__(
        self,
        graph: Graph,
        train_mask: Any,
        *,
        outputs: int = 1,
        alpha: float = 0.0,
        beta: float = 1.0,
        logdet: str | Strategy = "auto",
        random_state: int = 0,
    ):
        super().__init__()
        self.graph = check_graph(graph)
        train_mask = align(train_mask, self.graph.nodes, "train_mask")
        mask = train_mask.cpu() if isinstance(train_mask, Tensor) else as_flags(train_mask, "train_mask")
        self.labelled = _flags(mask)
        shape, n = self.labelled.shape, graph.n_nodes
        if shape != (n,):
            raise ValueError(f"train_mask has shape {shape} but graph has {n} nodes; give one flag a node.")
        if not self.labelled.any():
            raise ValueError("train_mask is True at no node; give the nodes whose labels are used.")
        if not (-1 < alpha < 1 and beta > 0):
            raise ValueError(f"alpha={alpha}, beta={beta}: alpha must be inside (-1, 1), beta positive.")
        self.random_state = random_state
        self.likelihood = Likelihood(graph, self.labelled, logdet, random_state=random_state)
        types = len(graph.edge_types)
        self.a = torch.nn.Parameter(torch.full((outputs, types), float(np.arctanh(alpha)), dtype=torch.float64))
        self.b = torch.nn.Parameter(torch.full((outputs,), float(np.log(beta)), dtype=torch.float64))

    @property
    def alpha(self) -> Tensor:
        """Correlation along edges: (outputs, edge types), or (edge types,) for one output."""
        return torch.tanh(self.a).squeeze(0)

    @property
    def beta(self) -> Tensor:
        """Precision: (outputs,), or a number for one output."""
        return torch.exp(self.b).squeeze(0)

    def loss(self, prediction: Tensor, y: Any) -> Tensor:
        """Return -2 log-likelihood of the labels under the training mask, a label and output; y as in ``correct``."""
        prediction, y = self._predictions(prediction), self._labels(y, prediction)
        rows = torch.as_tensor(np.flatnonzero(self.labelled), device=prediction.device)
        residual = y[rows] - prediction[rows]
        _check_finite(residual)
        alpha, beta = torch.tanh(self.a), torch.exp(self.b)
        columns = [_Omega.apply(residual[:, k], alpha[k], beta[k], self.likelihood) for k in range(residual.shape[1])]
        return torch.stack(columns).sum() / residual.numel()

    @torch.no_grad()
    def correct(
        self, prediction: Tensor, y: Any, *, return_std: bool = False, samples: int = 0
    ) -> Tensor | tuple[Tensor, ...]:
        """Add what the labels under the training mask say of the others.

        Parameters
        ----------
        prediction : Tensor of shape (n,) or (n, outputs)
            What the network says.
        y : Tensor, array or Series of shape (n,), or (n, outputs)
            Labels, in order or a Series by id; those outside of the training mask are not looked at.
        return_std : bool
            Whether to return standard deviations.
        samples : int
            How many joint draws to return.

        Returns
        -------
        corrected : Tensor
            The prediction, known labels as known; after it the standard deviation if asked, and joint draws
            (samples, n) or (samples, n, outputs) if asked.
        """
        columns = self._predictions(prediction)
        single = prediction.ndim == 1
        base, labels = _array(columns), _array(self._labels(y, prediction))
        _check_finite(torch.as_tensor((labels - base)[self.labelled]))
        results = [self._corrected(base[:, k], labels[:, k], k, return_std, samples) for k in range(base.shape[1])]
        stacked = [np.stack(part, axis=-1) for part in zip(*results, strict=True)]
        tensors = tuple(torch.as_tensor(part[..., 0] if single else part).to(prediction) for part in stacked)
        return tensors if len(tensors) > 1 else tensors[0]

    def _corrected(self, base: np.ndarray, y: np.ndarray, k: int, return_std: bool, samples: int) -> list[np.ndarray]:
        alpha = dict(zip(self.graph.edge_types, torch.tanh(self.a[k]).tolist(), strict=True))
        beta = float(torch.exp(self.b[k]))
        conditional = Conditional(self.graph, self.labelled, alpha, beta, random_state=self.random_state)
        correction = conditional.conditional_mean(np.where(self.labelled, y - base, np.nan))
        mean = np.where(self.labelled, y, base + correction)
        parts = [mean]
        if return_std:
            parts.append(np.sqrt(conditional.variance().value))
        if samples:
            parts.append(mean + conditional.sample(samples, np.random.default_rng([self.random_state, k])))
        return parts

    def _labels(self, y: Any, prediction: Tensor) -> Tensor:
        if not isinstance(y, Tensor):
            y = as_floats(align(y, self.graph.nodes, "y", unknown=True), "y")
            y = torch.as_tensor(y, device=prediction.device)
        if y.is_complex():
            raise TypeError(f"y is a tensor of {y.dtype}; give real numbers.")
        return self._columns(y)

    def _predictions(self, values: Tensor) -> Tensor:
        if not isinstance(values, Tensor):
            raise TypeError(f"prediction is {type(values).__name__}, not a Tensor; pass torch.as_tensor(prediction).")
        if not values.is_floating_point():  # what is returned is of this kind: whole numbers would be cut
            raise TypeError(f"prediction is a tensor of {values.dtype}; give floats: prediction.to(torch.float64).")
        return self._columns(values)

    def _columns(self, values: Tensor) -> Tensor:
        columns = values[:, None] if values.ndim == 1 else values
        if columns.shape != (self.graph.n_nodes, len(self.a)):
            raise ValueError(
                f"got a tensor of shape {tuple(values.shape)}; the graph has {self.graph.n_nodes} nodes, this module "
                f"{len(self.a)} outputs: give (n,) or (n, outputs)."
            )
        return columns
