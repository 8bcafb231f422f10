"""Train on one graph, then condition on a few labels of another: nothing is fitted anew."""

import numpy as np
import pandas as pd

import residua

# Two maps cut from one: learn west of the Mississippi (longitude -91), predict east of it.
data = residua.datasets.load_elect80()
west = (data.nodes["longitude"] < -91).to_numpy()
A = data.graph.adjacency()


def part(inside: np.ndarray) -> tuple[residua.Graph, pd.DataFrame, np.ndarray]:
    """The graph, features and labels of the counties marked True."""
    at = np.flatnonzero(inside)
    graph = residua.Graph.from_scipy(A[at][:, at], nodes=data.graph.nodes[at])
    return graph, data.X.iloc[at], data.y[at]


graph, X, y = part(west)
model = residua.GraphRegressor(base="linear", correlation="learned").fit(X, y, graph=graph)
print(f"trained on {graph}: alpha {model.alpha_['edge']:.3f}")

other, X_other, truth = part(~west)
hidden_order = np.random.default_rng(0).permutation(other.n_nodes)
print(f"predicted on {other}, scored on the counties whose label is not given")
for share in (0.0, 0.1, 0.3, 0.6):
    y_known = truth.copy()
    y_known[hidden_order[int(share * other.n_nodes) :]] = np.nan
    print(f"  {share:>4.0%} of the labels given: R2 {model.score(X_other, truth, known=y_known, graph=other):+.3f}")
