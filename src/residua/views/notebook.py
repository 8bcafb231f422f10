"""A fitted model as a notebook shows it: its settings, its data and what it learned, from what is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import escape

import numpy as np

from residua.diagnosis import r2_of_errors
from residua.estimator import GraphRegressor
from residua.field.fitted import FittedField
from residua.field.kinds import in_words
from residua.validation import one_line

# Leaving labels out takes a factorisation: a glance at a large model is not worth one.
QUICK = 5_000
MAIN = ("base", "correlation")  # settings that are always shown

STYLE = (
    "border:1px solid color-mix(in srgb, currentColor 25%, transparent);border-radius:8px;padding:.7em 1em;"
    "display:inline-block;font:13px/1.5 system-ui,sans-serif;max-width:100%;box-sizing:border-box"
)


def model_html(model: GraphRegressor) -> str:
    """Return settings, size, labelled share, alpha with its 95 % interval and leave-one-out R2, as escaped HTML.

    Beyond 5,000 nodes the R2 with neighbours is shown only where ``diagnose`` or ``predict`` has computed it.

    Examples
    --------
    >>> import residua
    >>> "not fitted" in model_html(residua.GraphRegressor())
    True
    """
    models = [("", model)] if model.targets_ is None else [(f"{name}: ", one) for name, one in model.targets_.items()]
    fitted = [(name, one.field_) for name, one in models if hasattr(one, "field_")]
    found = [(f"{name}{key}", text) for name, field in fitted for key, text in _found(field)]
    rows = [("settings", _settings(model)), *(found or [("state", "not fitted")])]
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top;padding:0 1.2em 0 0;font-weight:400;opacity:.7">'
        f'{escape(name)}</th><td style="text-align:left;padding:0">{escape(text)}</td></tr>'
        for name, text in rows
    )
    heading = f'<b style="font-size:1.1em">{escape(type(model).__name__)}</b>'
    return f'<div style="{STYLE}">{heading}<table style="border:0;margin:.4em 0 0">{cells}</table></div>'


def _settings(model: GraphRegressor) -> str:
    """Return base and correlation, and what else was changed; all others are at their default."""
    usual, given = ({k: repr(v) for k, v in m.get_params(deep=False).items()} for m in (type(model)(), model))
    names = sorted(given, key=lambda name: name not in MAIN)
    return ", ".join(f"{k}={one_line(given[k], 120)}" for k in names if k in MAIN or given[k] != usual[k])


def _found(field: FittedField) -> Iterator[tuple[str, str]]:
    graph, labelled = field.graph, int(field.labelled.sum())
    yield "graph", f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges"
    yield "labels", f"{labelled:,} known ({labelled / graph.n_nodes:.0%}), {graph.n_nodes - labelled:,} predicted"
    # Wald intervals: those of the profile likelihood would ask for more solves.
    fit = field.correlation
    ends = replace(fit, source=None).interval() if fit else {}
    for kind, alpha in field.alpha.items():
        interval = f", 95 % [{ends[kind][0]:+.4f}, {ends[kind][1]:+.4f}]" if kind in ends else ""
        yield f"alpha[{kind}]", f"{alpha:+.4f}{interval}"
    if words := in_words(field.kind, field.log_scores, field.smoothing, None):
        yield "field", words
    yield "leave-one-out R2", _accuracy(field) or "see diagnose()"


def _accuracy(field: FittedField) -> str:
    errors = {"base": field.outcome.base_out_of_fold_error}
    at_hand = field.computed("prediction") and field.prediction.computed("field_leave_one_out")
    if at_hand or field.graph.n_nodes <= QUICK:
        errors["with the neighbours"] = field.prediction.out_of_sample_error
    scores = {name: r2_of_errors(field.y[field.labelled], error) for name, error in errors.items()}
    return ", ".join(f"{r2:.3f} {name}" for name, r2 in scores.items() if np.isfinite(r2))
