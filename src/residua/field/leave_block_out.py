"""Blocks of labels as predicted from all the others, which tell of missing regions what leave-one-out cannot.

    e_B = r_B - E[r_B | r_K],    K the labels outside of B,    variance as of any unknown node given K

alpha and beta are those of the fit. A mean that was fitted with the correlation is fitted to K anew, by generalised
least squares. Any other base has learned from B, so that e_B is too small. The influence of B on an ordinary linear
mean of the features stands in for that on the base:

    r_B := r_B + Z (theta_L - theta_K),    theta_A = (Z_A' Z_A)^-1 Z_A' y_A
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from residua.field.prediction import Prediction
from residua.graph.regions import Missing, blocks_like
from residua.validation import MIN_LABELS

if TYPE_CHECKING:
    from residua.field.fitted import FittedField

BLOCKS = 40
DRAWS = 16  # for variances, good to a few per cent: scores need no more
EXACT = 5_000  # unlabelled nodes up to which a factor for each block is cheap
COLUMNS = 100  # of a linear mean that stands in
WIDE, NUMBERS = 2_000, 100_000_000  # features, and numbers in all, beyond which there is none

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class LeaveBlockOut:
    """Labels as predicted without the block that they lie in.

    Parameters
    ----------
    label : (m,) array of int
        Which of the known labels; one may lie in several blocks.
    block : (m,) array of int
        The block that was left out with it.
    error : (m,) array
        Label minus its prediction, of the size to be expected at unlabelled nodes.
    variance : (m,) array
        Of the prediction.
    unseen : (m,) array of bool
        Labels that the base was not trained on, where that matters.
    share : float
        Share of the unknown nodes that lie in missing regions, for which the blocks speak.
    count : int
        Number of blocks.
    seconds : float
        What it took.
    """

    label: np.ndarray
    block: np.ndarray
    error: np.ndarray
    variance: np.ndarray
    unseen: np.ndarray
    share: float
    count: int
    seconds: float

    @property
    def scores(self) -> np.ndarray:
        """Absolute errors in standard deviations, at unseen labels."""
        return np.abs(self.error[self.unseen]) / np.sqrt(self.variance[self.unseen])

    def width(self, single: np.ndarray, coverage: float) -> float:
        """Return the half-width of intervals, in standard deviations, given the scores of ``single`` labels left out.

        The scores of all blocks count alike, for the unknown nodes in missing regions; for the others those of single
        labels do. Of K blocks the coverage is made larger by 1 / K: that of a block yet to come.
        """
        block, sizes = self.block[self.unseen], np.bincount(self.block[self.unseen])
        number = np.count_nonzero(sizes)
        each = np.full(len(single), (1 - self.share) / max(len(single), 1))
        weight = np.concatenate([self.share / sizes[block] / number, each])
        values = np.concatenate([self.scores, single])
        order = np.argsort(values)
        within = np.cumsum(weight[order]) / weight.sum()
        at = int(np.searchsorted(within, coverage * (1 + self.share / number) - 1e-12))
        widest = float(values.max())
        return float(values[order][at]) if at < len(order) else max(widest, float(ndtri((1 + coverage) / 2)))

    def r2(self, labels: np.ndarray) -> float:
        """Return R2, labels (|L|,) given: squared errors over squared deviations within blocks, means over blocks."""
        at, block = self.label[self.unseen], self.block[self.unseen]
        y, count = labels[at], np.maximum(np.bincount(block, minlength=self.count), 1)
        mean = np.bincount(block, y, self.count) / count
        wrong = np.bincount(block, self.error[self.unseen] ** 2, self.count) / count
        spread = np.bincount(block, (y - mean[block]) ** 2, self.count) / count
        return float(1 - wrong.sum() / spread.sum()) if spread.sum() > 0 else float("nan")


def leave_block_out(field: FittedField, missing: Missing, blocks: list[np.ndarray] | None = None) -> LeaveBlockOut:
    """Leave out blocks of labels that lie together as nodes of missing regions do, one after the other.

    Parameters
    ----------
    field : FittedField
        The fitted field.
    missing : Missing
        The regions.
    blocks : list of arrays of int, optional
        Nodes (k,) of each block; by default drawn with the random state of the field.
    """
    begin = time.perf_counter()
    own = field.prediction
    if blocks is None:
        blocks = draw_blocks(field, missing)
    shift = Influence(field)
    found = [_left_out(own, block, shift) for block in blocks]
    error, variance = (np.concatenate(parts) for parts in zip(*found, strict=True))
    number = np.cumsum(own.known) - 1
    label = number[np.concatenate(blocks)]
    block = np.repeat(np.arange(len(blocks)), [len(nodes) for nodes in blocks])
    unseen = own.out_of_sample_labels[label]
    seconds = time.perf_counter() - begin
    log.info("left out %d blocks of %.0f labels each in %.1f s", len(blocks), len(label) / len(blocks), seconds)
    return LeaveBlockOut(label, block, error, variance, unseen, missing.share, len(blocks), seconds)


def draw_blocks(field: FittedField, missing: Missing) -> list[np.ndarray]:
    """Return the blocks (k,) of labelled nodes that a field leaves out for these missing regions."""
    rng = np.random.default_rng([field.random_state, 3])
    return blocks_like(field.graph, field.labelled, missing, BLOCKS, MIN_LABELS, rng)


def _left_out(own: Prediction, block: np.ndarray, influence: Influence) -> tuple[np.ndarray, np.ndarray]:
    """Return errors and variances (k,) of the labels at nodes ``block`` (k,), which are not known."""
    known = own.known.copy()
    known[block] = False
    exact = None if len(known) - known.sum() <= EXACT else False
    given = own.conditional.given(known, draws=DRAWS, exact=exact)
    shift = influence.of(block)
    if own.members is None or own.out_of_sample is None:
        residual = own.residual - given.mean_of(own.residual)
        error = _unexplained(given, residual if shift is None else residual + shift, block)
    else:
        weight = own.out_of_sample / np.maximum(own.out_of_sample.sum(axis=0), 1)
        weight = np.where(own.out_of_sample.any(axis=0), weight, 1 / len(weight))
        members = np.stack([own.at_known(residual) for residual in own.members], axis=1)
        each = _unexplained(given, members if shift is None else members + shift[:, None], block)
        number = (np.cumsum(own.known) - 1)[block]
        error = np.einsum("ik,ki->i", each, weight[:, number])
    y = np.where(known, own.y, np.nan)
    std = replace(own, y=y, conditional=given, members=None, out_of_sample=None).std[block]
    return own.error_scale * error, std**2


def _unexplained(given: Any, R: np.ndarray, block: np.ndarray) -> np.ndarray:
    return (R - given.conditional_mean(R))[block]


class Influence:
    """The influence of blocks of labels on a base that is not fitted anew, by that on a linear mean.

    Parameters
    ----------
    field : FittedField
        The fitted field.
    """

    def __init__(self, field: FittedField):
        own = field.prediction
        self.y = own.y
        self.Z = None if own.conditional.coefficients else _columns(field)
        if self.Z is not None:
            at = self.Z[own.known]
            self.gram, self.pulled = at.T @ at, at.T @ own.y[own.known]
            self.theta = _solved(self.gram, self.pulled)

    def of(self, block: np.ndarray) -> np.ndarray | None:
        """Return how far (n,) the labels at nodes ``block`` (k,) move the mean; None where nothing stands in."""
        if self.Z is None:
            return None
        at = self.Z[block]
        return np.asarray(self.Z @ (self.theta - _solved(self.gram - at.T @ at, self.pulled - at.T @ self.y[block])))


def _solved(gram: np.ndarray, pulled: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.lstsq(gram, pulled, rcond=1e-8)[0])


def _columns(field: FittedField) -> np.ndarray | None:
    """Return columns (n, k) of a linear mean: those of the base, if it has such, or else of its numeric features."""
    X, labelled = field.X, field.labelled
    own = field.base.design(X)
    if own is not None:
        return own if own.shape[1] else None
    if hasattr(X, "select_dtypes"):
        X = X.select_dtypes(["number", "bool"]).to_numpy(float, na_value=np.nan)
    if not 0 < X.shape[1] <= WIDE or X.shape[0] * X.shape[1] > NUMBERS:
        return None
    return _leading(np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), float), labelled)


def _leading(X: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Return a constant and the leading principal components of features (n, d), missing ones at their mean."""
    known = X[labelled]
    there = np.isfinite(known)
    count = np.maximum(there.sum(axis=0), 1)
    centre = np.where(there, known, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(there, known - centre, 0.0) ** 2).sum(axis=0) / count)
    C = np.where(np.isfinite(X), X - centre, 0.0) / np.where(spread > 0, spread, np.inf)
    values, vectors = np.linalg.eigh(C[labelled].T @ C[labelled])
    kept = np.flatnonzero(values > 1e-9 * values.max(initial=0))[-min(COLUMNS, len(known) // 10 + 1) :]
    return np.column_stack([np.ones(len(X)), C @ vectors[:, kept]])
