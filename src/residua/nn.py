"""The correlation of residuals as a torch module, for one's own training loop.

    loss = Omega / |L|,   Omega = beta q(alpha; r_L) - |L| log beta - h(alpha) + |L| log 2 pi,   r = y - prediction

alpha = tanh(a) and beta = exp(b) are parameters of the module, one set for each output column. The graph stays on the
CPU, where its sparse solvers live: between devices only vectors of length n move. A batch of labels gives an unbiased
estimate of the loss (``residua.field.batch_likelihood``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from residua.extras import needs

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise ImportError(needs("residua.nn", "PyTorch", "gnn", error)) from None

from residua.arrays import as_flags, as_floats
from residua.by_id import labels_by_id
from residua.field import Conditional, Likelihood
from residua.field.batch_likelihood import batch_omega
from residua.field.kinds import NORMALISED, check_field, field_graph
from residua.field.likelihood import Omega
from residua.graph import Graph
from residua.graph.alignment import align
from residua.linalg import Strategy
from residua.validation import check_graph, check_noise

__all__ = ["CorrelatedResidual"]


def _array(values: Tensor) -> np.ndarray:
    return values.detach().cpu().double().numpy()


def _as_tensor(y: Any, like: Tensor) -> Tensor:
    """Return labels as a tensor on the device of another."""
    return y if isinstance(y, Tensor) else torch.as_tensor(as_floats(y, "y"), device=like.device)


def _real(y: Tensor) -> Tensor:
    """Return labels that are real numbers."""
    if y.is_complex():
        raise TypeError(f"y is a tensor of {y.dtype}; give real numbers.")
    return y


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
    def forward(
        ctx: Any,
        residual: Tensor,
        alpha: Tensor,
        beta: Tensor,
        omega_of: Callable[[np.ndarray, np.ndarray, float], Omega],
    ) -> Tensor:
        omega = omega_of(_array(residual), _array(alpha), float(beta))
        slopes = (residual, omega.residual), (alpha, omega.alpha), (beta, omega.beta)
        ctx.save_for_backward(*(given.new_tensor(slope) for given, slope in slopes))
        return residual.new_tensor(omega.value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # alpha and beta may be on the CPU while the network is elsewhere.
        return (*(gradients[0].to(saved) * saved for saved in ctx.saved_tensors), None)


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
    noise_variance : float, ndarray or Series of shape (n,), optional
        Known variances of the noise of the labels; a Series is matched by id. Predictions are then of the values
        beneath it. A step of the loss computes log-determinants three times, once without noise for all steps.
    field : {"normalised", "laplacian"}
        As in ``GraphRegressor``; alpha and beta of a Laplacian field are those of a node of the highest degree.
    random_state : int
        Seed of probes, samples and the signs that a batch draws.

    Attributes
    ----------
    remembered : ndarray of shape (|L|, outputs)
        Residuals of the labels when the loss was last asked for each; 0 before.

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
        noise_variance: Any = None,
        field: str = NORMALISED,
        random_state: int = 0,
    ):
        super().__init__()
        check_field(field)
        self.graph = check_graph(graph)
        self.field_graph = field_graph(self.graph, field)
        train_mask = align(train_mask, self.graph.nodes, "train_mask")
        self.labelled = _flags(as_flags(train_mask, "train_mask"))
        shape, n = self.labelled.shape, graph.n_nodes
        if shape != (n,):
            raise ValueError(f"train_mask has shape {shape} but graph has {n} nodes; give one flag a node.")
        if not self.labelled.any():
            raise ValueError("train_mask is True at no node; give the nodes whose labels are used.")
        if not (-1 < alpha < 1 and beta > 0):
            raise ValueError(f"alpha={alpha}, beta={beta}: alpha must be inside (-1, 1), beta positive.")
        self.random_state = random_state
        self.likelihood = Likelihood(self.field_graph, self.labelled, logdet, random_state=random_state)
        given = labels_by_id(noise_variance, graph, "noise_variance")
        found = check_noise(None, given, graph, self.labelled)
        if found is not None and found[1]:
            raise ValueError('noise_variance="learned" is for GraphRegressor.fit; give the variances of the labels.')
        self.noise = None if found is None else found[0]
        types = len(graph.edge_types)
        self.a = torch.nn.Parameter(torch.full((outputs, types), float(np.arctanh(alpha)), dtype=torch.float64))
        self.b = torch.nn.Parameter(torch.full((outputs,), float(np.log(beta)), dtype=torch.float64))
        self.remembered = np.zeros((self.likelihood.n_labelled, outputs))
        self._rng = np.random.default_rng([random_state, 2])

    @property
    def alpha(self) -> Tensor:
        """Correlation along edges: (outputs, edge types), or (edge types,) for one output."""
        return torch.tanh(self.a).squeeze(0)

    @property
    def beta(self) -> Tensor:
        """Precision: (outputs,), or a number for one output."""
        return torch.exp(self.b).squeeze(0)

    def loss(self, prediction: Tensor, y: Any, nodes: Any = None, *, unbiased: bool = False) -> Tensor:
        """Return -2 log-likelihood of the labels under the training mask, a label and output; or an estimate of it.

        Parameters
        ----------
        prediction : Tensor of shape (n,) or (n, outputs)
            What the network says; of a batch, a row for each of ``nodes``.
        y : Tensor, array or Series of shape (n,) or (n, outputs)
            Labels, in order or a Series by id; those outside of the training mask are not looked at. Of a batch, a row
            for each of ``nodes``.
        nodes : Tensor or array of int, shape (batch,), optional
            Positions in ``graph.nodes`` of a random batch of nodes under the training mask, drawn without replacement:
            the seeds of a neighbour sampler. What the network said of a node is remembered until that node is in a
            batch again. A batch takes a sparse solve on the whole graph.
        unbiased : bool
            Of a batch: False takes the residuals of the other labels to be as they are remembered, a few steps old.
            True corrects for what may have changed since, so that value and gradients are unbiased; such an estimate
            has no lower end, and an optimiser that follows it for long can drive alpha to 1 and predictions away.

        Returns
        -------
        Tensor
            A number.
        """
        rows = np.flatnonzero(self.labelled) if nodes is None else self._batch(nodes)
        if nodes is None:
            prediction, y = self._predictions(prediction), self._labels(y, prediction)
            at = torch.as_tensor(rows, device=prediction.device)
            residual = y[at] - prediction[at]
        elif self.noise is not None:
            raise ValueError("nodes is a batch, of which there is no loss of labels with noise; leave nodes out.")
        else:
            prediction = self._predictions(prediction, len(rows))
            residual = self._columns(_real(_as_tensor(y, prediction)), len(rows)) - prediction
        _check_finite(residual)
        alpha, beta = torch.tanh(self.a), torch.exp(self.b)
        omegas = [self._omega] * len(beta) if nodes is None else self._batch_omegas(rows, unbiased)
        columns = [_Omega.apply(residual[:, k], alpha[k], beta[k], omegas[k]) for k in range(len(beta))]
        self.remembered[np.searchsorted(np.flatnonzero(self.labelled), rows)] = _array(residual)
        return torch.stack(columns).sum() / (self.likelihood.n_labelled * len(beta))

    def _omega(self, r: np.ndarray, alpha: np.ndarray, beta: float) -> Omega:
        if self.noise is None:
            return self.likelihood.omega(r, alpha, beta)
        return self.likelihood.omega_with_noise(r, alpha, beta, self.noise[self.labelled])

    def _batch(self, nodes: Any) -> np.ndarray:
        """Return checked positions of the nodes of a batch."""
        rows = np.asarray(nodes.detach().cpu() if isinstance(nodes, Tensor) else nodes)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or not np.isin(rows, np.arange(self.graph.n_nodes)).all():
            raise ValueError(
                f"nodes has shape {rows.shape} and dtype {rows.dtype}; give positions in graph.nodes, whole numbers "
                f"from 0 to {self.graph.n_nodes - 1}: batch.n_id[:batch.batch_size] of a NeighborLoader."
            )
        outside = ~self.labelled[rows]
        if outside.any():
            raise ValueError(
                f"nodes has {outside.sum()} nodes outside of train_mask, such as {rows[outside.argmax()]}; draw "
                "batches from it: input_nodes=train_mask of a NeighborLoader."
            )
        if len(np.unique(rows)) < max(len(rows), 2):
            raise ValueError(
                f"nodes has {len(rows)} nodes, {len(np.unique(rows))} of them different; draw at least two, without "
                "replacement (drop_last=True leaves out a last batch of one)."
            )
        return rows

    def _batch_omegas(self, rows: np.ndarray, unbiased: bool) -> list[Callable[[np.ndarray, np.ndarray, float], Omega]]:
        """Return, for each output, the estimate of -2 log-likelihood from residuals at ``rows``."""
        at = np.searchsorted(np.flatnonzero(self.labelled), rows)
        signs = self._rng.choice((-1.0, 1.0), len(at)) if unbiased else None

        def of(remembered: np.ndarray) -> Callable[[np.ndarray, np.ndarray, float], Omega]:
            return lambda r, alpha, beta: batch_omega(self.likelihood, at, r, remembered, signs, alpha, beta)

        return [of(column.copy()) for column in self.remembered.T]

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
        options: Any = {"random_state": self.random_state, "noise": self.noise}
        conditional = Conditional(self.field_graph, self.labelled, alpha, beta, **options)
        correction = conditional.conditional_mean(np.where(self.labelled, y - base, np.nan))
        exact = self.labelled if self.noise is None else self.noise == 0
        mean = np.where(exact, y, base + correction)
        parts = [mean]
        if return_std:
            parts.append(np.sqrt(conditional.variance().value))
        if samples:
            parts.append(mean + conditional.sample(samples, np.random.default_rng([self.random_state, k])))
        return parts

    def _labels(self, y: Any, prediction: Tensor) -> Tensor:
        if not isinstance(y, Tensor):
            y = align(y, self.graph.nodes, "y", unknown=True)
        return self._columns(_real(_as_tensor(y, prediction)))

    def _predictions(self, values: Tensor, rows: int | None = None) -> Tensor:
        if not isinstance(values, Tensor):
            raise TypeError(f"prediction is {type(values).__name__}, not a Tensor; pass torch.as_tensor(prediction).")
        if not values.is_floating_point():  # what is returned is of this kind: whole numbers would be cut
            raise TypeError(f"prediction is a tensor of {values.dtype}; give floats: prediction.to(torch.float64).")
        return self._columns(values, rows)

    def _columns(self, values: Tensor, rows: int | None = None) -> Tensor:
        rows = self.graph.n_nodes if rows is None else rows
        columns = values[:, None] if values.ndim == 1 else values
        if columns.shape != (rows, len(self.a)):
            what = "the graph has" if rows == self.graph.n_nodes else "nodes has"
            raise ValueError(
                f"got a tensor of shape {tuple(values.shape)}; {what} {rows} nodes, this module "
                f"{len(self.a)} outputs: give (n,) or (n, outputs)."
            )
        return columns
