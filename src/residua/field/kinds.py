"""Which field: the normalised one, or the Laplacian, which is the normalised one of a graph evened by self-loops.

    beta_0 (I + a (D - A)) = beta (I - alpha S),    S = I - (D - A) / c
    alpha = a c / (1 + a c),    beta = beta_0 (1 + a c)

c highest degree, a smoothing. Given its neighbours, a node of degree d has the mean a d / (1 + a d) times theirs; alpha
is that share at the highest degree. Smoothing leaves constants as they are, the normalised field multiples of the root
of the degrees. beta_0 and a are the same on every graph, alpha and beta are those of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from residua.graph.interface import GraphLike
from residua.validation import check_choice

NORMALISED, LAPLACIAN, AUTO = "normalised", "laplacian", "auto"
FIELDS = (NORMALISED, LAPLACIAN)


def check_field(field: Any, *, auto: bool = False) -> None:
    """Refuse what names no field; "auto" is one where there is a choice by leave-one-out."""
    if field == AUTO and not auto:
        raise ValueError(
            'field="auto" is chosen by leave-one-out, in GraphRegressor; give "normalised" or "laplacian".'
        )
    check_choice(field, (*FIELDS, AUTO) if auto else FIELDS, "field")


def field_graph(graph: GraphLike, field: str) -> Any:
    """Return the graph whose normalised adjacency is the S of a field."""
    return graph if field == NORMALISED else graph.evened  # type: ignore[attr-defined]


def highest_degree(graph: GraphLike) -> float:
    """Return c, the highest degree without self-loops."""
    return float(field_graph(graph, LAPLACIAN).degree.max())


def smoothing(alpha: float, degree: float) -> float:
    """Return a of alpha at the highest degree; infinite for alpha = 1."""
    return alpha / (degree * (1 - alpha)) if alpha < 1 else np.inf


def in_words(kind: str, log_scores: Mapping[str, float], a: float | None, ends: tuple[float, float] | None) -> str:
    """Return which field it is, how strongly it smooths, and why it was taken; empty for the usual one, not chosen."""
    words = kind
    if a is not None and np.isfinite(a):
        interval = "" if ends is None else f", 95 % interval [{ends[0]:.4g}, {ends[1]:.4g}]"
        words += f", smoothing a = {a:.4g}{interval}"
    if log_scores:
        scores = ", ".join(f"{name} {score:.4f}" for name, score in log_scores.items())
        return f"{words}; chosen by leave-one-out log score a label: {scores}"
    return "" if kind == NORMALISED else words


def carried_over(alpha: float, beta: float, degree: float, other: float) -> tuple[float, float]:
    """Return alpha and beta of a Laplacian field on another graph, of another highest degree."""
    own, along = beta * (1 - alpha), beta * alpha / degree  # beta_0 and beta_0 a
    there = own + along * other
    if not there > -along * other:
        raise ValueError(
            f"the model learned a negative correlation (alpha {alpha:+.3f}) where no degree is above {degree:.4g}, and "
            f"graph has one of {other:.4g}: the precision matrix would not be positive definite; fit with "
            'field="normalised".'
        )
    return along * other / there, there
