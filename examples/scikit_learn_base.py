"""Any scikit-learn regressor can be the base: its out-of-fold residuals are what the neighbours share."""

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import residua

data = residua.datasets.load_elect80()
known = np.random.default_rng(0).random(data.graph.n_nodes) < 0.6
y = np.where(known, data.y, np.nan)

bases = {
    "nearest neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(25)),
    "extra trees": ExtraTreesRegressor(100, min_samples_leaf=3),  # unset random states follow random_state=
}
print(f"{'base':<20}{'plain':>8}{'learned':>9}{'alpha':>9}")
for name, base in bases.items():
    plain = residua.GraphRegressor(base, correlation=None, random_state=0).fit(data.X, y, graph=data.graph)
    model = residua.GraphRegressor(base, correlation="learned", random_state=0).fit(data.X, y, graph=data.graph)
    scores = plain.score(data.X, data.y), model.score(data.X, data.y)
    print(f"{name:<20}{scores[0]:>8.3f}{scores[1]:>9.3f}{model.alpha_['edge']:>9.4f}")
