"""Predict turnout in four of ten US counties from their features and from the counties around them."""

import numpy as np

import residua

data = residua.datasets.load_elect80()
print(data)

known = np.random.default_rng(0).random(data.graph.n_nodes) < 0.6
y = np.where(known, data.y, np.nan)  # NaN: unknown

model = residua.GraphRegressor(base="linear", correlation="learned")
model.fit(data.X, y, graph=data.graph)
mean, std = model.predict(return_std=True)
lower, upper = model.predict_interval(coverage=0.9)

base = residua.GraphRegressor(base="linear", correlation=None).fit(data.X, y, graph=data.graph)
print(f"R2 at {(~known).sum():,} unknown counties: {base.score(data.X, data.y):.3f} from features only")
print(f"R2 with their neighbours:        {model.score(data.X, data.y):.3f}, alpha {model.alpha_['edge']:.4f}")

for county in np.flatnonzero(~known)[:3]:
    print(
        f"county {data.graph.nodes[county]}: predicted {mean[county]:.3f} +- {std[county]:.3f}, "
        f"90 % interval {lower[county]:.3f} .. {upper[county]:.3f}, truth {data.y[county]:.3f}"
    )
inside = residua.metrics.coverage(data.y[~known], lower[~known], upper[~known])
print(f"The 90 % intervals cover {inside:.1%} of the unknown counties.")
