"""Two kinds of edges: friends agree, rivals disagree. Strength and sign of both are learned."""

import numpy as np

import residua
from residua.field import Conditional

# Houses on a grid: along a street they are friends, across the street rivals.
side = 28
house = np.arange(side * side).reshape(side, side)
source = np.concatenate([house[:, :-1].ravel(), house[:-1].ravel()])
target = np.concatenate([house[:, 1:].ravel(), house[1:].ravel()])
kind = np.repeat(["friends", "rivals"], side * (side - 1))
graph = residua.Graph.from_edges(source, target, type=kind)
print(graph)

# Draw values with a known correlation (with no label given, a conditional draw is a draw of everything).
rng = np.random.default_rng(2)
truth = {"friends": 0.8, "rivals": -0.8}
values = Conditional(graph, np.zeros(graph.n_nodes, bool), truth).sample(1, rng)[0]
y = np.where(rng.random(graph.n_nodes) < 0.8, values, np.nan)

model = residua.GraphRegressor(base="zero", correlation="learned").fit(None, y, graph=graph)
for name in graph.edge_types:
    print(
        f"alpha[{name}]: true {truth[name]:+.2f}, learned {model.alpha_[name]:+.2f} +- {model.alpha_stderr_[name]:.2f}"
    )
print(f"R2 with learned signs: {model.score(None, values):.3f}")

propagated = residua.GraphRegressor(base="zero", correlation="propagate").fit(None, y, graph=graph)
print(f"R2 if all edges are taken to agree: {propagated.score(None, values):.3f}")
