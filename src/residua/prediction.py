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
    members: np.ndarray | None = None  # (members, |L|) residuals of each network of an ensemble, where they differ
    out_of_sample: np.ndarray | None = None  # (members, |L|) bool: labels that it was not trained on

    @cached_property
    def known(self) -> np.ndarray:
        return ~np.isnan(self.y)

    @cached_property
    def unreached(self) -> np.ndarray:
        """Nodes that propagation cannot reach; a learned alpha below 1 reaches all."""
        unreached = self.conditional.unreached
        return unreached if self.conditional.improper else np.zeros_like(unreached)

    @cached_property
    def mean(self) -> np.ndarray:
        if self.unreached.any():
            warn_unreached(self.graph, self.unreached, "they get the base prediction")
        return self._finite(np.where(self.known, self.y, self.base + self.conditional.extend(self.residual)), "means")

    @cached_property
    def std(self) -> np.ndarray:
        variance = np.where(self.unreached, self.marginal_variance, self.conditional.variance().value)
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
        return replace(found, error=self._by_member(found.error), variance=variance)

    def _by_member(self, error: np.ndarray) -> np.ndarray:
        """Of a label that some networks were not trained on, their own errors: each has a level of its own."""
        if self.members is None or self.out_of_sample is None:
            return error
        total, count = np.zeros_like(error), self.out_of_sample.sum(axis=0)
        for residual, mask in zip(self.members, self.out_of_sample, strict=True):
            full = np.full(len(self.y), np.nan)
            full[self.known] = residual
            total += np.where(mask, self.conditional.leave_one_out(full).error, 0.0) if mask.any() else 0.0
        return np.where(count > 0, total / np.maximum(count, 1), error)

    @cached_property
    def out_of_sample_labels(self) -> np.ndarray:
        """(|L|,) bool: labels that no network was fitted to; all of them where every label was fitted to."""
        if self.out_of_sample is None or not self.out_of_sample.any():
            return np.ones(int(self.known.sum()), bool)
        return np.asarray(self.out_of_sample.any(axis=0))

    def told(self, y: np.ndarray, each: np.ndarray | None) -> Prediction:
        """The same with labels y (n,) that came later, NaN elsewhere; ``each`` (members, n) what the networks say."""
        now = np.where(np.isnan(y), self.y, y)
        known = ~np.isnan(now)
        conditional = self.conditional.at(known)
        # A base has learned the labels of the fit: there its out-of-fold predictions count, where it has them.
        base = np.where(self.known, self.y - self.residual, self.base)
        shift = conditional.mean_of(now - base)
        members = out_of_sample = None
        if self.members is not None and self.out_of_sample is not None and each is not None:
            each, out_of_sample = self._later_members(base, each)
            members, out_of_sample = (now - each)[:, known], out_of_sample[:, known]
        residual = now - base - shift
        given = replace(self, y=now, base=self.base + shift, residual=residual, conditional=conditional)
        return replace(given, members=members, out_of_sample=out_of_sample)

    def _later_members(self, base: np.ndarray, each: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(members, n) predictions of the networks as residuals have them, and which of them are of labels not seen."""
        own = self.y[self.known] - self.members
        if (own == base[self.known]).all():  # out-of-fold residuals, shared by all members
            each = np.tile(base, (len(each), 1))
        each, out_of_sample = each.copy(), np.ones(each.shape, bool)
        each[:, self.known] = own
        out_of_sample[:, self.known] = self.out_of_sample
        return each, out_of_sample

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """(count, n) joint draws, known labels as known."""
        draws = self.mean + self.conditional.sample(count, rng)
        lonely = rng.standard_normal((count, int(self.unreached.sum())))
        draws[:, self.unreached] += np.sqrt(self.marginal_variance) * lonely
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
