"""What a fit found, for a reader who is no statistician: what is predicted, how good, how sure, and what to mind.

typical error = mean of |label - prediction from all other labels|
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from residua.views.contents import COVERAGE, Contents

FEW = 100  # labels: with fewer, all that is learned from them is rough
HELP = 0.005  # of R2, as a diagnosis counts it
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Card:
    """One number with what it is called and what it means."""

    name: str
    value: str
    hint: str


@dataclass(frozen=True)
class Words:
    """The first screen of the report.

    Parameters
    ----------
    contents : Contents
        The numbers.
    """

    contents: Contents

    @cached_property
    def errors(self) -> tuple[float, float]:
        """Typical errors of the base by itself, NaN where it was never tried, and with the neighbours."""
        field, own = self.contents.model.field_, self.contents.own
        return _mean_size(field.outcome.base_out_of_fold_error), _mean_size(own.out_of_sample_error)

    @property
    def asked(self) -> str:
        """Where it is predicted, and from what."""
        graph, model, known = self.contents.graph, self.contents.model, int(self.contents.own.known.sum())
        features = f"{model.n_features_in_:,} feature{'s' * (model.n_features_in_ > 1)} of each node"
        neighbours = f"what is known of its neighbours along {graph.n_edges:,} edges"
        sources = [features] * bool(model.n_features_in_) + [neighbours] * any(model.alpha_.values())
        source = " and from ".join(sources) or "the mean of the known labels"
        if self.contents.left_out:
            return f"It is known at all {known:,} nodes. Each is predicted as if its own were not known, from {source}."
        rest = graph.n_nodes - known
        return f"It is known at {known:,} of {graph.n_nodes:,} nodes and predicted at {rest:,}, from {source}."

    @property
    def found(self) -> str:
        """Whether the neighbours help, in numbers that are errors."""
        diagnosis, (base, corrected) = self.contents.diagnosis, self.errors
        if not np.isfinite(corrected):
            return "How good the predictions are cannot be told: no label was left out of the training."
        miss = f"predictions miss by {about(corrected)} on average"
        if diagnosis.in_sample:
            return f"At labels that the network was trained on, {miss}; elsewhere by more."
        if diagnosis.untold:
            return f"Whether neighbours are alike, these labels do not tell; from the features alone, {miss}."
        if not any(diagnosis.alpha.values()):
            return f"The neighbours have no say; from the features alone, {miss}."
        if not np.isfinite(base):
            return f"With the neighbours, {miss}."
        without = f"{miss}, and by {about(base)} without them"
        unlikely = diagnosis.p_value is None or diagnosis.p_value <= 0.05
        helps = unlikely and diagnosis.r2_corrected - diagnosis.r2_base > HELP
        return f"The neighbours {'help' if helps else 'do not help'}: {without}."

    @property
    def cards(self) -> Iterator[Card]:
        """Yield how good and how sure predictions are."""
        base, corrected = self.errors
        if np.isfinite(corrected):
            hint = "by so much predictions of known labels miss on average"
            if np.isfinite(base):
                hint = f"{about(base)} without the neighbours"
            yield Card("Typical error", about(corrected), hint)
        half = self.contents.std[self.contents.asked] * self.contents.model.interval_width(COVERAGE)
        half = half[np.isfinite(half)]
        if not len(half):
            return
        share = f"{100 * COVERAGE:.0f} %"
        covered = self.contents.covered
        hint = f"half the width of the {share} interval at the middle node"
        if np.isfinite(covered):
            hint = f"{share} interval at the middle node; {100 * covered:.0f} % of known labels are inside theirs"
        yield Card("How sure", f"± {about(float(np.median(half)))}", hint)
        low, high = np.quantile(half, [0.05, 0.95])
        if high > 1.02 * low:
            yield Card(
                "Surest and least sure", f"± {about(low)} … {about(high)}", "one node in twenty is beyond each end"
            )

    @property
    def care(self) -> Iterator[str]:
        """Yield what to be careful with, in plain sentences."""
        diagnosis, own, graph = self.contents.diagnosis, self.contents.own, self.contents.graph
        asked = self.contents.asked
        if diagnosis.in_sample:
            yield "The network has seen every label, so errors at new nodes are larger than those shown here."
        if diagnosis.remote:
            yield "Whole regions have no label. Far from any label a prediction is a guess from the features."
        if diagnosis.n_labelled < FEW:
            yield f"Only {diagnosis.n_labelled:,} labels tell how good predictions are: take the figures as rough."
        isolated = int(((graph.degree == 0) & asked).sum())
        if isolated and any(diagnosis.alpha.values()):
            yield f"{isolated:,} of the nodes have no neighbours; there the features alone speak."
        beyond = int((self.contents.beyond & asked).sum())
        if beyond:
            yield f"{beyond:,} of the nodes have a feature below or above all that was seen at known labels."
        if own.unreached.any():
            lost = int(own.unreached.sum())
            yield f"{lost:,} nodes are joined to no known label, however far; there the features alone speak."


def about(value: float) -> str:
    """Return three digits with thousands separators and a true minus, or a dash."""
    if not np.isfinite(value):
        return "\N{EN DASH}"
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    text = f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"
    if "e" in text:
        text = f"{rounded:.2e}"
    return text.replace("-", MINUS)


def _mean_size(error: np.ndarray) -> float:
    known = np.isfinite(error)
    return float(np.abs(error[known]).mean()) if known.any() else float("nan")
