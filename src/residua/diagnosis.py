"""What a fitted model is worth, by leave-one-out at its training labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from residua import metrics
from residua.field.fitted import FittedField
from residua.field.kinds import NORMALISED, in_words
from residua.field.prediction import Prediction
from residua.field.spread_words import spread_in_words
from residua.graph.regions import remote
from residua.intervals import gaussian_width, jackknife_quantile
from residua.linalg.rows import LOCAL, Rows

LEVELS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Blocks:
    """What labels left out in blocks tell of missing regions, and what it cost.

    Parameters
    ----------
    count : int
        How many blocks were left out, one after the other.
    labels : float
        Labels of a block, on average.
    r2 : float
        Leave-block-out R2 of the corrected predictions: within blocks.
    widths : dict of float
        Width of intervals that rest on blocks, over that of those that rest on single labels, by the share they cover.
    seconds : float
        What it took.
    """

    count: int
    labels: float
    r2: float
    widths: dict[float, float]
    seconds: float = field(compare=False)


@dataclass(frozen=True)
class Diagnosis:
    """Leave-one-out accuracy of base and corrected predictions, and the correlation before and after.

    Parameters
    ----------
    n_labelled : int
        Labels that had no part in the training of what predicts them.
    r2_base : float
        R2 of the base; NaN for one that was trained with the correlation and never tried without it.
    r2_corrected : float
        R2 of the corrected predictions.
    moran_base : MoranResult or None
        Moran's I of the residuals; None where it is not defined: constant errors or no edge among labels.
    moran_corrected : MoranResult or None
        Moran's I of the residuals decorrelated by the model: near 0 if it is right.
    alpha : dict of float
        Correlation along the edges of each type.
    alpha_interval : dict of (float, float)
        Its 95 % interval.
    p_value : float or None
        Of no correlation; None unless it was learned.
    coverages : dict of float
        Shares that intervals of the model (Gaussian, or of a learned spread) cover, by the share they promise.
    warnings : tuple of str
        What a reader of the numbers should know.
    in_sample : bool
        Whether every label had part in the training of a network.
    remote : bool
        Whether unknown nodes are farther from known ones than these are from each other.
    untold : bool
        Whether the labels do not tell alpha, which is then kept at 0.
    blocks : Blocks or None
        Leave-block-out accuracy, where labels are missing by region.
    field : str
        Which field it is, and why, in words; empty for the normalised one where there was no choice.
    spread : str
        Where the model is sure and where not, and on what that depends, in words; empty unless a spread was learned.
    law : {"Gaussian", "Predictive"}
        Which intervals of the model coverages are of: Gaussian ones, or those of a learned spread.
    """

    n_labelled: int
    r2_base: float
    r2_corrected: float
    moran_base: metrics.MoranResult | None
    moran_corrected: metrics.MoranResult | None
    alpha: dict[str, float]
    alpha_interval: dict[str, tuple[float, float]]
    p_value: float | None
    coverages: dict[float, float]
    warnings: tuple[str, ...]
    in_sample: bool
    remote: bool
    untold: bool = False
    blocks: Blocks | None = None
    field: str = ""
    spread: str = ""
    law: str = "Gaussian"

    @property
    def coverage(self) -> float:
        """Share that the 90 % interval of the model covers."""
        return self.coverages[0.9]

    @property
    def off(self) -> tuple[float, ...]:
        """Shares that intervals of the model break by more than chance, and more than if they were a tenth too wide."""
        return tuple(p for p, share in self.coverages.items() if _is_off(p, share, self.n_labelled))

    @property
    def tried(self) -> str:
        """Labels at which R2 was measured, in words."""
        if self.in_sample:
            return "for labels that the network was trained on"
        return "for labels left out of the training" if np.isnan(self.r2_base) else "leave-one-out"

    @property
    def verdict(self) -> str:
        """One sentence on whether the neighbours help."""
        if self.untold:
            score = f"R2 {self.r2_corrected:.3f}, {self.tried}"
            return f"The labels do not tell the correlation, which is kept at 0: {score}."
        if not any(self.alpha.values()) and self.p_value is None:
            left = ""
            if self.moran_base is not None and self.moran_base.p_value < 0.01:
                left = f", though neighbours' residuals are correlated (Moran's I {self.moran_base.statistic:+.2f})"
            score = f"{self.r2_corrected:.3f}, {self.tried}" if self.in_sample else f"{self.r2_base:.3f}"
            return f"No correction was asked for{left}: R2 {score}."
        if self.in_sample or np.isnan(self.r2_base):
            return f"R2 {self.r2_corrected:.3f} with the neighbours, {self.tried}."
        change = f"R2 {self.r2_base:.3f} for the base, {self.r2_corrected:.3f} with them, leave-one-out"
        if self.p_value is not None and self.p_value > 0.05:
            return f"No correlation among neighbours was found (p = {self.p_value:.2g}; {change})."
        effect = "help" if self.r2_corrected - self.r2_base > 0.005 else "do not help"
        return f"The neighbours {effect}: {change}."

    def __str__(self) -> str:
        lines = [self.verdict, ""]
        for t, value in self.alpha.items():
            low, high = self.alpha_interval[t]
            known = np.isfinite([low, high]).all()
            interval = f"95 % interval [{low:+.4f}, {high:+.4f}]" if known else "as training left it"
            lines.append(f"  alpha[{t}] = {value:+.4f}, {interval}")
        if self.field:
            lines.append(f"  field: {self.field}")
        for name, moran in (("before", self.moran_base), ("after", self.moran_corrected)):
            found = "not defined" if moran is None else f"{moran.statistic:+.3f} (z = {moran.z_score:.1f})"
            lines.append(f"  Moran's I of the residuals {name} the correction: {found}")
        if self.blocks is not None:
            found = f"leave-block-out R2 {self.blocks.r2:.3f}, against {self.r2_corrected:.3f} {self.tried}"
            lines.append(f"  Where labels are missing by region: {found}")
        if self.spread:
            lines.append(f"  spread: {self.spread}")
        lines.append(f"  {self.law} 90 % intervals cover {self.coverage:.1%} of {self.n_labelled:,} labels")
        return "\n".join(lines + [f"  note: {text}" for text in self.warnings])


def diagnose(field: FittedField) -> Diagnosis:
    """Return the diagnosis of a fitted field, from errors at labels that had no part in the training."""
    own, labels, fit = field.prediction, field.y[field.labelled], field.correlation
    interval = fit.interval() if fit else {t: (a, a) for t, a in field.alpha.items()}
    ends = fit.smoothing_interval() if fit is not None and fit.smoothing is not None else None
    scores, far, blocks = own.scores, remote(field.graph, field.labelled), _blocks(field)
    covered = {level: float(np.mean(scores <= field.spread.width(level))) for level in LEVELS}
    return Diagnosis(
        n_labelled=len(scores),
        r2_base=r2_of_errors(labels, field.outcome.base_out_of_fold_error),
        r2_corrected=r2_of_errors(labels, own.out_of_sample_error),
        moran_base=_moran(own, field.uncorrected),
        moran_corrected=_moran(own, own.decorrelated),
        alpha=dict(field.alpha),
        alpha_interval=interval,
        p_value=fit.p_value if fit else None,
        coverages=covered,
        warnings=tuple(_notes(field, covered, far, blocks)),
        in_sample=field.in_sample,
        remote=far is not None,
        untold=bool(fit and fit.note),
        blocks=blocks,
        spread=spread_in_words(field),
        law="Gaussian" if field.spread.gaussian else "Predictive",
        field=in_words(field.kind, field.log_scores, field.smoothing, ends),
    )


def _blocks(field: FittedField) -> Blocks | None:
    left_out, single = field.left_out_blocks, field.prediction.scores
    if left_out is None or not left_out.unseen.any():
        return None
    widths = {p: left_out.width(single, p) / jackknife_quantile(single, p) for p in LEVELS}
    r2 = left_out.r2(field.y[field.labelled])
    return Blocks(left_out.count, len(left_out.label) / left_out.count, r2, widths, left_out.seconds)


def r2_of_errors(labels: np.ndarray, error: np.ndarray, rows: Rows = LOCAL) -> float:
    """Return R2 at labels whose error is known, both (k,); NaN where it is not defined."""
    known = np.isfinite(error)
    labels, error = labels[known], error[known]
    count, total = rows.sum(np.array([len(labels), labels.sum()]))
    highest, lowest = rows.max(np.array([labels.max(initial=-np.inf), -labels.min(initial=np.inf)]))
    if count < 2 or highest == -lowest:
        return float("nan")
    deviation = labels - total / count
    unexplained, spread = rows.sum(np.array([error @ error, deviation @ deviation]))
    return float(1 - unexplained / spread)


def _moran(own: Prediction, error: np.ndarray) -> metrics.MoranResult | None:
    try:
        return metrics.morans_i(own.at_known(error), own.graph)
    except ValueError:
        return None


def _is_off(promised: float, covered: float, n: int) -> bool:
    z = gaussian_width(promised)
    tenth = 0.1 * 2 * z * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)  # what a tenth of the width covers
    return bool(abs(covered - promised) > max(3 * np.sqrt(promised * (1 - promised) / n), tenth))


def _cause(covered: dict[float, float], n: int, law: str = "Gaussian") -> str:
    """Why intervals are off: their scale where all are off to one side, else the shape."""
    side = {p: np.sign(share - p) if _is_off(p, share, n) else 0.0 for p, share in covered.items()}
    inner, outer = (sum(v for p, v in side.items() if (p < 0.85) is low) for low in (True, False))
    if inner * outer > 0:
        return f"standard deviations are too {'large' if inner > 0 else 'small'}"
    shape = "longer" if inner > outer else "shorter"
    return f"the residuals have {shape} tails than {'a Gaussian' if law == 'Gaussian' else 'was learned'}"


def _notes(
    field: FittedField, covered: dict[float, float], far: tuple[float, float] | None, blocks: Blocks | None
) -> Iterator[str]:
    n, law = len(field.prediction.scores), "Gaussian" if field.spread.gaussian else "Predictive"
    if field.correlation and field.correlation.note:
        yield field.correlation.note
    if field.in_sample:
        yield (
            "the network was trained on every label, so R2, coverage and intervals are better here than for new "
            'nodes; to hold labels out, use training="joint" or "post-hoc" and Network(validation=...) above 0.'
        )
    off = [f"those of {100 * p:.0f} % cover {share:.1%}" for p, share in covered.items() if _is_off(p, share, n)]
    if off:
        yield (
            f"{law} intervals are off, {', '.join(off)}: {_cause(covered, n, law)}; jackknife intervals, the default, "
            "do not rest on that."
        )
    if far:
        yield from _of_regions(field, far, blocks)
    for t, value in field.alpha.items():
        if value > 0.9999 and field.kind == NORMALISED and not field.propagated:
            yield f"alpha[{t}] is at 1 to four digits: the base is free to shift by a constant on each component."


def _of_regions(field: FittedField, far: tuple[float, float], blocks: Blocks | None) -> Iterator[str]:
    apart = (
        f"{far[0]:.0%} of the unknown nodes have no known neighbour, against {far[1]:.0%} of the known ones: "
        "labels are missing by region"
    )
    if blocks is None:
        yield f"{apart}; intervals of either kind were not tried out there and may be too narrow."
        return
    yield (
        f"{apart}. Intervals therefore rest on {blocks.count} blocks of about {blocks.labels:,.0f} labels, left "
        f"out one after the other: those of 90 % are {blocks.widths[0.9]:.2f} times as wide as from single labels "
        '(left_out="nodes").'
    )
    if field.base.design(field.X[:1]) is None:
        yield (
            f"base {field.base.name} was not fitted anew without these blocks; in a missing region a linear base may "
            "predict better than a flexible one: `residua compare --split blocked` tells."
        )
