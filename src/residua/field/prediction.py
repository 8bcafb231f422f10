"""What a fitted field says of one graph with its known labels.

    mean at U = base + E[r_U | r_L],    at i in L, left out: y_i - error_i
    std at i = s_i times that of the field

r residuals, L nodes with a known label, U the others, s the scale that a learned spread gives each node. Where labels
have noise, a prediction is of the value beneath it, which the label tells but in part: then nodes of L are among U too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from residua.field.conditional import Conditional
from residua.field.leave_one_out import LeaveOneOut
from residua.field.neighbour_errors import Neighbourhood, neighbourhood
from residua.field.propagation import warn_unreached
from residua.field.spread import Scores, Spread
from residua.field.spread_columns import named, spread_columns
from residua.graph import Graph
from residua.linalg.workspace import Workspace, cached_property


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Workspace):
    """Means, standard deviations and leave-one-out errors of one graph: computed when asked, and kept.

    Parameters
    ----------
    graph : Graph
        n nodes.
    y : (n,) array
        Known labels, NaN where unknown.
    base : (n,) array
        Prediction of the base.
    residual : (n,) array
        Residuals at the known labels, NaN where unknown.
    conditional : Conditional
        Distribution of the residuals given those that are known.
    marginal_variance : float
        Variance of a residual about which no label says anything.
    members : (k, |L|) array, optional
        Residuals of each network of an ensemble.
    out_of_sample : (k, |L|) array of bool, optional
        Labels that each of those networks was not trained on.
    error_scale : float
        Errors at unlabelled nodes relative to those at such labels.
    features : (n, d) array, DataFrame or sparse matrix, optional
        What the spread may depend on.
    spread_of : callable, optional
        Returns the spread when it is needed; without, standard deviations are those of the field.
    """

    graph: Graph
    y: np.ndarray
    base: np.ndarray
    residual: np.ndarray
    conditional: Conditional
    marginal_variance: float
    members: np.ndarray | None = None
    out_of_sample: np.ndarray | None = None
    error_scale: float = 1.0
    features: Any = None
    spread_of: Callable[[], Spread] | None = None

    @cached_property
    def known(self) -> np.ndarray:
        """(n,) bool: nodes with a known label."""
        return ~np.isnan(self.y)

    @cached_property
    def unreached(self) -> np.ndarray:
        """(n,) bool: nodes that propagation cannot reach; a learned alpha below 1 reaches all."""
        unreached = self.conditional.unreached
        return unreached if self.conditional.improper else np.zeros_like(unreached)

    @cached_property
    def mean(self) -> np.ndarray:
        """(n,) means, the label where it is known."""
        if self.unreached.any():
            warn_unreached(self.graph, self.unreached, "they get the base prediction")
        corrected = self.base + self.conditional.conditional_mean(self.residual)
        return self._finite(np.where(self.exact, self.y, corrected), "means")

    @cached_property
    def exact(self) -> np.ndarray:
        """(n,) bool: nodes with a known label without noise."""
        return self.known if self.conditional.noise is None else np.asarray(self.conditional.noise == 0)

    @cached_property
    def std(self) -> np.ndarray:
        """(n,) standard deviations, 0 where the label is known without noise."""
        return self._finite(self.scale * self.field_std, "standard deviations")

    @cached_property
    def field_std(self) -> np.ndarray:
        """(n,) standard deviations of the field, to which a learned spread gives each node a scale."""
        variance = np.where(self.unreached, self.marginal_variance, self.conditional.variance().value)
        return self._finite(np.sqrt(variance), "standard deviations")

    @cached_property
    def spread(self) -> Spread:
        """Scale and tails of errors: those of the field as they are, unless another spread was learned."""
        return Spread() if self.spread_of is None else self.spread_of()

    @cached_property
    def scale(self) -> np.ndarray:
        """(n,) what the standard deviations of the field are multiplied by; at a known label, as others tell it."""
        if self.spread.gaussian:
            return np.ones(len(self.y))
        if self.spread.constant:
            return np.full(len(self.y), np.exp(self.spread.level))
        return self.spread.scale(self._spread_columns(), self.around)

    @cached_property
    def around(self) -> Neighbourhood:
        """How large the errors of the labels around each node were, its own left out."""
        precision = self.at_known(1 / (self.conditional.beta * self.field_leave_one_out.variance))
        G = self.conditional.G
        shared = G.alpha * sp.csr_array(G.S.to_scipy())
        return neighbourhood(self.graph, self.at_known(self._standardised_errors()), precision, shared)

    def _standardised_errors(self) -> np.ndarray:
        """(|L|,) leave-one-out errors in standard deviations of the field, NaN at labels that are not out of sample."""
        error = self.expected_error / np.sqrt(self.field_leave_one_out.variance)
        return np.where(self.out_of_sample_labels, error, np.nan)

    def _spread_columns(self) -> np.ndarray:
        """(n, k) what the scale depends on."""
        found = spread_columns(self.graph, self.features, self.left_out_mean, self.spread.middle)
        return named(found, self.spread.names)

    @property
    def spread_scores(self) -> Scores:
        """What a spread is learned from: leave-one-out errors, and what may explain their size."""
        at, mean = np.flatnonzero(self.known), self.left_out_mean
        middle = float(mean[at].mean())
        columns = spread_columns(self.graph, self.features, mean, middle)
        table = np.column_stack([column[at] for column in columns.values()])
        around = Neighbourhood(self.around.squares[:, at], self.around.weights[:, at])
        return Scores(self._standardised_errors(), table, tuple(columns), around, middle)

    def spread_parts(self) -> dict[str, np.ndarray]:
        """Return what each column, and the errors around a node, add to its log scale (n,), by name."""
        return self.spread.summed(self._spread_columns(), self.around)

    def _finite(self, values: np.ndarray, what: str) -> np.ndarray:
        if not np.isfinite(values).all():
            largest = np.nanmax(np.abs(np.concatenate([self.y, self.residual, self.base])), initial=0.0)
            raise ValueError(
                f"{what} at {(~np.isfinite(values)).sum()} of {len(values)} nodes are not finite: labels, residuals "
                f"and base predictions reach {largest:.1e}; bring y to a smaller scale."
            )
        values.flags.writeable = False
        return values

    def columns(self, width: float) -> dict[str, np.ndarray]:
        """Return the columns (n,) of a table; intervals reach ``width`` standard deviations to both sides."""
        mean, margin = self.mean, width * self.std
        ends = {"lower": mean - margin, "upper": mean + margin}
        return {"prediction": mean, "std": self.std, **ends, "base": self.base, "correction": mean - self.base}

    @property
    def left_out(self) -> np.ndarray:
        """(n,) predictions of known labels from all the others, NaN elsewhere."""
        mean = np.full(len(self.y), np.nan)
        if self.known.any():
            mean[self.known] = self.y[self.known] - self.field_leave_one_out.error
        return mean

    @cached_property
    def leave_one_out(self) -> LeaveOneOut:
        """Error and variance of each known label as predicted from all the others."""
        found = self.field_leave_one_out
        return replace(found, variance=found.variance * self.scale[self.known] ** 2)

    @cached_property
    def field_leave_one_out(self) -> LeaveOneOut:
        """The same by the field, whose variance a learned spread has not scaled."""
        found = self.conditional.leave_one_out(self.residual)
        variance = np.where(np.isfinite(found.variance), found.variance, self.marginal_variance)
        return replace(found, error=self._member_errors(found.error), variance=variance)

    def _member_errors(self, error: np.ndarray) -> np.ndarray:
        """Take, for a label that some networks were not trained on, their own errors: each has a level of its own."""
        if self.members is None or self.out_of_sample is None:
            return error
        total, count = np.zeros_like(error), self.out_of_sample.sum(axis=0)
        for residual, unseen in zip(self.members, self.out_of_sample, strict=True):
            if unseen.any():
                total += np.where(unseen, self.conditional.leave_one_out(self.at_known(residual)).error, 0.0)
        return np.where(count > 0, total / np.maximum(count, 1), error)

    @property
    def left_out_mean(self) -> np.ndarray:
        """(n,) means, at known labels those given all the others."""
        mean = self.mean.copy()
        if self.known.any():
            mean[self.known] = self.y[self.known] - self.field_leave_one_out.error
        return mean

    @property
    def left_out_std(self) -> np.ndarray:
        """(n,) standard deviations, at known labels those given all the others: of the value, without its noise."""
        std, variance = self.std.copy(), self.leave_one_out.variance
        if self.conditional.noise is not None:
            variance = np.maximum(variance - self.conditional.noise[self.known], 0.0)
        std[self.known] = np.sqrt(variance)
        return std

    @cached_property
    def out_of_sample_labels(self) -> np.ndarray:
        """(|L|,) bool: labels that some network was not trained on; all of them where there is none such."""
        if self.out_of_sample is None or not self.out_of_sample.any():
            return np.ones(int(self.known.sum()), bool)
        return np.asarray(self.out_of_sample.any(axis=0))

    @property
    def out_of_sample_error(self) -> np.ndarray:
        """(|L|,) leave-one-out errors, NaN at labels that are not out of sample."""
        return np.where(self.out_of_sample_labels, self.field_leave_one_out.error, np.nan)

    @property
    def expected_error(self) -> np.ndarray:
        """(|L|,) leave-one-out errors, of the size to be expected at unlabelled nodes."""
        return self.error_scale * self.field_leave_one_out.error

    @property
    def scores(self) -> np.ndarray:
        """Absolute leave-one-out errors in standard deviations, at labels out of sample."""
        unseen = self.out_of_sample_labels
        return np.abs(self.expected_error[unseen]) / np.sqrt(self.leave_one_out.variance[unseen])

    @property
    def log_score(self) -> float:
        """Mean log density of labels out of sample, each predicted from all the others."""
        unseen = self.out_of_sample_labels
        std = np.sqrt(self.leave_one_out.variance[unseen])
        return float(np.mean(self.spread.log_density(self.expected_error[unseen] / std) - np.log(std)))

    @cached_property
    def decorrelated(self) -> np.ndarray:
        """(|L|,) residuals decorrelated by the field: white noise of variance 1 if it is right."""
        return self.conditional.decorrelated(self.residual)

    def at_known(self, values: np.ndarray) -> np.ndarray:
        """Return values (|L|,) at the known labels as (n,), NaN elsewhere."""
        full = np.full(len(self.y), np.nan)
        full[self.known] = values
        return full

    def condition_on(
        self, y: np.ndarray, members: np.ndarray | None = None, noise: np.ndarray | None = None
    ) -> Prediction:
        """Return the prediction given further labels.

        Parameters
        ----------
        y : (n,) array
            Labels that came later, NaN elsewhere; they replace earlier ones at the same nodes.
        members : (k, n) array, optional
            Predictions of each network of an ensemble.
        noise : (n,) array, optional
            Variances of the noise of the later labels; None for labels without.
        """
        now = np.where(np.isnan(y), self.y, y)
        known = ~np.isnan(now)
        before = self.conditional.noise
        if noise is not None or before is not None:
            before, noise = (np.zeros(len(y)) if each is None else each for each in (before, noise))
            noise = np.where(np.isnan(y), before, noise)
        conditional = self.conditional.given(known, noise)
        # A base has learned the labels of the fit: there its out-of-fold predictions count, where it has them.
        base = np.where(self.known, self.y - self.residual, self.base)
        shift = conditional.mean_of(now - base)
        unseen = None
        if self.members is not None and self.out_of_sample is not None and members is not None:
            members, unseen = self._members_out_of_fold(base, members)
            members, unseen = (now - members)[:, known], unseen[:, known]
        return replace(
            self,
            y=now,
            base=self.base + shift,
            residual=now - base - shift,
            conditional=conditional,
            members=None if unseen is None else members,
            out_of_sample=unseen,
        )

    def _members_out_of_fold(self, base: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k, n) predictions of the networks as residuals have them, and which of them are of labels not seen."""
        own = self.y[self.known] - self.members
        if (own == base[self.known]).all():  # out-of-fold residuals, shared by all members
            members = np.tile(base, (len(members), 1))
        members, unseen = members.copy(), np.ones(members.shape, bool)
        members[:, self.known] = own
        unseen[:, self.known] = self.out_of_sample
        return members, unseen

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return (count, n) joint draws of all labels, known ones as known; of the values where labels have noise."""
        deviation = self.conditional.sample(count, rng)
        noise = rng.standard_normal((count, int(self.unreached.sum())))
        deviation[:, self.unreached] += np.sqrt(self.marginal_variance) * noise
        return self.mean + (deviation if self.spread.gaussian else self._spread_out(deviation))

    def _spread_out(self, deviation: np.ndarray) -> np.ndarray:
        """Give draws (k, n) of the field the scale and tails of the spread, each node's at the quantiles they are."""
        unit = np.where(self.field_std > 0, self.field_std, 1.0)
        return self.std * self.spread.with_tails(deviation / unit)
