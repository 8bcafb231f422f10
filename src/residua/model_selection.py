"""Splits of the known nodes of a graph, for scikit-learn's cross-validation and for ``residua.comparison``.

A split hides labels, never nodes. Which labels to hide decides what a score tells: single nodes ("random") still have
known neighbours; a ball ("blocked") is a region without labels; a group is a state or a district; and a split that is
matched by distance hides labels so that they are as far from known ones as the nodes are whose labels are missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from residua.arrays import as_floats
from residua.by_id import names_nodes, positions_of, shape_of
from residua.caller import warn
from residua.graph import Graph
from residua.graph.alignment import align
from residua.graph.regions import ball, hops_to
from residua.validation import MIN_LABELS, check_count, check_graph, check_share

Pair = tuple[np.ndarray, np.ndarray]
SPLITS = ("random", "blocked")
MOST = 0.99  # of the unknown nodes have a distance to be matched; where fewer have, a warning says so


def held_out(graph: Graph, known: np.ndarray, split: str, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return the mask (n,) of known labels to hide, at least two, with enough left to learn from.

    Parameters
    ----------
    graph : Graph
        The graph.
    known : (n,) array of bool
        Nodes with a label.
    split : {"random", "blocked"}
        Whether single nodes are hidden, or a connected ball of them.
    share : float
        Share of the known labels to hide.
    rng : numpy.random.Generator
        Where randomness comes from.
    """
    total = int(known.sum())
    count = min(max(round(share * total), 2), total - MIN_LABELS)
    order = rng.permutation(len(known)) if split == "random" else ball(graph, known, count, rng.permutation(len(known)))
    hidden = np.zeros(len(known), bool)
    hidden[order[known[order]][:count]] = True
    return hidden


class NodeSplit(BaseEstimator, ABC):
    """Base of splits of nodes: ``split`` yields positions in X of what to learn from and what to test.

    Parameters
    ----------
    graph : Graph
        The graph.
    n_splits : int
        How many splits.
    share : float
        Share of the known labels that each hides, as near as can be.
    random_state : int
        Seed.
    """

    def __init__(self, graph: Graph, n_splits: int = 5, share: float = 0.25, random_state: int = 0):
        self.graph = graph
        self.n_splits = n_splits
        self.share = share
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return how many splits there are."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Pair]:
        """Yield positions in X (train, test) of each split.

        Parameters
        ----------
        X : ids (k,) or array of shape (n, d)
            Nodes with a label; of a table each row is the node of that place in the graph.
        y : (k,) array, optional
            Their labels; where one is NaN, the node is in neither part.
        groups : None
            Not used; scikit-learn passes it.
        """
        nodes = positions_of(X, self.graph, "X") if names_nodes(X) else np.arange(self.graph.n_nodes)
        if shape_of(X)[:1] != (len(nodes),):
            raise ValueError(f"X has shape {shape_of(X)} but graph has {len(nodes)} nodes; name nodes by id instead.")
        labelled = np.ones(len(nodes), bool) if y is None else ~np.isnan(as_floats(y, "y"))
        known = np.zeros(self.graph.n_nodes, bool)
        known[nodes[labelled]] = True
        for hidden, tested in self.hide(known):
            yield np.flatnonzero(known[nodes] & ~hidden[nodes]), np.flatnonzero(tested[nodes])

    def hide(self, known: np.ndarray) -> Iterator[Pair]:
        """Yield, for each split, masks (n,) of the known nodes to hide and of those among them to test."""
        check_graph(self.graph)
        check_count(self.n_splits, "n_splits", 1)
        check_count(self.random_state, "random_state", 0)
        check_share(self.share, "share")
        total = int(known.sum())
        if total < MIN_LABELS + 2:
            raise ValueError(f"{total} nodes have a label; at least {MIN_LABELS + 2} are needed to hide some of them.")
        for k in range(self.n_splits):
            yield self._hidden(known, np.random.default_rng([self.random_state, k]))

    @abstractmethod
    def _hidden(self, known: np.ndarray, rng: np.random.Generator) -> Pair:
        """Return the mask of known nodes to hide, and of those among them to test."""


class RandomNodes(NodeSplit):
    """Hide single nodes, drawn at random: for labels that are missing at random.

    The parameters are those of ``NodeSplit``.

    Examples
    --------
    >>> import residua
    >>> from residua.model_selection import RandomNodes
    >>> from sklearn.model_selection import cross_val_score
    >>> data = residua.datasets.load_elect80()
    >>> graph = data.graph.with_features(data.X)
    >>> cv = RandomNodes(graph, n_splits=2)
    >>> scores = cross_val_score(residua.GraphRegressor("linear"), graph.nodes, data.y, cv=cv, params={"graph": graph})
    >>> scores.round(1)
    array([0.7, 0.7])
    """

    def _hidden(self, known: np.ndarray, rng: np.random.Generator) -> Pair:
        return (held_out(self.graph, known, "random", self.share, rng),) * 2


class BlockedNodes(NodeSplit):
    """Hide a connected ball of nodes around a random one: for a region without labels.

    The parameters are those of ``NodeSplit``.
    """

    def _hidden(self, known: np.ndarray, rng: np.random.Generator) -> Pair:
        return (held_out(self.graph, known, "blocked", self.share, rng),) * 2


class GroupedNodes(NodeSplit):
    """Hide all nodes of some groups, such as states, drawn at random until enough labels are hidden.

    Parameters
    ----------
    graph : Graph
        The graph.
    groups : (n,) array or Series
        Group of each node, in the order of the graph's nodes or by id.
    n_splits : int
        How many splits.
    share : float
        Share of the known labels that each hides at least.
    random_state : int
        Seed.
    """

    def __init__(self, graph: Graph, groups: Any, n_splits: int = 5, share: float = 0.25, random_state: int = 0):
        super().__init__(graph, n_splits, share, random_state)
        self.groups = groups

    def _hidden(self, known: np.ndarray, rng: np.random.Generator) -> Pair:
        codes, names = pd.factorize(np.asarray(align(self.groups, self.graph.nodes, "groups")))
        if codes.shape != known.shape:
            raise ValueError(
                f"groups has {len(codes)} entries but graph has {len(known)} nodes; give one for each node."
            )
        missing = known & (codes < 0)
        if missing.any():
            raise ValueError(
                f"groups is missing at {missing.sum()} nodes with a label; give these a group of their own."
            )
        order = rng.permutation(np.unique(codes[known]))
        sizes = np.bincount(codes[known], minlength=len(names))[order]
        taken = int(np.searchsorted(np.cumsum(sizes), self.share * known.sum())) + 1
        hidden = known & np.isin(codes, order[:taken])
        if known.sum() - hidden.sum() < MIN_LABELS:
            raise ValueError(
                f"groups: hiding {taken} of {len(order)} groups leaves {known.sum() - hidden.sum()} labels to learn "
                f"from, at least {MIN_LABELS} are needed; use smaller groups or a smaller share."
            )
        return hidden, hidden


class DistanceMatchedNodes(NodeSplit):
    """Hide labels so that they are as many hops from known ones as the nodes are whose labels are missing.

    Distances are drawn from those of the unknown nodes; around random known nodes every label nearer than such a
    distance is hidden. Of what is hidden those are tested that together have the distances of the unknown nodes; the
    others are in neither part. Unknown nodes of components without any label have no distance and are left out, with a
    warning where they are more than one in a hundred.

    The parameters are those of ``NodeSplit``; nodes of the graph that are not in X, or whose y is NaN, are unknown.
    """

    def _hidden(self, known: np.ndarray, rng: np.random.Generator) -> Pair:
        A = self.graph.adjacency()
        wanted = hops_to(A, known)[~known]
        reached = np.isfinite(wanted)
        if not reached.any():
            raise ValueError(
                "every node that a label reaches has one, so there is no distance to match; use RandomNodes."
            )
        if np.mean(reached) < MOST:
            warn(
                f"{(~reached).sum()} unknown nodes lie in components without a label and are left out of the matching."
            )
        wanted = wanted[reached].astype(int)
        centres = rng.permutation(np.flatnonzero(known))
        radii = rng.choice(wanted, len(centres)) - 1

        def within(number: int) -> np.ndarray:
            return known & _balls(A, centres[:number], radii[:number])

        low, high = 1, len(centres)  # of the numbers of balls that hide enough labels, the least
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if within(middle).sum() >= self.share * known.sum() else (middle + 1, high)
        hidden = within(low)
        if known.sum() - hidden.sum() < MIN_LABELS:  # one ball too many, where balls are large
            hidden = within(max(low - 1, 1))
        if known.sum() - hidden.sum() < MIN_LABELS:
            raise ValueError("unknown nodes are farther from labels than known ones can be hidden; use BlockedNodes.")
        return hidden, _matched(hops_to(A, known & ~hidden), hidden, wanted, rng)


def _balls(A: Any, centres: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """The mask (n,) of nodes within so many hops of each centre."""
    reach = np.full(A.shape[0], -1)
    np.maximum.at(reach, centres, radii)
    for left in range(int(radii.max(initial=0)), 0, -1):
        neighbours = A[np.flatnonzero(reach == left)].indices
        reach[neighbours] = np.maximum(reach[neighbours], left - 1)
    return reach >= 0


def _matched(hops: np.ndarray, hidden: np.ndarray, wanted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The mask of hidden nodes to test: drawn so that their distances are distributed as ``wanted``."""
    at = np.flatnonzero(hidden & np.isfinite(hops) & (hops <= wanted.max()))
    distance = hops[at].astype(int)
    there = np.bincount(distance, minlength=wanted.max() + 1)
    asked = np.bincount(wanted, minlength=len(there)) * (there > 0)
    # As many as the rarest distance allows, of those that are more than a few percent of what is wanted.
    common = asked > 0.02 * asked.sum()
    total = np.min(there[common] / asked[common], initial=np.inf)
    quota = np.minimum(np.ceil(total * asked), there).astype(int)
    tested = np.zeros(len(hidden), bool)
    for value in np.flatnonzero(quota):
        tested[rng.permutation(at[distance == value])[: quota[value]]] = True
    return tested
