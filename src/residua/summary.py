"""What a fit says of its coefficients and of the correlation, in the units of the data, as a table for people.

    b = M theta,    Cov b = M Cov(theta) M',    M from standardised features to those that were given

theta coefficients of a linear base, of standardised features; by generalised least squares where a correlation is
learned, by least squares where there is none. Their errors take alpha as known: with few labels, some fifty, intervals
of 95 % cover some 91 %. AIC and BIC count coefficients, alphas, beta, and the noise where it is learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from html import escape
from typing import Any, TypeGuard

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from residua.bases.linear import LinearBase
from residua.field.fitted import FittedField
from residua.field.kinds import LAPLACIAN, highest_degree, in_words
from residua.field.spread_words import spread_in_words
from residua.linalg.rows import LOCAL
from residua.validation import check_share

INTERCEPT = "intercept"
KINDS = {True: "learned correlation", False: "no correlation"}
WIDTH = 86


@dataclass(frozen=True)
class Summary:
    """A fitted model as a table: prints as text, shows as HTML in a notebook, and has its numbers as DataFrames.

    Attributes
    ----------
    coefficients : DataFrame
        A row for each term of a linear base, in the units of the data: estimate, std_error, statistic, p_value, lower,
        upper; no row for any other base. NaN where labels do not tell a coefficient from others.
    alpha : DataFrame
        A row for each edge type: estimate, std_error, lower, upper; NaN where it was not learned.
    title : str
        Base and correlation.
    statistic : {"z", "t"}
        Whether tests of coefficients are by the normal distribution, as with a learned correlation, or by Student's.
    coverage : float
        Of the intervals from lower to upper.
    facts : dict of str to float
        nodes, labels, edges, degrees_of_freedom (labels less coefficients of a linear base), log_likelihood,
        restricted_log_likelihood, log_likelihood_mc_error (of both, from random probes), aic, bic, p_value (of no
        correlation), residual_std (of a residual about which nothing is known), std_given_neighbours (of one whose
        neighbours are all known), beta, beta_std_error, noise_variance (learned, of a label of weight 1),
        noise_std_error. NaN where there is no such number.
    methods : dict of str to str
        How numbers were computed.
    notes : tuple of str
        What a reader of the numbers should know.
    effects : DataFrame
        Of splines, a row for each feature: edf (effective degrees of freedom of its curve: 1 is a line), slope (of the
        line through the curve at the labelled nodes, in the units of the data) with std_error, and lowest and highest
        effect at a labelled node, relative to the mean of them all. No row for any other base.
    """

    coefficients: pd.DataFrame
    alpha: pd.DataFrame
    title: str
    statistic: str
    coverage: float
    facts: dict[str, float]
    methods: dict[str, str]
    notes: tuple[str, ...]
    effects: pd.DataFrame = dataclass_field(default_factory=pd.DataFrame)

    def to_frame(self) -> pd.DataFrame:
        """Return coefficients and alphas as one table, alphas as ``alpha[type]``."""
        alpha = self.alpha.rename(index=lambda name: f"alpha[{name}]")
        frame = pd.concat([self.coefficients, alpha]).reindex(columns=self.coefficients.columns)
        return frame.rename_axis("term")

    def to_dict(self) -> dict[str, Any]:
        """Return facts, coefficients and alphas as plain numbers, for JSON."""
        tables = {"coefficients": self.coefficients, "alphas": self.alpha, "effects": self.effects}
        found = {name: {str(k): row for k, row in table.to_dict("index").items()} for name, table in tables.items()}
        return {"statistic": self.statistic, "coverage": self.coverage, **self.facts, **found}

    def __str__(self) -> str:
        lines = [self.title, "=" * WIDTH, *self._facts_text(), *self._tables_text(), *self._words()]
        return "\n".join(line.rstrip() for line in lines)

    def _facts_text(self) -> Iterator[str]:
        cells = list(self.fact_cells())
        half = (len(cells) + 1) // 2
        for k in range(half):
            pairs = [cells[k], *cells[half + k : half + k + 1]]
            yield "    ".join(f"{name:<24}{text:>17}" for name, text in pairs)

    def _tables_text(self) -> Iterator[str]:
        names = [*self.coefficients.index, *(f"alpha[{name}]" for name in self.alpha.index)]
        first = min(max([len(str(name)) for name in names], default=0), WIDTH - 61) + 1
        yield "-" * WIDTH
        yield f"{'':<{first}}" + "".join(f"{head:>{width}}" for head, width in zip(self.heads, WIDTHS, strict=True))
        for k, (name, cells) in enumerate(self.rows()):
            if k == len(self.coefficients) and k:
                yield "-" * WIDTH
            yield f"{name[: first - 1]:<{first}}" + "".join(f"{c:>{w}}" for c, w in zip(cells, WIDTHS, strict=True))
        if len(self.effects):
            names = [str(name) for name in self.effects.index]
            first = min(max(map(len, names)), WIDTH - 61) + 1
            yield "-" * WIDTH
            yield f"{'':<{first}}" + "".join(f"{head:>12}" for head in EFFECT_HEADS)
            for name, row in zip(names, self.effects.itertuples(index=False), strict=True):
                yield f"{name[: first - 1]:<{first}}" + "".join(f"{number(value):>12}" for value in row)
        yield "=" * WIDTH

    def _words(self) -> Iterator[str]:
        yield from (f"{what}: {how}" for what, how in self.methods.items())
        yield from (f"note: {text}" for text in self.notes)

    @property
    def heads(self) -> list[str]:
        """Heads of the columns of the table."""
        outside = (1 - self.coverage) / 2
        return [
            *("coef", "std err", self.statistic, f"P>|{self.statistic}|"),
            *(f"[{outside:.3g}", f"{1 - outside:.3g}]"),
        ]

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the rows of the table, in words: a name and six cells."""
        columns = ("estimate", "std_error", "statistic", "p_value", "lower", "upper")
        for name, row in self.to_frame().iterrows():
            estimate, error, statistic, p, low, high = (float(row[column]) for column in columns)
            cells = [number(estimate), number(error), f"{statistic:.2f}" if np.isfinite(statistic) else ""]
            yield str(name), [*cells, p_text(p), number(low), number(high)]

    def fact_cells(self) -> Iterator[tuple[str, str]]:
        """Yield facts in words: a name and a number."""
        facts = self.facts
        yield "Labels", f"{facts['labels']:,.0f}"
        yield "Nodes", f"{facts['nodes']:,.0f}"
        yield "Edges", f"{facts['edges']:,.0f}"
        if np.isfinite(facts["degrees_of_freedom"]):
            yield "Degrees of freedom", f"{facts['degrees_of_freedom']:,.0f}"
        if np.isfinite(facts["effective_degrees_of_freedom"]):
            yield "Edf of the mean", f"{facts['effective_degrees_of_freedom']:,.1f}"
        yield "Residual std", number(facts["residual_std"])
        yield "  given neighbours", number(facts["std_given_neighbours"])
        if np.isfinite(facts["noise_variance"]):
            yield "Noise variance", number(facts["noise_variance"])
        for name, key in (
            ("Log-likelihood", "log_likelihood"),
            ("  restricted (REML)", "restricted_log_likelihood"),
            ("AIC", "aic"),
            ("BIC", "bic"),
        ):
            if np.isfinite(facts[key]):
                yield name, f"{facts[key]:,.2f}"
        if facts["log_likelihood_mc_error"] > 0:
            yield "  error by probes", f"{facts['log_likelihood_mc_error']:.2g}"
        if np.isfinite(facts["p_value"]):
            yield "Test of no correlation", f"p {p_text(facts['p_value'], equals='= ')}"

    def _repr_html_(self) -> str:
        right, head = ' style="text-align:right"', "".join(f"<th>{escape(text)}</th>" for text in ("", *self.heads))
        body = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td{right}>{escape(cell)}</td>' for cell in cells)}</tr>"
            for name, cells in self.rows()
        )
        facts = "".join(
            f"<tr><th>{escape(name.strip())}</th><td{right}>{escape(text)}</td></tr>"
            for name, text in self.fact_cells()
        )
        words = "".join(f"<div>{escape(text)}</div>" for text in self._words())
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        if len(self.effects):
            table += self.effects.set_axis(list(EFFECT_HEADS), axis=1).map(number).to_html(border=0, index_names=False)
        return (
            f"<div><b>{escape(self.title)}</b><table><tbody>{facts}</tbody></table>{table}<small>{words}</small></div>"
        )


WIDTHS = (12, 11, 9, 9, 12, 12)
EFFECT_HEADS = ("edf", "slope", "std err", "lowest", "highest")


def number(value: float) -> str:
    """Return four digits, six of what is next to 1, as an alpha may be; nothing for a number that is not there."""
    if np.isnan(value):
        return ""
    return f"{value:.6g}" if 0.999 < abs(value) < 1 else f"{value:.4g}"


def p_text(p: float, equals: str = "") -> str:
    """Return a p-value with three decimals; nothing for one that is not there."""
    if np.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{equals}{p:.3f}"


def summarise(field: FittedField, coverage: float = 0.95) -> Summary:
    """Return the summary of a fit.

    Parameters
    ----------
    field : FittedField
        All that the fit knows.
    coverage : float
        Of the intervals.
    """
    check_share(coverage, "coverage")
    fit, notes = field.correlation, []
    table, rank = _coefficients(field, coverage)
    unclear = [str(name) for name in table.index[table["std_error"].isna()]]
    if field.propagated and len(table):
        notes.append("coefficients are those of least squares, which does not know of the correlation: no errors.")
    elif unclear:
        notes.append(f"labels do not tell from other terms: {', '.join(unclear)}.")
    if isinstance(field.base, LinearBase) and not _plain(field.base):
        notes.append("bends have a prior, so no AIC or BIC; residua.plot.effects draws the effect of each feature.")
    effects, freedom = _effects(field)
    if fit is not None and fit.note:
        notes.append(fit.note)
    ends = fit.smoothing_interval() if fit is not None and fit.smoothing is not None else None
    said = {"field": in_words(field.kind, field.log_scores, field.smoothing, ends), "spread": spread_in_words(field)}
    kind = "propagated residuals" if field.propagated else KINDS[fit is not None]
    return Summary(
        coefficients=table,
        alpha=_alpha(field, coverage),
        title=f"{field.base.name} base, {kind}",
        statistic="t" if fit is None else "z",
        coverage=coverage,
        facts=_facts(field, rank) | {"effective_degrees_of_freedom": freedom},
        methods={name: text for name, text in said.items() if text} | ({} if fit is None else dict(fit.methods)),
        notes=tuple(notes),
        effects=effects,
    )


def _effects(field: FittedField) -> tuple[pd.DataFrame, float]:
    """Return what the curve of each feature adds to the mean, and the effective degrees of freedom of the mean.

    edf of a coefficient: 1 - beta Var(theta_k) / tau_k, how much of its prior variance the labels take away.
    """
    columns = ["edf", "slope", "std_error", "lowest", "highest"]
    base = field.base
    if not isinstance(base, LinearBase) or _plain(base) or base.prior_variance is None:
        return pd.DataFrame(columns=columns, dtype=float).rename_axis("feature"), np.nan
    covariance, tau = coefficient_covariance(field), base.prior_variance
    with np.errstate(divide="ignore", invalid="ignore"):
        taken = 1 - field.beta * covariance.diagonal() / tau
    X = field.X[field.labelled]
    Z = base.design(X)
    there = np.square(Z - Z.mean(axis=0)).sum(axis=0) > 0
    there[0] = True
    edf = np.where(np.isinf(tau), there.astype(float), np.where(tau > 0, taken, 0.0))
    edf[np.isnan(covariance.diagonal())] = np.nan
    Z -= Z.mean(axis=0)
    rows = []
    for j in range(field.n_features):
        own = base.features == j
        effect, x = Z[:, own] @ base.coefficients[own], X[:, j] - X[:, j].mean()
        size = x @ x
        lever = Z[:, own].T @ x / size if size > 0 else np.full(own.sum(), np.nan)
        error = np.sqrt(max(lever @ covariance[np.ix_(own, own)] @ lever, 0.0)) if size > 0 else np.nan
        rows.append((edf[own].sum(), lever @ base.coefficients[own], error, effect.min(), effect.max()))
    index = pd.Index(feature_names(field), name="feature")
    return pd.DataFrame(rows, columns=columns, index=index, dtype=float), float(edf.sum())


def coefficient_covariance(field: FittedField) -> np.ndarray:
    """Return the covariance of coefficients; NaN where they were not fitted with the correlation."""
    if field.correlation is not None:
        return field.correlation.coefficient_covariance
    found, d = field.prediction.conditional.coefficients, len(field.base.coefficients)
    return np.full((d, d), np.nan) if found is None else found.covariance


def feature_names(field: FittedField) -> list[str]:
    """Return the names of the features, x0, x1, .. where they have none."""
    names = field.feature_names if field.feature_names is not None else [f"x{k}" for k in range(field.n_features)]
    return [str(name) for name in names]


def _coefficients(field: FittedField, coverage: float) -> tuple[pd.DataFrame, int]:
    """Return the table of coefficients, and the rank of the design at the labels."""
    columns = ["estimate", "std_error", "statistic", "p_value", "lower", "upper"]
    if not _plain(field.base) or not len(field.base.coefficients):
        return pd.DataFrame(columns=columns, dtype=float).rename_axis("term"), 0
    Z = field.base.design(field.X)[field.labelled]
    _, T = LOCAL.column_basis(Z)
    M = field.base.data_units()
    # Rows of B for the covariance B B': of rounding no variance is negative.
    B = M @ (_root(field.correlation.coefficient_covariance) if field.correlation else T / np.sqrt(field.beta))
    error = np.sqrt((B**2).sum(axis=1))
    error[~_estimable(Z, T) | field.propagated] = np.nan
    estimate, freedom = M @ field.base.coefficients, len(Z) - T.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        score = estimate / error
    tail = (1 - coverage) / 2
    normal = field.correlation is not None
    p = 2 * (ndtr(-np.abs(score)) if normal else stdtr(freedom, -np.abs(score)))
    width = -(ndtri(tail) if normal else stdtrit(freedom, tail)) * error
    index = pd.Index([INTERCEPT, *feature_names(field)][: len(estimate)], name="term")
    values = zip(columns, (estimate, error, score, p, estimate - width, estimate + width), strict=True)
    return pd.DataFrame(dict(values), index=index), T.shape[1]


def _plain(base: object) -> TypeGuard[LinearBase]:
    """Return whether the mean is linear in coefficients without a prior; those of splines are drawn, not listed."""
    return isinstance(base, LinearBase) and not base.groups.any()


def _root(covariance: np.ndarray) -> np.ndarray:
    """A matrix B with ``B B' = covariance``."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _estimable(Z: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Which coefficients of the columns of Z (n, d) the rows of Z determine; ``Z T`` is orthonormal.

    The intercept is determined in the units of the data only if all others are.
    """
    norms = np.sqrt((Z**2).sum(axis=0))
    V = np.linalg.qr(T * norms[:, None])[0]
    estimable = (V**2).sum(axis=1) > 1 - 1e-8
    estimable[0] &= bool(estimable[1:].all())
    return estimable


def _alpha(field: FittedField, coverage: float) -> pd.DataFrame:
    fit, names = field.correlation, list(field.alpha)
    ends = fit.interval(coverage) if fit is not None else dict.fromkeys(names, (np.nan, np.nan))
    error = [field.alpha_stderr[name] if fit is not None else np.nan for name in names]
    lower, upper = ([ends[name][k] for name in names] for k in (0, 1))
    values = {"estimate": list(field.alpha.values()), "std_error": error, "lower": lower, "upper": upper}
    return pd.DataFrame(values, index=pd.Index(names, name="type"), dtype=float)


def _std_given_neighbours(field: FittedField) -> float:
    """Return that of a residual whose neighbours are all known; for a Laplacian, at the median degree."""
    a, degree = field.smoothing, highest_degree(field.graph) if field.kind == LAPLACIAN else 0.0
    if a is None or not np.isfinite(a):
        return float(1 / np.sqrt(field.beta))
    median = degree - np.median(field.field_graph.adjacency().diagonal())
    return float(np.sqrt((1 + a * degree) / (1 + a * median) / field.beta))


def _facts(field: FittedField, rank: int) -> dict[str, float]:
    fit, n = field.correlation, int(field.labelled.sum())
    linear = _plain(field.base)
    restricted = aic = bic = likelihood = np.nan
    if fit is not None:
        likelihood, restricted = fit.log_likelihood, fit.restricted_log_likelihood
    elif linear and not field.propagated:
        q = float(field.outcome.residual @ field.outcome.residual)
        likelihood = -n / 2 * (np.log(2 * np.pi * q / n) + 1)
    if linear and np.isfinite(likelihood):
        count = rank + 1 + (0 if fit is None else len(field.alpha) + (fit.noise_variance is not None))
        aic, bic = 2 * count - 2 * likelihood, count * np.log(n) - 2 * likelihood
    return {
        "nodes": field.graph.n_nodes,
        "labels": n,
        "edges": field.graph.n_edges,
        "degrees_of_freedom": n - rank if linear else np.nan,
        "log_likelihood": likelihood,
        "restricted_log_likelihood": restricted,
        "log_likelihood_mc_error": np.nan if fit is None else fit.log_likelihood_mc_error,
        "aic": aic,
        "bic": float(bic),
        "p_value": np.nan if fit is None else fit.p_value,
        "residual_std": float(np.sqrt(field.marginal_variance)),
        "std_given_neighbours": _std_given_neighbours(field),
        "beta": field.beta,
        "beta_std_error": np.nan if fit is None else fit.beta_stderr,
        "noise_variance": np.nan if fit is None or fit.noise_variance is None else fit.noise_variance,
        "noise_std_error": np.nan if fit is None or fit.noise_stderr is None else fit.noise_stderr,
    }
