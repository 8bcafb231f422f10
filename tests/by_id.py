"""What is asked of tables with a row for each node, as `test_tables_by_id` and the soak ask it."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

import residua
from residua import Average, Graph, GraphRegressor, NeighbourFeatures, metrics
from residua.comparison import compare
from residua.views import draw_nodes, strip

N = 14


def kinds_of_ids(n):
    """Ids of many kinds, in order."""
    return {
        "text": [f"node {k}" for k in range(n)],
        "codes": [f"{k:05d}" for k in range(1000, 1000 + n)],
        "numbers": [3 * k + 40 for k in range(n)],
        "counted": list(range(n)),
        "tuples": [("abc"[k % 3], k) for k in range(n)],
        "beyond float": [2**53 + k for k in range(n)],
        "decimals": [k + 0.5 for k in range(n)],
        "mixed": [(f"node {k}", k, ("node", k))[k % 3] for k in range(n)],
    }


IDS = kinds_of_ids(N)


@dataclass(frozen=True)
class World:
    """A ring with chords, whose nodes have these ids in this order, and tables of it in the order of the graph."""

    ids: tuple
    seed: int = 3

    @cached_property
    def graph(self):
        n = len(self.ids)
        k = np.arange(n)
        source, target = np.concatenate([k, k[::3]]), np.concatenate([(k + 1) % n, (k[::3] + 5) % n])
        return Graph.from_edges(self.index[source], self.index[target], nodes=self.index)

    @property
    def index(self):
        return pd.Index(list(self.ids), tupleize_cols=False)

    @cached_property
    def tables(self):
        rng, n = np.random.default_rng(self.seed), len(self.ids)
        k, truth = np.arange(n), rng.standard_normal(n).cumsum()
        columns = {
            "y": np.where(k % 4 == 3, np.nan, truth),
            "later": np.where(k == 3, truth, np.nan),
            "truth": truth,
            "mask": k % 4 != 3,
        }
        tables = {name: pd.Series(values, index=self.index) for name, values in columns.items()}
        for name, named in {"X": ["a", "b"], "places": ["longitude", "latitude"]}.items():
            tables[name] = pd.DataFrame(rng.standard_normal((n, 2)), index=self.index, columns=named)
        return tables


def fitted(graph, X, y, base="linear"):
    return GraphRegressor(base, folds=3).fit(X, y, graph=graph)


def arrays(world):
    return [world.tables[name].to_numpy() for name in ("X", "y")]


OTHER = Graph.from_edges(range(9), [*range(1, 9), 0])
OTHER_X, OTHER_Y = np.random.default_rng(0).standard_normal((9, 2)), np.sin(np.arange(9.0))
# What is asked, and the tables that it takes.
ASKED = {
    "fit": (("X", "y"), lambda w, X, y: fitted(w.graph, X, y).predict(return_std=True)),
    "fit without X": (("y",), lambda w, y: fitted(w.graph, None, y, "mean").predict()),
    "fit a regressor": (("X", "y"), lambda w, X, y: fitted(w.graph, X, y, Ridge()).predict()),
    "predict(y=)": (("later",), lambda w, y: fitted(w.graph, *arrays(w)).predict(y=y)),
    "predict another graph": (
        ("X", "later"),
        lambda w, X, y: fitted(OTHER, OTHER_X, OTHER_Y).predict(X, y, graph=w.graph),
    ),
    "sample": (("later",), lambda w, y: fitted(w.graph, *arrays(w)).sample(2, y=y)),
    "intervals": (("later",), lambda w, y: fitted(w.graph, *arrays(w)).predict_interval(y=y)),
    "score": (
        ("X", "truth", "later"),
        lambda w, X, y, known: fitted(w.graph, *arrays(w)).score(X * 2, y, known=known),
    ),
    "score of an average": (("X", "truth"), lambda w, X, y: Average([fitted(w.graph, *arrays(w))] * 2).score(X, y)),
    "score another graph": (
        ("X", "truth", "later"),
        lambda w, X, y, known: fitted(OTHER, OTHER_X, OTHER_Y).score(X, y, known=known, graph=w.graph),
    ),
    "NeighbourFeatures": (("X",), lambda w, X: NeighbourFeatures().fit_transform(X, graph=w.graph)),
    "fit_correlation": (("y",), lambda w, y: residua.fit_correlation(y, w.graph).alpha["edge"]),
    "propagate": (("y",), lambda w, y: residua.propagate(y, w.graph)),
    "morans_i": (("y",), lambda w, y: metrics.morans_i(y, w.graph).statistic),
    "describe": (("mask",), lambda w, mask: w.graph.describe(mask).unlabelled_nodes),
    "compare": (
        ("X", "y"),
        lambda w, X, y: [r.mean("r2") for r in compare(X, y, w.graph, bases=["linear"], splits=1).rows],
    ),
    "strip": (("places", "truth"), lambda w, places, y: colours(strip(places, {"truth": y}, graph=w.graph))),
    "draw_nodes": (("places", "truth"), lambda w, places, y: dots(places, y, w.graph)),
    "plot.map": (
        ("places",),
        lambda w, places: colours(residua.plot.map(fitted(w.graph, *arrays(w)), places, edges=False)),
    ),
    "learning_curve": (("X", "y"), lambda w, X, y: curve(w, X, y)),
}


def colours(figure):
    return np.concatenate([np.asarray(part.get_offsets()) for part in figure.axes[0].collections])


def dots(places, y, graph):
    from matplotlib.figure import Figure

    found = draw_nodes(Figure().subplots(), places, y, graph=graph)
    return np.column_stack([found.get_offsets(), found.get_array()])


def curve(world, X, y):
    model = GraphRegressor("linear")
    ax = residua.plot.learning_curve(model, X, y, graph=world.graph, shares=(0.6, 0.8), repeats=1)
    return [line.get_ydata() for line in ax.lines]


def ask(what, world, tables):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return ASKED[what][1](world, *tables)


def renamed(table, at):
    index = table.index.to_list()
    index[at] = "no such node"
    return table.set_axis(pd.Index(index, tupleize_cols=False)), "'no such node'"


def dropped(table, at):
    return table.iloc[[k for k in range(len(table)) if k != at]], repr(table.index.tolist()[at])


def doubled(table, at):
    return table.iloc[[*range(len(table)), at]], repr(table.index.tolist()[at])


def replaced(table, at):
    after = (at + 1) % len(table)
    return table.iloc[[after if k == at else k for k in range(len(table))]], repr(table.index.tolist()[after])


def of_another_type(table, at):
    kind = str if table.index.dtype.kind == "i" else lambda value: (value,)
    return table.set_axis(pd.Index([kind(value) for value in table.index], tupleize_cols=False)), "none of them"


# What makes a table wrong at one place, and returns it with what an error has to name.
WRONG = (renamed, dropped, doubled, replaced, of_another_type)
