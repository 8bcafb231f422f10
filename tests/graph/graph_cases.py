"""Small graphs of every kind, each described by its edges, and the ways to build them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from residua.graph import Graph


@dataclass(frozen=True)
class Case:
    """A small graph, edge by edge: (source, target, weight, type)."""

    nodes: list
    edges: list

    @property
    def types(self):
        return list(dict.fromkeys(t for *_, t in self.edges))

    def columns(self):
        return {name: [edge[k] for edge in self.edges] for k, name in enumerate(["source", "target", "weight", "type"])}

    def dense(self, type):
        A = np.zeros((len(self.nodes), len(self.nodes)))
        for u, v, w, t in self.edges:
            i, j = self.nodes.index(u), self.nodes.index(v)
            A[i, j] = A[j, i] = w if t == type else A[i, j]
        return A


def one_type(nodes, *edges):
    return Case(list(nodes), [(u, v, 1.0, "edge") for u, v in edges])


CASES = {
    "path": one_type("abcd", "ab", "bc", "cd"),
    "star": one_type(range(5), (0, 1), (0, 2), (3, 0), (0, 4)),
    "isolate": one_type("xyz", "xz"),
    "two components": one_type(range(5), (4, 0), (1, 2), (2, 3)),
    "weighted": Case([7, 3, 5], [(7, 3, 0.25, "edge"), (3, 5, 4.0, "edge")]),
    "self-loops": Case(list("abc"), [("a", "a", 2.0, "edge"), ("a", "b", 1.0, "edge"), ("c", "c", 0.5, "edge")]),
    "tuples": one_type([(0, 0), (0, 1), (1, 1)], ((0, 0), (0, 1)), ((0, 1), (1, 1))),
    "two types": Case(
        list("abcd"),
        [("a", "b", 1.0, "road"), ("a", "b", 3.0, "rail"), ("b", "c", 2.0, "rail"), ("c", "c", 1.0, "road")],
    ),
}
ONE_TYPE = [name for name, case in CASES.items() if case.types == ["edge"]]


def type_argument(case, value):
    return None if case.types == ["edge"] else value


def by_edges(case):
    columns = case.columns()
    return Graph.from_edges(**{**columns, "type": type_argument(case, columns["type"])}, nodes=case.nodes)


def by_pandas(case):
    table = pd.DataFrame(case.columns(), index=range(100, 100 + len(case.edges)))
    return Graph.from_pandas(table, weight="weight", type=type_argument(case, "type"), nodes=case.nodes)


def by_scipy(case):
    matrices = {name: sp.csr_array(case.dense(name)) for name in case.types}
    return Graph.from_scipy(matrices if len(matrices) > 1 else matrices["edge"], nodes=case.nodes)


def by_networkx(case):
    networkx = pytest.importorskip("networkx")
    G = networkx.MultiGraph()
    G.add_nodes_from(case.nodes)
    for u, v, w, t in case.edges:
        G.add_edge(u, v, weight=w, kind=t)
    return Graph.from_networkx(G, type=type_argument(case, "kind"))


BUILDERS = [by_edges, by_pandas, by_scipy, by_networkx]


def dense(graph):
    return graph.adjacency().toarray()


def assert_is(graph, case, nodes=None):
    assert graph.nodes.tolist() == (case.nodes if nodes is None else nodes)
    assert graph.edge_types == tuple(case.types)
    assert graph.n_edges == len(case.edges)
    degree = sum(case.dense(name) for name in case.types).sum(axis=1)
    scale = np.array([d**-0.5 if d else 0.0 for d in degree])
    np.testing.assert_allclose(graph.degree, degree)
    for name in case.types:
        A = case.dense(name)
        np.testing.assert_array_equal(graph.adjacency(name).toarray(), A)
        np.testing.assert_allclose(graph.operators[name].to_scipy().toarray(), scale[:, None] * A * scale)
