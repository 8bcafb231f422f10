"""Settings of a network base; they need no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from residua.bases.registry import NETWORKS, listed
from residua.validation import check_count


@dataclass(eq=False, repr=False)  # equality and text are scikit-learn's
class Network(BaseEstimator):
    """Settings of a network base, where the defaults of ``GraphRegressor(base="sage")`` do not do.

    Parameters
    ----------
    kind : {"mlp", "hops", "gcn", "sage", "sage-gcn", "sage-max", "sage-pool"} or torch module
        The architecture; a module is called as ``module(x, edge_index)``, with ``edge_weight`` and ``edge_attr`` too
        where its ``forward`` has arguments of these names.
    widths : sequence of int, optional
        Sizes of the layers before the linear output; the paper's by default.
    hops : int
        How far the features of "hops" are averaged.
    epochs : int
        Steps of the full-batch training at most.
    learning_rate : float
        Of Adam.
    weight_decay : float
        Of Adam.
    patience : int
        Steps without a lower error after which the training ends.
    validation : float
        Share of the labels held out to stop it.
    batch_size : int
        Rows in a batch of "mlp" and "hops", used where there are at least four batches of labels.
    steps : int
        Steps of training="paper".
    lbfgs : bool
        Whether training="paper" brings alpha and beta to their optimum every 100 steps, in place of a step every 10.
    """

    kind: Any = "sage"
    widths: Any = None
    hops: int = 2
    epochs: int = 500
    learning_rate: float = 0.01
    weight_decay: float = 1e-3
    patience: int = 100
    validation: float = 0.15
    batch_size: int = 8192
    steps: int = 1500
    lbfgs: bool = False

    @property
    def own(self) -> bool:
        """Whether ``kind`` is a module of one's own."""
        return hasattr(self.kind, "state_dict") and not isinstance(self.kind, type)

    @property
    def name(self) -> str:
        """The kind, or the class of a module."""
        return type(self.kind).__name__ if self.own else self.kind

    def check(self) -> None:
        """Refuse what cannot be trained."""
        if not self.own and self.kind not in NETWORKS:
            raise ValueError(f"kind={self.kind!r} is unknown; use {listed(NETWORKS)} or a torch module.")
        for name, least in (("hops", 0), ("epochs", 1), ("patience", 0), ("batch_size", 1), ("steps", 1)):
            check_count(getattr(self, name), name, least)
        if self.widths is not None and (isinstance(self.widths, str) or not np.iterable(self.widths)):
            raise ValueError(f"widths={self.widths!r} is not a list of layer sizes; give one such as (64, 32).")
        for width in () if self.widths is None else self.widths:
            check_count(width, "widths", 1)
        if not (self.learning_rate > 0 and self.weight_decay >= 0 and 0 <= self.validation < 1):
            raise ValueError(
                f"learning_rate={self.learning_rate}, weight_decay={self.weight_decay}, validation={self.validation}: "
                "the first must be positive, the second not negative, the third a share from 0 to below 1."
            )
