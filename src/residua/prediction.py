"""One graph with its known labels, and all that a fitted model says of it.

mean at U = base + E[r_U | r_L],   at i in L, left out: y_i - error_i
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from residua import metrics
from residua.field import Conditional, LeaveOneOut
from residua.field.propagation import warn_unreached
from residua.graph import Graph


@dataclass(frozen=True)
class Prediction:
    """Computed when asked, and kept: means, variances and leave-one-out share their solves."""

    graph: Graph
    y: np.ndarray  # (n,), NaN where unknown
    base: np.ndarray  # (n,) base prediction
    residual: np.ndarray  # (n,), NaN where unknown
    conditional: Conditional
    marginal_variance: float  # of a residual about which no label says anything
    starts: np.ndarray | None = None  # (starts, |L|) residuals of each network of an ensemble, where they differ
    held: np.ndarray | None = None  # (starts, |L|) bool: labels that it was not trained on

    @cached_property
    def known(self) -> np.ndarray:
        return ~np.isnan(self.y)

    @cached_property
    def alone(self) -> np.ndarray:
        """Nodes that propagation cannot reach; a learned alpha below 1 reaches all."""
        unreached = self.conditional.unreached
        return unreached if self.conditional.improper else np.zeros_like(unreached)

    @cached_property
    def mean(self) -> np.ndarray:
        if self.alone.any():
            warn_unreached(self.graph, self.alone, "they get the base prediction")
        return self._finite(np.where(self.known, self.y, self.base + self.conditional.extend(self.residual)), "means")

    @cached_property
    def std(self) -> np.ndarray:
        variance = np.where(self.alone, self.marginal_variance, self.conditional.variance().value)
        return self._finite(np.sqrt(variance), "standard deviations")

    def _finite(self, values: np.ndarray, what: str) -> np.ndarray:
        if not np.isfinite(values).all():
            largest = np.nanmax(np.abs(np.concatenate([self.y, self.residual, self.base])), initial=0.0)
            raise ValueError(
                f"{what} at {(~np.isfinite(values)).sum()} of {len(values)} nodes are not finite: labels, residuals "
                f"and base predictions reach {largest:.1e}; bring y to a smaller scale."
            )
        return values

    @cached_property
    def left_out(self) -> LeaveOneOut:
        found = self.conditional.leave_one_out(self.residual)
        variance = np.where(np.isfinite(found.variance), found.variance, self.marginal_variance)
        return replace(found, error=self._by_start(found.error), variance=variance)

    def _by_start(self, error: np.ndarray) -> np.ndarray:
        """Of a label that some networks were not trained on, their own errors: each has a level of its own."""
        if self.starts is None or self.held is None:
            return error
        total, count = np.zeros_like(error), self.held.sum(axis=0)
        for residual, held in zip(self.starts, self.held, strict=True):
            full = np.full(len(self.y), np.nan)
            full[self.known] = residual
            total += np.where(held, self.conditional.leave_one_out(full).error, 0.0) if held.any() else 0.0
        return np.where(count > 0, total / np.maximum(count, 1), error)

    @cached_property
    def honest(self) -> np.ndarray:
        """(|L|,) bool: labels that no network was fitted to; all of them where every label was fitted to."""
        if self.held is None or not self.held.any():
            return np.ones(int(self.known.sum()), bool)
        return np.asarray(self.held.any(axis=0))

    def told(self, y: np.ndarray, each: np.ndarray | None) -> Prediction:
        """The same with labels y (n,) that came later, NaN elsewhere; ``each`` (starts, n) what the networks say."""
        now = np.where(np.isnan(y), self.y, y)
        known = ~np.isnan(now)
        conditional = self.conditional.at(known)
        # A base has learned the labels of the fit: there its out-of-fold predictions count, where it has them.
        base = np.where(self.known, self.y - self.residual, self.base)
        shift = conditional.mean_of(now - base)
        starts = held = None
        if self.starts is not None and self.held is not None and each is not None:
            each, held = self._told_starts(base, each)
            starts, held = (now - each)[:, known], held[:, known]
        residual = now - base - shift
        given = replace(self, y=now, base=self.base + shift, residual=residual, conditional=conditional)
        return replace(given, starts=starts, held=held)

    def _told_starts(self, base: np.ndarray, each: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(starts, n) predictions of the networks as residuals have them, and which of them are of labels not seen."""
        own = self.y[self.known] - self.starts
        if (own == base[self.known]).all():  # out-of-fold residuals, shared by all starts
            each = np.tile(base, (len(each), 1))
        each, held = each.copy(), np.ones(each.shape, bool)
        each[:, self.known] = own
        held[:, self.known] = self.held
        return each, held

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """(count, n) joint draws, known labels as known."""
        draws = self.mean + self.conditional.sample(count, rng)
        lonely = rng.standard_normal((count, int(self.alone.sum())))
        draws[:, self.alone] += np.sqrt(self.marginal_variance) * lonely
        return draws


def conformal_quantile(scores: np.ndarray, coverage: float) -> float:
    """The width, in standard deviations, that covers this share of labels with these absolute scores."""
    scores = np.sort(scores)
    rank = int(np.ceil((len(scores) + 1) * coverage))
    # With few labels no finite width has the guarantee: fall back to the widest seen or the Gaussian's.
    return float(scores[rank - 1]) if rank <= len(scores) else max(scores[-1], ndtri((1 + coverage) / 2))


def score_unseen(truth: np.ndarray, mean: np.ndarray, unseen: np.ndarray) -> float:
    """R2 at the nodes whose label the model has not seen."""
    held_out = ~np.isnan(truth) & unseen
    if held_out.sum() < 2:
        raise ValueError(
            f"y has {held_out.sum()} labels that the model has not seen; at least 2 are needed to score. "
            "Mask some labels as NaN in fit, or see diagnose() for leave-one-out accuracy."
        )
    return metrics.r2(truth[held_out], mean[held_out])
