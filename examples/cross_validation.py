"""Cross-validation over nodes with scikit-learn: hide the labels of a fold, fit, score the hidden ones."""

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import residua


def cross_val_score_nodes(model: BaseEstimator, data: residua.datasets.Dataset, cv: KFold) -> np.ndarray:
    """R2 of each fold. The graph stays whole; only labels are hidden, so the folds are sets of nodes."""
    scores = []
    for _, test in cv.split(data.y):
        y = data.y.copy()
        y[test] = np.nan
        fitted = clone(model).fit(data.X, y, graph=data.graph)
        scores.append(fitted.score(data.X, data.y))  # counts the hidden nodes only
    return np.array(scores)


data = residua.datasets.load_elect80()
cv = KFold(3, shuffle=True, random_state=0)
bases = {
    "linear": "linear",
    "nearest neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(25)),
}
model = residua.GraphRegressor("linear", random_state=0)
print(f"{'base':<20}{'correlation':<13}R2 over {cv.get_n_splits()} folds")
found = {}
for setting in ParameterGrid({"base": list(bases), "correlation": [None, "learned"]}):
    candidate = clone(model).set_params(base=bases[setting["base"]], correlation=setting["correlation"])
    scores = cross_val_score_nodes(candidate, data, cv)
    found[setting["base"], setting["correlation"]] = scores.mean()
    print(f"{setting['base']:<20}{setting['correlation']!s:<13}{scores.mean():.3f} +- {scores.std():.3f}")
print("best:", *max(found, key=found.get))
