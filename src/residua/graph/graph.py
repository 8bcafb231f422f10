"""Graphs: nodes in order and, for each edge type t, a normalised adjacency operator.

    S_t = D^-1/2 A_t D^-1/2,   D = diag(sum_t A_t 1)

A_t symmetric weights of type t, never negative; D the total degree. An isolated node has a zero row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from residua.caller import warn
from residua.graph import adjacency, growth
from residua.graph.adjacency import CSR
from residua.graph.alignment import align, refuse_unset_index
from residua.graph.constructors import Constructors
from residua.graph.edge_attributes import entry_attributes
from residua.graph.evened import evened_matrices
from residua.graph.ids import as_ids, find_ids, first, show
from residua.graph.report import GraphReport, as_mask
from residua.linalg import Rows, Sparse, order
from residua.linalg.operator import connected_components
from residua.linalg.rows import LOCAL
from residua.linalg.workspace import Workspace, cached_property


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Constructors, Workspace):
    """An undirected graph, weighted or not, of one or several edge types.

    Build it with ``from_edges``, ``from_pandas``, ``from_scipy``, ``from_networkx``, ``from_pyg``,
    ``from_geopandas`` or ``from_libpysal``. Ids may be anything hashable. Without ``nodes``, integer ids are sorted,
    and other ids keep the order in which they first appear.

    A row of an edge list is an undirected edge. An edge listed in both directions, (a, b) and (b, a), is one
    edge and its weights must agree; rows repeated in the same direction add up. A row of weight zero is no
    edge; a negative or non-finite weight is refused. A self-loop of weight w has ``A_ii = w`` and adds w to
    the degree.

    Attributes
    ----------
    nodes : ndarray of shape (n,)
        Ids, int64 or object.
    operators : dict of str to Sparse
        For each edge type, ``S_t = D^-1/2 A_t D^-1/2``.
    degree : ndarray of shape (n,)
        Total over all edge types.
    features : ndarray or DataFrame of shape (n, d), optional
        Features of the nodes, where ``with_features`` has given the graph some.
    grown : bool
        Whether ``with_nodes`` made this graph of another.
    edge_attr : ndarray of shape (entries, d) or None
        Attributes of the entries of ``adjacency()``, row by row: what ``from_pyg`` found in ``edge_attr``. A module
        that takes ``edge_attr`` is given them; the correlation knows weights only.
    nodes_found : bool
        Whether ids that are no integers are in the order in which edges named them. Rows of a pandas table with the
        default index are not taken to follow that.

    Examples
    --------
    >>> graph = Graph.from_edges(["a", "b"], ["b", "c"], nodes=["a", "b", "c", "d"])
    >>> graph
    Graph(4 nodes, 2 edges)
    >>> graph.adjacency().toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 1., 0.],
           [0., 1., 0., 0.],
           [0., 0., 0., 0.]])
    """

    nodes: np.ndarray
    operators: dict[str, Sparse]
    degree: np.ndarray
    features: Any = None
    grown: bool = False
    edge_attr: np.ndarray | None = None
    nodes_found: bool = False

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], nodes: np.ndarray, edge_types: Sequence[str]) -> Graph:
        """Rebuild from ``graph.arrays()``; checks sizes and bounds, no more.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            What ``arrays`` returned.
        nodes : ndarray of shape (n,)
            Ids.
        edge_types : sequence of str
            Names of the edge types.

        Returns
        -------
        Graph

        Examples
        --------
        >>> graph = Graph.from_edges([0, 1], [1, 2])
        >>> Graph.from_arrays(graph.arrays(), graph.nodes, graph.edge_types)
        Graph(3 nodes, 2 edges)
        """
        matrices = {name: adjacency.read_csr(arrays, k, len(nodes), name) for k, name in enumerate(edge_types)}
        graph, attributes = cls._from_csr(nodes, matrices), arrays.get("edge_attr")
        if attributes is not None and (attributes.ndim != 2 or len(attributes) != graph.adjacency().nnz):
            raise ValueError(f"edge_attr of shape {attributes.shape} does not fit; it is damaged or of another graph.")
        return replace(graph, edge_attr=attributes)

    @classmethod
    def _from_csr(cls, nodes: np.ndarray, matrices: Mapping[str, CSR], found: bool = False) -> Graph:
        degree = np.sum([adjacency.row_sums(A) for A in matrices.values()], axis=0)
        scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
        operators = {name: Sparse(*A, scale) for name, A in matrices.items()}
        return cls(read_only(nodes), operators, read_only(degree), nodes_found=found and nodes.dtype != np.int64)

    def with_edge_attr(self, source: Any, target: Any, edge_attr: Any) -> Graph:
        """Return the graph with attributes of its edges, for modules that take ``edge_attr``.

        Parameters
        ----------
        source, target : array_like of shape (edges,)
            Ids of both ends. A direction that is not listed has the attributes of the other.
        edge_attr : array_like of shape (edges,) or (edges, d)
            Finite numbers.

        Returns
        -------
        Graph

        Examples
        --------
        >>> graph = Graph.from_edges(["a", "b"], ["b", "c"]).with_edge_attr(["a", "b"], ["b", "c"], [[1.0], [2.0]])
        >>> graph.edge_attr.ravel()  # of a-b, b-a, b-c, c-b
        array([1., 1., 2., 2.])
        """
        found = entry_attributes(self.index(source), self.index(target), edge_attr, self.adjacency())
        return replace(self, edge_attr=read_only(found))

    def __repr__(self) -> str:
        types = f" of types {', '.join(self.edge_types)}" if len(self.edge_types) > 1 else ""
        return f"Graph({self.n_nodes} nodes, {self.n_edges} edges{types})"

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @property
    def edge_types(self) -> tuple[str, ...]:
        return tuple(self.operators)

    @property
    def n_edges(self) -> int:
        """Number of undirected edges over all types; a self-loop is one."""
        return sum(self._edges.values())

    @cached_property
    def _edges(self) -> dict[str, int]:
        return {name: (S.nnz + self._self_loops[name]) // 2 for name, S in self.operators.items()}

    @cached_property
    def _self_loops(self) -> dict[str, int]:
        return {name: int(np.count_nonzero(S.adjacency.diagonal())) for name, S in self.operators.items()}

    def adjacency(self, type: str | None = None) -> sp.csr_array:
        """Return the weights of one edge type, or their sum over all, as a copy.

        Parameters
        ----------
        type : str, optional
            An edge type.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n)
        """
        if type is not None and type not in self.operators:
            raise ValueError(f"type is {type!r}; the edge types of this graph are {list(self.edge_types)}.")
        wanted = self.operators.values() if type is None else [self.operators[type]]
        return reduce(add, (S.adjacency.astype(np.float64) for S in wanted))

    @cached_property
    def components(self) -> np.ndarray:
        """Component (n,) of each node over all edge types, numbered in the order of ``nodes``."""
        return read_only(connected_components(self.operators.values(), self.n_nodes))

    @property
    def rows(self) -> Rows:
        """Reductions over the nodes, which are all in this process."""
        return LOCAL

    def reached(self, labelled: np.ndarray) -> np.ndarray:
        """Return the mask (n,) of nodes in a component that has a label."""
        return np.isin(self.components, self.components[labelled])

    def count_components(self, labelled: np.ndarray) -> int:
        """Count the components that have a label."""
        return len(np.unique(self.components[labelled]))

    @cached_property
    def evened(self) -> Graph:
        """The graph whose normalised adjacency is ``I - (D - A) / c``: self-loops give all nodes the highest degree."""
        graph = self._from_csr(self.nodes, evened_matrices(self))
        vars(graph).update(components=self.components, near_order=self.near_order)
        return graph

    @cached_property
    def near_order(self) -> np.ndarray | None:
        """Positions (n,) in an order that keeps neighbours near each other; None where their own is as good.

        Heavy work is done in this order; what goes in and what comes out is in that of ``nodes``.
        """
        most = max(self.operators.values(), key=lambda S: S.nnz)
        if self.n_nodes < order.LARGE:
            return None
        inside = int(np.argmax(self.components == np.bincount(self.components).argmax()))
        found = order.near_order(most, inside)
        return None if found is None else read_only(found)

    @cached_property
    def _lookup(self) -> pd.Index:
        return pd.Index(self.nodes, dtype=self.nodes.dtype, tupleize_cols=False)

    def index(self, ids: Any, name: str = "ids") -> np.ndarray:
        """Return the positions of ids in ``nodes``.

        Parameters
        ----------
        ids : array_like of shape (k,)
            Ids of nodes, in any order.
        name : str, default "ids"
            What an error calls them.

        Returns
        -------
        ndarray of shape (k,)

        Examples
        --------
        >>> Graph.from_edges(["a", "b"], ["b", "c"]).index(["c", "a"])
        array([2, 0])
        """
        wanted = as_ids(ids, name)
        found = find_ids(self._lookup, wanted)
        row = first(found < 0)
        if row is not None:
            unknown = wanted.iloc[row]
            near = [node for node in self.nodes if str(node) == str(unknown)]
            remedy = f"there is {show(near[0])}: give ids of one kind" if len(near) else "see graph.nodes"
            raise ValueError(f"{name} has {show(unknown)} at position {row}, not a node of this graph; {remedy}.")
        return found

    def with_features(self, X: Any) -> Graph:
        """Return the same graph with features of its nodes: models then take ids of nodes where they else take X.

        What scikit-learn cuts into folds are then ids, and every node stays in the graph:
        ``cross_val_score(model, graph.nodes, y, params={"graph": graph})``.

        Parameters
        ----------
        X : (n, d) array, DataFrame or None
            Features of every node in the order of ``nodes``, or a DataFrame indexed by id; None takes them away.

        Returns
        -------
        Graph

        Examples
        --------
        >>> import numpy as np, residua
        >>> data = residua.datasets.load_elect80()
        >>> graph = data.graph.with_features(data.X)
        >>> model = residua.GraphRegressor("linear").fit(graph.nodes[:2000], data.y[:2000], graph=graph)
        >>> model.predict(["01001", "56045"]).shape
        (2,)
        """
        if X is not None:
            refuse_unset_index(X, self, "X")
            X = align(X, self.nodes, "X")
            X = X.copy() if isinstance(X, pd.DataFrame) else read_only(np.array(X))
            if X.ndim != 2 or len(X) != self.n_nodes:
                raise ValueError(f"X has shape {X.shape} but graph has {self.n_nodes} nodes; give a row for each node.")
        return replace(self, features=X)

    def with_nodes(self, nodes: Any = None, edges: Any = None) -> Graph:
        """Return this graph with new nodes, after those that it has, and new edges.

        A model that was fitted on this graph keeps the labels that it knows when it predicts the new one.

        Parameters
        ----------
        nodes : array_like of shape (k,) or DataFrame, optional
            Ids of the new nodes; by default those that ``edges`` names and the graph has not. Where the graph carries
            features: a DataFrame of those of the new nodes, indexed by id.
        edges : DataFrame or pairs of ids, optional
            New edges, of new nodes or old ones: pairs (source, target), or a table with columns source, target and,
            where there are such, weight and type.

        Returns
        -------
        Graph

        Examples
        --------
        >>> path = Graph.from_edges(["a", "b"], ["b", "c"])
        >>> path.with_nodes(edges=[("c", "d"), ("d", "e")]).nodes.tolist()
        ['a', 'b', 'c', 'd', 'e']
        """
        rows = growth.edge_table(edges)
        given = nodes.index.to_flat_index() if isinstance(nodes, pd.DataFrame) else nodes
        ids = growth.all_nodes(self.nodes, given, rows)
        if len(ids) == self.n_nodes and not len(rows):
            raise ValueError("nodes and edges name nothing that is new; give at least one of them.")
        features = growth.grown_features(self.features, nodes, ids) if len(ids) > self.n_nodes else self.features
        graph = self._from_csr(ids, growth.grown_matrices(self, ids, rows))
        if self.edge_attr is not None:
            warn("edge_attr is not kept where a graph grows; set that of all edges anew by with_edge_attr.")
        grown = replace(graph, grown=True, nodes_found=self.nodes_found)
        return grown if features is None else grown.with_features(features)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the adjacency of edge type number k as ``indptr.k``, ``indices.k``; ``weights.k`` unless all are 1.

        Attributes of edges come as ``edge_attr``, where there are some.
        """
        attributes = {} if self.edge_attr is None else {"edge_attr": self.edge_attr}
        return attributes | {
            f"{part}.{k}": array
            for k, S in enumerate(self.operators.values())
            for part, array in zip(CSR._fields, S.arrays, strict=False)
            if array is not None
        }

    def describe(self, labelled: Any = None) -> GraphReport:
        """Count nodes, edges, self-loops, isolates and components.

        Parameters
        ----------
        labelled : array_like of shape (n,), optional
            A boolean mask, or y with NaN where unknown, in order or a Series by id; to count components without a
            label.

        Returns
        -------
        GraphReport
            Prints as a table.

        Examples
        --------
        >>> print(Graph.from_edges([0, 2], [1, 3]).describe(labelled=[True, False, False, False]))
        nodes          4
        edges          2
        weights        all 1
        self-loops     0
        isolates       0
        components     2 (nodes in the largest: 2)
        without label  1 (nodes in them: 2)
        A row is an undirected edge: (a, b) and (b, a) are one edge; rows repeated in one direction add up.
        Zero weight is no edge. A self-loop of weight w adds w to its node's degree.
        """
        sizes = np.bincount(self.components)
        mask = None if labelled is None else as_mask(align(labelled, self.nodes, "labelled"), self.n_nodes)
        return GraphReport(
            n_nodes=self.n_nodes,
            edges=dict(self._edges),
            weighted=any(S.weights is not None for S in self.operators.values()),
            self_loops=sum(self._self_loops.values()),
            isolates=int((self.degree == 0).sum()),
            components=len(sizes),
            largest_component=int(sizes.max()),
            unlabelled_components=None if mask is None else len(sizes) - self.count_components(mask),
            unlabelled_nodes=None if mask is None else int((~self.reached(mask)).sum()),
        )


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def same_graph(a: Graph, b: Graph) -> bool:
    """Return whether two graphs have the same nodes in the same order, and the same edges."""
    if a is b or a.edge_types != b.edge_types:
        return a is b
    ours, theirs = ({"nodes": graph.nodes, **graph.arrays()} for graph in (a, b))
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)
