"""Plots for notebooks: the map of a fitted model, its effects, calibration, correlation and learning curve.

Each function returns matplotlib's Figure or Axes. Given no axes, it makes a figure of its own and touches no global
state: the last expression of a notebook cell is shown as it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from scipy.sparse import csgraph
from scipy.stats import norm
from sklearn.base import clone

from residua import metrics
from residua.caller import warn
from residua.field.precision import A_MAX, ALPHA_MAX
from residua.graph.alignment import align
from residua.graph.ids import show
from residua.validation import (
    check_choice,
    check_count,
    check_fitted,
    check_graph,
    check_share,
    check_together,
    check_values,
)
from residua.views import effects as numbers
from residua.views.contents import Contents, layers
from residua.views.figures import BLUE, GREY, INK, strip
from residua.views.page.shapes import Shape, centres, is_geographic, open_polygons, read_shapes
from residua.views.positions import layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from residua.estimator import GraphRegressor
    from residua.graph import Graph

__all__ = ["calibration", "correlation", "effects", "learning_curve", "map"]

SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
MAX_SOURCES = 500  # nodes from which distances are counted
MAX_PANELS = 24  # of effects, unless features are named
ACROSS = 3  # panels side by side


def map(
    model: GraphRegressor,
    positions: Any = None,
    *,
    panels: Sequence[str] | None = None,
    edges: bool = True,
    **options: Any,
) -> Figure:
    """Draw truth, base prediction, residual, correction and final prediction on a map or a drawing of the graph.

    Parameters
    ----------
    model : GraphRegressor
        Fitted model.
    positions : GeoDataFrame, path, array or DataFrame, optional
        A GeoDataFrame, or a map file, with a polygon or point for each node: its index, or one of its columns, has the
        ids. Or positions (n, 2), as in `residua.views.strip`: a DataFrame with columns longitude and latitude makes a
        map of dots. By default a layout of the graph.
    panels : sequence of str, optional
        Some of "truth", "base prediction", "residual", "correction", "final prediction" and "uncertainty"; the
        first five by default. An uncertainty has a picture of its own, since its scale is another.
    edges : bool
        Whether to draw edges between dots; polygons have none.
    **options : dict
        Further arguments of `residua.views.strip`, such as ``width``, ``label`` or ``path``.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import residua
    >>> data = residua.datasets.load_elect80()
    >>> model = residua.GraphRegressor("linear").fit(data.X, data.y, graph=data.graph)
    >>> figure = residua.plot.map(model, data.nodes, label="turnout")
    """
    values = layers(Contents(model))
    chosen = list(values)[:5] if panels is None else list(panels)
    for title in chosen:
        check_choice(title, tuple(values), "panels")
    if "uncertainty" in chosen and len(chosen) > 1:
        raise ValueError('"uncertainty" has a scale of its own; draw it by itself: panels=["uncertainty"].')
    graph, drawn = model.graph_, {title: values[title] for title in chosen}
    if hasattr(positions, "geometry") or isinstance(positions, str | os.PathLike):
        where, shapes, options["geographic"] = _places(positions, graph.nodes)
        return strip(where, drawn, graph=graph if edges and not shapes else None, shapes=shapes or None, **options)
    where = layout(graph) if positions is None else align(positions, graph.nodes, "positions")
    return strip(where, drawn, graph=graph if edges else None, **options)


def _places(given: Any, nodes: np.ndarray) -> tuple[np.ndarray, dict[int, Shape], bool]:
    """Return where the nodes are (n, 2) and their areas, none for points, and whether coordinates are degrees."""
    given = open_polygons(os.fspath(given) if isinstance(given, os.PathLike) else given)
    if hasattr(given, "geometry") and (given.geometry.geom_type == "Point").all():
        xy = align(pd.DataFrame({"x": given.geometry.x, "y": given.geometry.y}), nodes, "positions")
        return xy.to_numpy(), {}, bool(given.crs is not None and given.crs.is_geographic)
    shapes = read_shapes(given, nodes)
    absent = np.setdiff1d(np.arange(len(nodes)), list(shapes))
    if len(absent):
        names = ", ".join(show(node) for node in nodes[absent[:5]])
        warn(f"{len(absent):,} nodes have no polygon and are not drawn: {names}{', ..' if len(absent) > 5 else ''}.")
    geographic = is_geographic(given, shapes)
    middle = centres(shapes, len(nodes))
    middle[absent] = np.nanmean(middle, axis=0)
    return middle, shapes, geographic


def effects(
    model: GraphRegressor, features: str | int | Sequence[str | int] | None = None, *, coverage: float = 0.95
) -> Figure:
    """Draw what each feature adds to the mean of a model of base "splines" or "linear", with bands.

    Each curve is relative to its mean over labelled nodes, whose values of the feature are the ticks at the foot. The
    band covers each point of the curve with the probability ``coverage``, alpha and the smoothness taken as known.

    Parameters
    ----------
    model : GraphRegressor
        Fitted model.
    features : str, int or sequence of them, optional
        Names or positions of features; by default all, or the 24 that matter most where there are more.
    coverage : float
        Of the bands.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import residua
    >>> data = residua.datasets.load_elect80()
    >>> model = residua.GraphRegressor("splines").fit(data.X, data.y, graph=data.graph)
    >>> [ax.get_xlabel() for ax in residua.plot.effects(model).axes]
    ['college', 'homeownership', 'income']
    """
    from matplotlib.figure import Figure

    check_share(coverage, "coverage")
    found = numbers.effects(model, features)
    if features is None and len(found) > MAX_PANELS:
        chosen = np.sort(np.argsort([-np.ptp(effect.value) for effect in found], kind="stable")[:MAX_PANELS])
        found = [found[k] for k in chosen]
    across, down = max(min(ACROSS, len(found)), 1), max(-(-len(found) // ACROSS), 1)
    figure = Figure(figsize=(3.2 * across, 2.6 * down), layout="constrained")
    panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for ax in panels[len(found) :]:
        ax.remove()
    width = norm.ppf((1 + coverage) / 2)
    for k, (ax, effect) in enumerate(zip(panels, found, strict=False)):
        _draw_effect(ax, effect, width)
        ax.set_ylabel("added to the mean" if k % across == 0 else "")
    return figure


def _draw_effect(ax: Axes, effect: numbers.Effect, width: float) -> None:
    """Draw a curve with a band of ``width`` standard deviations to both sides, and ticks where the data are."""
    margin = width * effect.std
    _axes(ax, (0, 0)).axhline(0, color=GREY, lw=1)
    ax.fill_between(effect.x, effect.value - margin, effect.value + margin, color=BLUE, alpha=0.2, lw=0)
    ax.plot(effect.x, effect.value, color=BLUE, lw=2)
    foot = np.zeros(len(effect.ticks))
    ax.plot(effect.ticks, foot, "|", color=INK, alpha=0.4, transform=ax.get_xaxis_transform())
    ax.set_xlabel(effect.name)


def calibration(model: GraphRegressor, ax: Axes | None = None) -> Axes:
    """Draw how often intervals cover the label, leave-one-out, against how often they claim to.

    The band has 95 % of the curves of a model whose intervals are right.

    Parameters
    ----------
    model : GraphRegressor
        Fitted model.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a figure of its own.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import residua
    >>> data = residua.datasets.load_elect80()
    >>> model = residua.GraphRegressor("linear").fit(data.X, data.y, graph=data.graph)
    >>> residua.plot.calibration(model).get_xlabel()
    'intervals claim to cover'
    """
    z = Contents(model).own.scores
    claimed = np.linspace(0.01, 0.99, 99)
    covered = np.searchsorted(np.sort(z), norm.ppf((1 + claimed) / 2), side="right") / len(z)
    chance = norm.ppf(0.975) * np.sqrt(claimed * (1 - claimed) / len(z))
    ax = _axes(ax, (4.2, 4.2))
    ax.fill_between(claimed, claimed - chance, claimed + chance, color=GREY, alpha=0.25, lw=0, label="right, 95 %")
    ax.plot([0, 1], [0, 1], color=GREY, lw=1)
    ax.plot(claimed, covered, color=BLUE, lw=2, label=f"{len(z):,} labels left out")
    labels = {"xlabel": "intervals claim to cover", "ylabel": "intervals cover"}
    return _finished(ax, "upper left", xlim=(0, 1), ylim=(0, 1), aspect="equal", **labels)


def correlation(model: GraphRegressor, ax: Axes | None = None, *, kind: str = "hops", max_hops: int = 6) -> Axes:
    """Draw what neighbours share: the residuals' correlation by distance, or the likelihood of alpha.

    Parameters
    ----------
    model : GraphRegressor
        Fitted model.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a figure of its own.
    kind : "hops" or "likelihood"
        "hops": correlation of residuals at pairs of nodes so many edges apart, before the correction and as
        decorrelated by the model; counted from 500 random nodes on larger graphs. "likelihood": the
        log-likelihood of each alpha, the others as learned, below its maximum; only where alpha was learned by
        a likelihood.
    max_hops : int
        The farthest pairs to count.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import residua
    >>> data = residua.datasets.load_elect80()
    >>> model = residua.GraphRegressor("linear").fit(data.X, data.y, graph=data.graph)
    >>> residua.plot.correlation(model).get_xlabel()
    'edges between two nodes'
    """
    check_fitted(model)
    check_choice(kind, ("hops", "likelihood"), "kind")
    check_count(max_hops, "max_hops", 1)
    return _likelihood(model, ax) if kind == "likelihood" else _hops(model, ax, max_hops)


def _hops(model: GraphRegressor, ax: Axes | None, max_hops: int) -> Axes:
    found = Contents(model)
    ax = _axes(ax, (5.2, 3.6))
    ax.axhline(0, color=GREY, lw=1)
    for values, colour, label in ((found.before, GREY, "before"), (found.after, BLUE, "decorrelated by the model")):
        hops, shared = correlogram(values, found.graph, max_hops, model.field_.random_state)
        ax.plot(hops, shared, "o-", color=colour, lw=2, label=label)
    ticks = np.arange(1, max_hops + 1)
    return _finished(ax, xlabel="edges between two nodes", ylabel="correlation of residuals", xticks=ticks)


def correlogram(values: np.ndarray, graph: Graph, max_hops: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return distances at which there are pairs of known values (n,), and their correlation; NaN is unknown."""
    known = np.flatnonzero(~np.isnan(values))
    x = values - values[known].mean()
    sources = np.sort(np.random.default_rng(seed).choice(known, min(len(known), MAX_SOURCES), replace=False))
    pairs, products = np.zeros((2, max_hops + 1))
    A = graph.adjacency()
    for block in np.array_split(sources, -(-len(sources) // 50)):
        hops = csgraph.dijkstra(A, unweighted=True, indices=block, limit=max_hops)[:, known]
        inside = np.isfinite(hops)
        distance = hops[inside].astype(int)
        pairs += np.bincount(distance, minlength=max_hops + 1)
        products += np.bincount(distance, (x[block, None] * x[known])[inside], minlength=max_hops + 1)
    there = np.flatnonzero(pairs[1:]) + 1
    return there, products[there] / pairs[there] / np.mean(x[known] ** 2)


def _likelihood(model: GraphRegressor, ax: Axes | None, drop: float = 8.0) -> Axes:
    fit = model.correlation_
    if fit is None or fit.source is None:
        raise ValueError('this model has no likelihood of alpha; fit with correlation="learned", or use kind="hops".')
    best = np.arctanh(np.clip(list(fit.alpha.values()), -ALPHA_MAX, ALPHA_MAX))
    top = fit.source.restricted_log_likelihood(best)
    ax = _axes(ax, (5.2, 3.6))
    for t, name in enumerate(fit.alpha):
        near = best[t] + np.r_[0, np.linspace(-1, 2.5, 36)]
        grid = np.sort(np.r_[np.arctanh(np.linspace(-0.995, 0.9995, 61)), near])
        moved = np.tile(best, (len(grid), 1))
        moved[:, t] = np.clip(grid, -A_MAX, A_MAX)
        height = np.array([fit.source.restricted_log_likelihood(a) for a in moved]) - top
        seen = height > -drop
        ax.plot(np.tanh(grid)[seen], height[seen], lw=2, label=f"{name}: {fit.alpha[name]:+.4f}")
    if len(best) == 1:
        ax.axhline(-fit.bartlett_factor * norm.ppf(0.975) ** 2 / 2, color=GREY, lw=1, ls="--", label="95 % interval")
    return _finished(ax, xlabel="alpha", ylabel="log-likelihood below its maximum", ylim=(-drop, 0.5))


def learning_curve(
    model: GraphRegressor,
    X: Any = None,
    y: Any = None,
    *,
    graph: Graph | None = None,
    shares: Sequence[float] = SHARES,
    repeats: int = 3,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw R2 at labels held out against the share of labels given, of the base and with the neighbours.

    The model is fitted ``2 * repeats`` times for each share.

    Parameters
    ----------
    model : GraphRegressor
        Its settings are used. Without X, y and graph, a fitted model's own.
    X : (n, d) array or DataFrame, optional
        Features.
    y : (n,) array, optional
        Labels, NaN where unknown.
    graph : Graph, optional
        Graph of n nodes.
    shares : sequence of float
        Of the known labels, between 0 and 1.
    repeats : int
        Random choices of labels for each share; the band is from the worst to the best.
    random_state : int
        Seed of those choices.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a figure of its own.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import residua
    >>> data = residua.datasets.load_elect80()
    >>> model = residua.GraphRegressor("linear").fit(data.X, data.y, graph=data.graph)
    >>> residua.plot.learning_curve(model, shares=(0.2, 0.6), repeats=1).get_ylabel()
    'R2 at the labels held out'
    """
    check_count(repeats, "repeats", 1)
    if not len(shares) or not all(0 < share < 1 for share in shares):
        raise ValueError(f"shares is {list(shares)}; give shares of the labels between 0 and 1, such as 0.2.")
    if y is None:
        if X is not None or graph is not None:
            raise ValueError("y is None, but X or graph is given; give all three, or none for those of a fitted model.")
        X, y, graph = model.X_, model.y_, model.graph_
    graph = check_graph(graph)
    X, y = check_together(graph, X, y=y)
    y, shares = check_values(y, graph, "y"), sorted(shares)
    known = np.flatnonzero(~np.isnan(y))
    # The same for both models, and a larger share includes the smaller ones.
    orders = [np.random.default_rng([random_state, k]).permutation(known) for k in range(repeats)]
    curves = (("base", None, GREY), ("with the neighbours", model.correlation or "learned", BLUE))
    ax = _axes(ax, (5.2, 3.6))
    for name, setting, colour in curves:
        tried = clone(model).set_params(correlation=setting)
        scores = np.array([[_held_out_r2(tried, X, y, graph, order, share) for order in orders] for share in shares])
        ax.fill_between(shares, scores.min(axis=1), scores.max(axis=1), color=colour, alpha=0.2, lw=0)
        ax.plot(shares, scores.mean(axis=1), "o-", color=colour, lw=2, label=name)
    return _finished(ax, xlabel="share of the labels given", ylabel="R2 at the labels held out", xlim=(0, 1))


def _held_out_r2(model: GraphRegressor, X: Any, y: np.ndarray, graph: Any, order: np.ndarray, share: float) -> float:
    """Return R2 at labels held out, where the model is given the first share of the known ones in this order."""
    given = np.full(len(y), np.nan)
    chosen = order[: max(2, round(share * len(order)))]
    given[chosen] = y[chosen]
    prediction = clone(model).fit(X, given, graph=graph).predict()
    return metrics.r2(np.where(np.isnan(given), y, np.nan), prediction)


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return axes with quiet lines: those given, or those of a figure of its own."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=size, layout="constrained").subplots()
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=INK, labelsize=9)
    ax.grid(color="#e6e6e2", lw=0.7)
    ax.set_axisbelow(True)
    return ax


def _finished(ax: Axes, legend: Literal["upper left"] | None = None, **settings: Any) -> Axes:
    """Return the axes with these settings and a legend, which is at that place."""
    ax.set(**settings)
    ax.legend(frameon=False, loc=legend)
    return ax
