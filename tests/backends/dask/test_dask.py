"""The same numbers on four worker processes as on one machine, and nothing moves but halos."""

import json
import os
import warnings

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numba import njit

import residua
from cluster import local_cluster, product
from commands import run
from graphs import CASES, small_world
from residua import distributed as rd
from residua.backends.dask import exchange, noise, output
from residua.backends.dask.tables import as_ids
from residua.cli import scheduler as cli_scheduler
from residua.cli.options import Tables
from residua.field import Conditional
from residua.graph import Graph
from residua.io.tables.graphs import Columns
from residua.linalg import CG, Shifted
from residua.linalg.kernels import rows as kernels
from residua.linalg.lanczos import BlockLanczos, gauss_rule, tridiagonal
from residua.linalg.null_space import UnitEigenvectors
from residua.linalg.sampling import inverse_diagonal
from tables import town, write

CLOSE = {"rtol": 1e-8, "atol": 1e-8}
ALPHA, BETA = 0.8, 2.0


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def case():
    return small_world(n=160, seed=3)


@pytest.fixture(scope="module")
def shared(client, case):
    """The case on four workers."""
    return rd.DistributedGraph.from_graph(client, case.graph)


@pytest.fixture(scope="module")
def halves(client, case):
    """The case in two blocks: fewer messages, the same numbers."""
    return rd.DistributedGraph.from_graph(client, case.graph, blocks=2)


@pytest.fixture(scope="module")
def residual(case):
    """A smooth draw, NaN where unlabelled."""
    rng = np.random.default_rng(1)
    values = np.linalg.solve(np.eye(case.n) - 0.9 * case.S[0], rng.standard_normal(case.n))
    return np.where(case.labelled, values, np.nan)


def columns(n, k=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, k))


# Products and halos


def test_a_product_equals_that_of_one_machine(shared, case):
    V = columns(case.n)
    np.testing.assert_allclose(product(shared, V), case.terms[0] @ V, atol=1e-13)


def test_a_product_moves_the_halo_and_no_more(client):
    """On a ring in four blocks every block needs one row of each of its two neighbours."""
    n = 400
    ring = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    graph = rd.DistributedGraph.from_graph(client, ring)
    expected = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    assert np.array_equal(graph.S.halo, expected)
    assert graph.S.moved_rows == 8
    moved, _ = graph.gang(_pieces_of_a_product, graph.vector(columns(n)))
    assert moved == [[(1, 3)] * 2] * 4  # what members send is what the plan says


def _pieces_of_a_product(graph, V):
    sent, swap = [], graph.rows.swap
    graph.rows.swap = lambda pieces, senders: sent.extend(p.shape for p in pieces.values()) or swap(pieces, senders)
    graph.S @ V
    return graph.rows.gather(sent), {}


def test_the_halo_is_the_rows_of_other_blocks_with_a_neighbour_in_this_one(shared, case):
    bounds = np.concatenate([[0], np.cumsum(shared.S.sizes)])
    owner = np.searchsorted(bounds, np.arange(case.n), side="right") - 1
    A = case.graph.adjacency().toarray() > 0
    for b in range(4):
        for c in range(4):
            rows = A[np.ix_(owner == b, owner == c)].any(axis=0).sum() if b != c else 0
            assert shared.S.halo[b, c] == rows


def test_the_halo_of_a_submatrix_shrinks_with_it(shared, case):
    U = case.U
    V = columns(case.n)
    halo, found = shared.gang(_submatrix_times, shared.vector(V), shared.vector(case.labelled.astype(float)))
    np.testing.assert_allclose(found["product"].to_numpy()[U], case.S[0][np.ix_(U, U)] @ V[U], atol=1e-13)
    bounds = np.concatenate([[0], np.cumsum(shared.S.sizes)])
    owner = np.searchsorted(bounds, U, side="right") - 1
    A = case.S[0][np.ix_(U, U)] != 0
    wanted = [[A[np.ix_(owner == b, owner == c)].any(axis=0).sum() for c in range(4) if c != b] for b in range(4)]
    assert halo == [[rows for rows in row if rows] for row in wanted]


def _submatrix_times(graph, V, labelled):
    U = np.flatnonzero(labelled == 0)
    part = graph.S.submatrix(U)
    out = np.zeros_like(V)
    out[U] = part @ V[U]
    return graph.rows.gather(part.halo), {"product": out}


# The solvers of one machine on a block of rows


def test_lanczos_takes_the_same_steps_as_on_one_machine(shared, case):
    Z = columns(case.n, 4)
    found, _ = shared.gang(_tridiagonal, shared.vector(Z), steps=9)
    for ours, theirs in zip(found, tridiagonal(case.terms[0], Z, 9), strict=True):
        np.testing.assert_allclose(ours, theirs, **CLOSE)


def _tridiagonal(graph, Z, steps):
    return tridiagonal(graph.S, Z, steps), {}


def test_lanczos_of_an_exhausted_space_is_exact(client):
    star = CASES["star"].graph
    graph = rd.DistributedGraph.from_graph(client, star, blocks=3)
    Z = columns(star.n_nodes, 2)
    rule = gauss_rule(*graph.gang(_tridiagonal, graph.vector(Z), steps=7)[0])
    S = star.operators["edge"].dense()
    values, vectors = np.linalg.eigh(S)
    expected = ((vectors.T @ Z) ** 2 * np.exp(values)[:, None]).sum(axis=0)
    np.testing.assert_allclose(rule.apply(np.exp), expected, rtol=1e-10)


def test_block_lanczos_gives_the_matrix_function_of_dense_algebra(halves, case):
    B = columns(case.n, 3)
    B[:, 2] = B[:, 0] - 2 * B[:, 1]  # dependent
    rule, _ = halves.gang(_block_quadrature, halves.vector(B))
    inverse = np.linalg.inv(np.eye(case.n) - ALPHA * case.S[0])
    np.testing.assert_allclose(rule.apply(lambda x: 1 / (1 - ALPHA * x)), B.T @ inverse @ B, rtol=1e-9, atol=1e-8)


def _block_quadrature(graph, B):
    krylov = BlockLanczos(graph.S, B)
    krylov.more_steps(12)
    return krylov.more_steps(12).quadrature(), {}


@pytest.mark.parametrize("alpha", [-0.9, 0.5, 0.999])
def test_cg_solves_all_columns(halves, case, alpha):
    B = columns(case.n, 3)
    B[:, 1] = 0
    residual, found = halves.gang(_solve, halves.vector(B), alpha=alpha)
    expected = np.linalg.solve(np.eye(case.n) - alpha * case.S[0], B)
    np.testing.assert_allclose(found["X"].to_numpy(), expected, rtol=1e-7, atol=1e-7)
    assert residual.max() <= 1e-9


def _solve(graph, B, alpha):
    found = CG().solve(Shifted(graph.S, alpha), B)
    return found.residual, {"X": found.X}


def test_probes_are_those_of_one_machine(shared, case):
    strategy = residua.Lanczos(random_state=5)
    _, found = shared.gang(_signs, strategy=strategy)
    assert np.array_equal(found["signs"].to_numpy(), strategy.signs(case.terms[0], 2, 6))


def _signs(graph, strategy):
    return None, {"signs": strategy.signs(graph.S, 2, 6)}


def test_moments_are_those_of_one_machine(shared, case):
    found, _ = shared.gang(_moments)
    np.testing.assert_allclose(found, case.terms[0].power_moments(), rtol=1e-11)


def _moments(graph):
    return graph.S.power_moments(), {}


@pytest.mark.parametrize("name", ["two components", "isolate", "component without label"])
def test_components_and_their_eigenvectors_are_those_of_one_machine(client, name):
    case = CASES[name]
    graph = rd.DistributedGraph.from_graph(client, case.graph, blocks=3)
    Z = columns(case.n)
    (count, labelled), found = graph.gang(_components, graph.vector(Z), graph.vector(case.labelled.astype(float)))
    theirs = UnitEigenvectors(case.terms[0])
    assert count == theirs.count
    assert labelled == len(np.unique(case.graph.components[case.labelled]))
    np.testing.assert_allclose(found["projected"].to_numpy(), theirs.project_out(Z), atol=1e-12)
    has = np.isin(case.graph.components, case.graph.components[case.labelled])
    assert np.array_equal(found["reached"].to_numpy(), has)
    sizes = np.bincount(case.graph.components)[case.graph.components]
    assert np.array_equal(found["sizes"].to_numpy(), sizes)


def _components(graph, Z, y):
    constants, labelled = UnitEigenvectors(graph.S), y > 0
    sizes = graph.S.component_sums(np.ones(len(y)))
    arrays = {"projected": constants.project_out(Z), "reached": graph.reached(labelled), "sizes": sizes}
    return (constants.count, graph.count_components(labelled)), arrays


# The model


def same_fit(ours, theirs):
    assert ours.alpha["edge"] == pytest.approx(theirs.alpha["edge"], rel=1e-8, abs=1e-8)
    assert ours.alpha_stderr["edge"] == pytest.approx(theirs.alpha_stderr["edge"], rel=1e-5)
    assert ours.beta == pytest.approx(theirs.beta, rel=1e-8)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-8)
    np.testing.assert_allclose(ours.coefficients, theirs.coefficients, **CLOSE)


def test_the_fit_is_that_of_one_machine(client, shared, case, residual):
    strategy = residua.Lanczos(probes=6, steps=12, random_state=2)
    ours = rd.fit_correlation(client, residual, shared, logdet=strategy)
    theirs = residua.fit_correlation(residual, case.graph, logdet=strategy)
    same_fit(ours, theirs)
    np.testing.assert_allclose(ours.interval()["edge"], theirs.interval()["edge"], rtol=1e-6)


def test_the_fit_leaves_out_components_without_a_label(client):
    one, other = small_world(n=60, seed=1), small_world(n=40, seed=2)
    ends = [np.concatenate([a, b + 60]) for a, b in ((one.source, other.source), (one.target, other.target))]
    graph = Graph.from_edges(*ends, nodes=np.arange(100))
    r = np.full(100, np.nan)
    r[np.flatnonzero(one.labelled)] = np.sin(np.flatnonzero(one.labelled) / 9)
    strategy = residua.Lanczos(probes=4, steps=10)
    halves = rd.DistributedGraph.from_graph(client, graph, blocks=2)
    ours = rd.fit_correlation(client, r, halves, logdet=strategy)
    same_fit(ours, residua.fit_correlation(r, graph, logdet=strategy))


def test_mean_and_variance_are_those_of_one_machine_with_the_same_noise(client, halves, case, residual):
    draws, seed = 20, 7
    found = rd.predict(client, residual, halves, ALPHA, BETA, draws=draws, random_state=seed)
    alone = Conditional(case.graph, case.labelled, ALPHA, BETA)
    np.testing.assert_allclose(found.mean.to_numpy(), alone.conditional_mean(residual), **CLOSE)
    X = alone.solver.solve(alone.G_UU, same_noise(alone, seed, draws)).X
    expected = inverse_diagonal(alone.G_UU, [X])
    np.testing.assert_allclose(found.variance.to_numpy()[alone.U], expected.value / BETA, **CLOSE)
    np.testing.assert_allclose(found.variance_stderr.to_numpy()[alone.U], expected.stderr / BETA, **CLOSE)
    assert not found.variance.to_numpy()[case.labelled].any()
    base = columns(case.n, 1, seed=8)[:, 0]
    above = rd.predict(client, residual, halves, ALPHA, BETA, base=halves.vector(base), draws=2)
    np.testing.assert_allclose(above.mean.to_numpy(), base + alone.conditional_mean(residual), **CLOSE)


@njit
def pair_normals(seed, draw, low, high):
    """Normals of pairs low <= high."""
    key = noise._key(seed, draw)
    return np.array([noise._normal(key, low[e], high[e]) for e in range(len(low))])


def same_noise(conditional, random_state, draws):
    """The noise of one machine, fed the normals that the blocks compute."""
    S, nodes = conditional.G_UU.S, conditional.U
    seed = int(np.random.default_rng(random_state).integers(1 << 62))
    row = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    up = S.indices > row
    out = np.zeros((draws, S.shape[0]))
    for k in range(draws):
        edges = pair_normals(seed, k, nodes[row[up]], nodes[S.indices[up]])
        own = pair_normals(seed, k, nodes, nodes)
        kernels.edge_noise(S.indptr, S.indices, S.weights, S.scale, conditional.G_UU.alpha, edges, own, out[k])
    return np.ascontiguousarray(out.T)


def test_hashed_normals_are_standard_and_uncorrelated():
    low = np.arange(200_000)
    one, other = (pair_normals(3, draw, low, low + 1) for draw in (0, 1))
    again = pair_normals(3, 0, low + 1, low + 2)
    error = 1 / np.sqrt(len(low))
    for values in (one, other):
        assert abs(values.mean()) < 4 * error
        assert abs(values.var() - 1) < 4 * np.sqrt(2) * error
        assert abs((values**4).mean() - 3) < 4 * np.sqrt(96) * error
    assert abs((one * other).mean()) < 4 * error
    assert abs((one[1:] * one[:-1]).mean()) < 4 * error
    assert np.array_equal(one[1:], again[:-1])  # a function of its pair alone


def test_leave_one_out_is_that_of_one_machine_with_the_same_draws(halves, case, residual):
    _, found = halves.gang(_leave_one_out, halves.vector(residual))
    alone = Conditional(case.graph, case.labelled, ALPHA, BETA, exact=False, draws=16)
    alone.draws.__dict__["_kept"] = alone.solver.solve(alone.G_UU, same_noise(alone, 4, 16)).X
    expected = alone.leave_one_out(residual)
    np.testing.assert_allclose(found["error"].to_numpy()[case.L], expected.error, **CLOSE)
    np.testing.assert_allclose(found["variance"].to_numpy()[case.L], expected.variance, **CLOSE)


def _leave_one_out(graph, r):
    labelled = ~np.isnan(r)
    found = Conditional(graph, labelled, ALPHA, BETA, draws=16, random_state=4).leave_one_out(r)
    out = {"error": np.full(len(r), np.nan), "variance": np.full(len(r), np.nan)}
    for name, values in out.items():
        values[labelled] = getattr(found, name)
    return None, out


@pytest.mark.parametrize("name", ["labelled hub", "component without label", "weighted", "self-loops"])
def test_propagation_is_that_of_one_machine(client, name):
    case = CASES[name]
    values = np.where(case.labelled, columns(case.n)[:, 0], np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # components without a label
        found = rd.propagate(client, values, rd.DistributedGraph.from_graph(client, case.graph, blocks=2))
        np.testing.assert_allclose(found.to_numpy(), residua.propagate(values, case.graph), **CLOSE)


def test_a_pandas_table_is_matched_by_id_as_on_one_machine(client):
    nodes, edges = town()
    graph = Graph.from_pandas(edges, nodes=nodes["id"])
    dealt = rd.DistributedGraph.from_graph(client, graph)
    values = nodes.set_index("id")["price"]
    shuffled = values.sample(frac=1, random_state=0)
    for given in (shuffled, values, values.reset_index(drop=True), values.to_numpy()):
        np.testing.assert_array_equal(dealt.vector(given).to_numpy(), values)
    frame = nodes.set_index("id")[["size", "price"]]
    np.testing.assert_array_equal(dealt.vector(frame.iloc[::-1], "X").to_numpy(), frame)
    lazy = dd.from_pandas(shuffled, npartitions=2)
    for ask in (lambda: dealt.vector(lazy), lambda: residua.propagate(lazy, graph)):
        with pytest.raises(TypeError, match=r"values is a dask\w* Series; give values.compute\(\), whose rows are"):
            ask()
    with pytest.raises(ValueError, match=r"residual has 1 id that the graph has not, 'x'.*graph.ids.to_numpy"):
        rd.fit_correlation(client, shuffled.rename({"007": "x"}), dealt)
    with pytest.raises(ValueError, match="values has no row for 1 node of the graph: '007'"):
        rd.propagate(client, shuffled.drop("007"), graph)


def test_propagation_names_nodes_that_no_label_reaches(client):
    case = CASES["component without label"]
    values = np.where(case.labelled, 1.0, np.nan)
    graph = rd.DistributedGraph.from_graph(client, case.graph, blocks=2)
    with pytest.warns(UserWarning, match="4 nodes are in components without a label; they get 7"):
        found = rd.propagate(client, values, graph, fallback=7.0)
    assert (found.to_numpy()[4:] == 7).all()


def test_neighbour_features_are_those_of_one_machine(client, halves, case):
    X = columns(case.n, 2)
    expected = residua.NeighbourFeatures(hops=2).fit_transform(X, graph=case.graph)
    np.testing.assert_allclose(rd.neighbour_features(client, X, halves, hops=2).to_numpy(), expected, **CLOSE)


def test_normal_equations_give_least_squares(halves, case):
    X, y = columns(case.n, 3) + 100, columns(case.n, 1, seed=4)[:, 0]
    y[~case.labelled] = np.nan
    base = rd.LinearBase().fit(halves.vector(X), halves.vector(y))
    Z = np.column_stack([np.ones(case.n), X])
    theta = np.linalg.lstsq(Z[case.labelled], y[case.labelled], rcond=None)[0]
    np.testing.assert_allclose(base.predict(halves.vector(X), halves.vector(y)).to_numpy(), Z @ theta, **CLOSE)


def test_the_kth_smallest_is_found_without_gathering(halves, case):
    values = np.concatenate([columns(case.n - 40, 1)[:, 0] ** 3, np.zeros(40)])
    ranks = (1, 2, case.n // 2, case.n)
    found, _ = halves.gang(_kth_smallest, halves.vector(values), ranks=ranks)
    assert found == [np.sort(values)[k - 1] for k in ranks]


def _kth_smallest(graph, values, ranks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "FEW", 3)
        return [graph.rows.kth_smallest(values, k) for k in ranks], {}


# Members that no longer do the same


def test_members_that_are_out_of_step_raise_an_error(halves):
    with pytest.raises(RuntimeError, match="out of step"):
        halves.gang(_out_of_step)


def _out_of_step(graph):
    graph.rows.sum(1.0) if graph.rows.rank else graph.rows.max(1.0)
    return None, {}


def test_an_error_of_one_member_is_the_error_of_all(shared):
    with pytest.raises(ZeroDivisionError):
        shared.gang(_one_fails)
    with pytest.raises(np.linalg.LinAlgError, match="computed once"):
        shared.gang(_reduction_fails)


def _one_fails(graph):
    if graph.rows.rank == 2:
        raise ZeroDivisionError
    return graph.rows.sum(1.0), {}


def _reduction_fails(graph):
    def then(total):
        raise np.linalg.LinAlgError("computed once")

    return graph.rows.sum(1.0, then), {}


def test_warnings_of_members_are_shown_once(shared):
    with pytest.warns(UserWarning, match="seen by all") as caught:
        shared.gang(_warn)
    assert len(caught) == 1


def _warn(graph):
    warnings.warn("seen by all", stacklevel=1)
    return None, {}


def test_more_blocks_than_workers_share_them(client, case):
    graph = rd.DistributedGraph.from_graph(client, case.graph, blocks=7)
    V = columns(case.n)
    np.testing.assert_allclose(product(graph, V), case.terms[0] @ V, atol=1e-13)


# Tables in, predictions out


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A town in several Parquet files, its ids as text; numbers alone as features."""
    folder = tmp_path_factory.mktemp("town")
    nodes, edges = town()
    nodes["rooms"] = np.cos(np.arange(len(nodes)))
    dd.from_pandas(nodes, npartitions=3).to_parquet(folder / "nodes")
    dd.from_pandas(edges, npartitions=2).to_parquet(folder / "edges")
    return folder, nodes, edges


def test_a_graph_from_parquet_is_that_of_one_machine(client, tables):
    folder, nodes, edges = tables
    graph = rd.DistributedGraph.from_parquet(client, folder / "edges", folder / "nodes", weight="width")
    alone = Graph.from_pandas(edges, weight="width", nodes=nodes["id"])
    assert (graph.n_nodes, graph.n_edges) == (alone.n_nodes, alone.n_edges)
    V = columns(len(nodes))
    np.testing.assert_allclose(product(graph, V), alone.operators["edge"] @ V, atol=1e-13)
    assert graph.ids.to_numpy().tolist() == nodes["id"].tolist()


def test_integer_ids_in_any_order_find_their_rows(client):
    rng = np.random.default_rng(0)
    ids = rng.permutation(1000)[:60] * 7
    nodes = dd.from_pandas(pd.DataFrame({"id": ids}), npartitions=2, sort=False)
    ends = rng.choice(ids, (2, 200))
    pairs = np.unique(np.sort(ends, axis=0), axis=1)
    edges = dd.from_pandas(pd.DataFrame({"source": pairs[0], "target": pairs[1]}), npartitions=3, sort=False)
    graph = rd.DistributedGraph.from_parquet(client, edges, nodes)
    alone = Graph.from_edges(*pairs, nodes=ids)
    V = columns(60)
    np.testing.assert_allclose(product(graph, V), alone.operators["edge"] @ V, atol=1e-13)


@pytest.mark.parametrize(
    ("column", "ids"),
    [
        (pd.Series([2**53, 2**53 + 1]), [2**53, 2**53 + 1]),
        (pd.Series([2**53 + 1, 7], dtype=np.uint64), [2**53 + 1, 7]),
        (pd.Series([2**53 + 1, 7], dtype="Int64"), [2**53 + 1, 7]),
        (pd.Series([2**53 + 1, 7], dtype="int64[pyarrow]"), [2**53 + 1, 7]),
        (pd.Series([2**53 + 1, 7], dtype=object), [2**53 + 1, 7]),
        (pd.Series([5.0, 6.0]), [5, 6]),
        (pd.Series(["007", "7"]), ["007", "7"]),
        (pd.Series(["007", "7"], dtype="category"), ["007", "7"]),
        (pd.Series(["7"], dtype="string[pyarrow]"), ["7"]),
    ],
)
def test_ids_on_a_cluster_are_exact(column, ids):
    found = as_ids(column, "nodes, column 'id'")
    assert found.tolist() == ids
    assert found.dtype == (object if isinstance(ids[0], str) else np.int64)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.Series([2**63, 1], dtype=np.uint64), "has 9223372036854775808, more than 64 bits hold with a sign"),
        (pd.Series([1.0, 2.0**53]), "has 9007199254740992.0 at row 1, a float that stands for more than one"),
        (pd.Series([0.5, 1.0]), "has 0.5 of dtype float64; ids are whole numbers or text"),
        (pd.Series([True, False]), "has True of dtype bool; ids are whole numbers or text"),
        (pd.Series([1, "1"]), "has 1 of dtype object; ids are whole numbers or text"),
        (pd.Series([b"1"]), "has b'1' of dtype object; ids are whole numbers or text"),
        (pd.Series([1.0, None]), "has an empty cell"),
    ],
)
def test_other_ids_are_refused_on_a_cluster(column, message):
    with pytest.raises(ValueError, match=f"nodes, column 'id' {message}"):
        as_ids(column, "nodes, column 'id'")


@pytest.mark.parametrize("skip_unknown", [True, False])
@pytest.mark.parametrize("first", [0, 70])
def test_numbers_among_edges_do_not_meet_text_among_nodes(client, first, skip_unknown):
    ids = np.roll(np.arange(20), first)
    edges = pd.DataFrame({"source": ids[:-1], "target": ids[1:]})
    tables = [dd.from_pandas(frame, npartitions=2, sort=False) for frame in (edges, pd.DataFrame({"id": ids}))]
    for k, message in enumerate(["source ids that are text, such as", "source ids that are numbers, such as"]):
        given = [table.astype(str) if j == k else table for j, table in enumerate(tables)]
        with pytest.raises(TypeError, match=f"edges have {message} .* write both as numbers, or both as text"):
            rd.DistributedGraph.from_parquet(client, *given, skip_unknown=skip_unknown)


def test_splines_from_tables_are_those_of_one_machine(client, tables):
    folder, nodes, edges = tables
    strategy = residua.Lanczos(probes=4, steps=16)
    found = rd.fit(
        client,
        edges=folder / "edges",
        nodes=folder / "nodes",
        target="price",
        base="splines",
        logdet=strategy,
        blocks=2,
    )
    graph = Graph.from_pandas(edges, nodes=nodes["id"])
    X = nodes[["size", "rooms"]].to_numpy()
    model = residua.GraphRegressor("splines", logdet=strategy).fit(X, nodes["price"].to_numpy(), graph=graph)
    for ours, theirs in zip(found.base.local.knots, model.base_.knots, strict=True):
        np.testing.assert_allclose(ours, theirs, **CLOSE)
    same_fit(found.correlation, model.correlation_)
    np.testing.assert_allclose(found.correlation.prior_variance, model.correlation_.prior_variance, rtol=1e-6)
    predicted = found.predictions["prediction"].to_numpy()
    np.testing.assert_allclose(predicted, model.predict(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        found.correlation.interval()["edge"], model.correlation_.interval()["edge"], rtol=1e-6, atol=1e-6
    )
    X, y = found.graph.columns(["size", "rooms"]), found.graph.vector("price")
    plain = rd.LinearBase("splines").fit(X, y)
    alone = residua.GraphRegressor("splines", correlation=None).fit(model.X_, model.y_, graph=graph)
    np.testing.assert_allclose(plain.predict(X, y).to_numpy(), alone.base_.predict(graph, model.X_), **CLOSE)


def test_fit_from_tables_is_that_of_one_machine(client, tables, tmp_path):
    folder, nodes, edges = tables
    strategy = residua.Lanczos(probes=4, steps=16)
    found = rd.fit(
        client,
        edges=folder / "edges",
        nodes=folder / "nodes",
        target="price",
        logdet=strategy,
        output=tmp_path / "out",
        blocks=2,
    )
    graph = Graph.from_pandas(edges, nodes=nodes["id"])
    X = nodes[["size", "rooms"]].to_numpy()
    model = residua.GraphRegressor("linear", logdet=strategy).fit(X, nodes["price"].to_numpy(), graph=graph)
    assert found.features == ["size", "rooms"]
    same_fit(found.correlation, model.correlation_)
    written = pd.read_parquet(tmp_path / "out")
    assert list(written) == ["id", "prediction", "std", "lower", "upper", "base", "correction"]
    assert written["id"].tolist() == nodes["id"].tolist()
    np.testing.assert_allclose(
        written["prediction"], model.predict(), rtol=1e-6, atol=1e-6
    )  # alpha differs by the search
    np.testing.assert_allclose(written["base"], model.base_.predict(graph, X), rtol=1e-6, atol=1e-6)
    assert np.array_equal(written["correction"], written["prediction"] - written["base"])
    y, labelled = nodes["price"].to_numpy(), nodes["price"].notna().to_numpy()
    given = with_same_draws(graph, labelled, found, np.column_stack([np.ones(len(X)), X]))
    std = np.sqrt(given.variance().value)
    np.testing.assert_allclose(written["std"], std, rtol=1e-6, atol=1e-9)
    assert not written["std"][labelled].any()
    left_out = given.leave_one_out(y - written["base"].to_numpy())
    spread = ((y[labelled] - y[labelled].mean()) ** 2).sum()
    assert found.r2 == pytest.approx(1 - left_out.error @ left_out.error / spread, abs=1e-6)
    count = int(labelled.sum())
    width = np.sort(np.abs(left_out.error) / np.sqrt(left_out.variance))[int(np.ceil(0.9 * (count + 1))) - 1]
    assert found.width == pytest.approx(width, rel=1e-6)
    np.testing.assert_allclose(written["upper"] - written["prediction"], width * std, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(written["prediction"] - written["lower"], width * std, rtol=1e-5, atol=1e-9)


def with_same_draws(graph, labelled, found, design=None, draws=64):
    """What a fit on a cluster says of unknown residuals, on one machine and from the draws that the blocks make."""
    given = Conditional(graph, labelled, found.alpha, found.beta, design=design, exact=False, draws=draws)
    given.draws.__dict__["_kept"] = given.solver.solve(given.G_UU, same_noise(given, 0, draws)).X
    return given


def fit_with(client, folder, estimator):
    """A small fit with a regressor on dask arrays as base."""
    return rd.fit(
        client,
        edges=folder / "edges",
        nodes=folder / "nodes",
        target="price",
        base=rd.DaskRegressor(estimator, folds=2),
        logdet=residua.Lanczos(probes=2, steps=8),
        draws=4,
        blocks=2,
    )


class NormalEquations:
    """A regressor on dask arrays, as ``xgboost.dask`` has them: lazy in, lazy out."""

    def fit(self, X, y):
        import dask.array as da

        Z = da.hstack([da.ones((len(X), 1), chunks=(X.chunks[0], 1)), X]).rechunk({1: -1})
        self.theta = np.linalg.solve((Z.T @ Z).compute(), (Z.T @ y).compute())
        return self

    def predict(self, X):
        return self.theta[0] + X @ self.theta[1:]


class Seeded(NormalEquations):
    """One that says which random state it was fitted with."""

    def __init__(self, random_state=None, seen=None):
        self.random_state, self.seen = random_state, [] if seen is None else seen

    def get_params(self, deep=True):
        return {"random_state": self.random_state, "seen": self.seen}

    def set_params(self, random_state):
        self.random_state = random_state
        return self

    def __sklearn_clone__(self):
        return Seeded(self.random_state, self.seen)

    def fit(self, X, y):
        self.seen.append(self.random_state)
        return super().fit(X, y)


def test_random_states_that_are_not_set_follow_the_seed_on_a_cluster(client, tables):
    folder, _, _ = tables
    graph = rd.DistributedGraph.from_parquet(client, folder / "edges", folder / "nodes", blocks=2)
    X, y, seen = graph.columns(["rooms"]), graph.vector("price"), []
    for random_state in (0, 0, 1):
        base = rd.DaskRegressor(Seeded(), folds=2, random_state=random_state)
        base.fit(X, y, 1)
        seen.append(base.estimator.seen)
    assert seen[0] == seen[1] != seen[2]
    assert len(set(seen[0])) == 3


@pytest.mark.parametrize(("scale", "offset"), [(1e-160, 0.0), (1e155, 0.0), (1.0, 1e17)])
def test_labels_that_floats_cannot_hold_are_refused_on_a_cluster(client, case, scale, offset):
    residual = np.where(case.labelled, np.arange(case.n) * scale + offset, np.nan)
    with pytest.raises(ValueError, match=r"floats do not hold their squares|subtract a constant from residual"):
        rd.fit_correlation(client, residual, case.graph)


def test_a_regressor_on_dask_arrays_is_cross_fitted(client, tables):
    folder, nodes, _ = tables
    estimator = NormalEquations()
    found = fit_with(client, folder, estimator)
    assert not hasattr(estimator, "theta")  # the one given is left as it was
    X, y = nodes[["size", "rooms"]].to_numpy(), nodes["price"].to_numpy()
    there = ~np.isnan(y)
    Z = np.column_stack([np.ones(len(X)), X])
    theta = np.linalg.lstsq(Z[there], y[there], rcond=None)[0]
    np.testing.assert_allclose(found.predictions["base"].to_numpy(), Z @ theta, **CLOSE)
    graph = found.graph
    residual = found.base.fit(graph.columns(["size", "rooms"]), graph.vector("price"), 2).to_numpy()
    assert np.array_equal(np.isnan(residual), ~there)
    assert np.abs(residual[there] - (y - Z @ theta)[there]).max() > 1e-3  # out of fold, not in sample
    assert found.alpha > 0.3


@pytest.mark.parametrize(
    ("library", "name", "leaves"),
    [
        ("xgboost.dask", "DaskXGBRegressor", {}),
        ("lightgbm.dask", "DaskLGBMRegressor", {"min_child_samples": 2}),
    ],
)
@pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored")
def test_boosted_trees_on_dask_are_a_base(client, tables, library, name, leaves):
    trees = getattr(pytest.importorskip(library), name)(n_estimators=20, max_depth=3, **leaves)
    folder, nodes, _ = tables
    found = fit_with(client, folder, trees)
    base, y = found.predictions["base"].to_numpy(), nodes["price"].to_numpy()
    there = ~np.isnan(y)
    assert np.corrcoef(base[there], y[there])[0, 1] > 0.5
    assert np.isfinite(found.predictions["prediction"].to_numpy()).all()
    assert found.alpha > 0


def test_output_is_whole_or_not_there(client, halves, tmp_path):
    values = halves.vector(np.arange(halves.n_nodes))
    rd.write_parquet({"x": values}, tmp_path / "out")
    rd.write_parquet({"x": values.map(np.negative)}, tmp_path / "out")
    assert pd.read_parquet(tmp_path / "out")["x"].tolist() == [-float(k) for k in range(halves.n_nodes)]
    with pytest.raises(ZeroDivisionError):
        rd.write_parquet({"x": values, "y": values.map(_fails)}, tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def _fails(part):
    raise ZeroDivisionError


def test_what_a_killed_worker_left_half_written_is_no_part_of_the_result(halves, tmp_path, monkeypatch):
    monkeypatch.setattr(output, "_write", _write_twice)
    rd.write_parquet({"x": halves.vector(np.arange(halves.n_nodes))}, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["part-00000.parquet", "part-00001.parquet"]
    assert pd.read_parquet(tmp_path / "out")["x"].tolist() == list(range(halves.n_nodes))


def _write_twice(file, *parts, names):
    file.with_name(f"{file.name}.0badf00d").write_bytes(b"half")
    return WRITE(file, *parts, names=names)


WRITE = output._write


def test_an_old_result_is_put_back_where_the_new_one_cannot_be_moved_into_place(halves, tmp_path, monkeypatch):
    values = halves.vector(np.arange(halves.n_nodes))
    rd.write_parquet({"x": values}, tmp_path / "out")
    rename = os.rename

    def full_disk(source, target):
        if str(source).endswith(".tmp"):
            assert not (tmp_path / "out").exists()  # the old one has made room
            raise OSError("no room")
        rename(source, target)

    monkeypatch.setattr(os, "rename", full_disk)
    with pytest.raises(OSError, match="no room"):
        rd.write_parquet({"x": values.map(np.negative)}, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert pd.read_parquet(tmp_path / "out")["x"].tolist() == list(range(halves.n_nodes))


# Refusals


def frame(**columns):
    return dd.from_pandas(pd.DataFrame(columns), npartitions=1)


NODES = {"id": [0, 1, 2, 3], "y": [1.0, 2.0, 3.0, np.nan], "x": [1.0, np.nan, 2.0, 3.0]}
EDGES = {"source": [0, 1, 2], "target": [1, 2, 3], "w": [1.0, 1.0, 1.0]}


@pytest.mark.parametrize(
    ("nodes", "edges", "given", "message"),
    [
        ({}, {"target": [1, 2, 9]}, {}, "edges name node 9 as target, not in nodes"),
        ({"id": list("abca")}, {"source": list("aab"), "target": list("bcc")}, {}, "nodes list 'a' more than once"),
        (
            {},
            {"w": pd.to_timedelta([1, 2, 3], unit="h")},
            {"weight": "w"},
            r"'w': the weight is not numeric \(it holds timedelta64.*one real number per edge",
        ),
        ({}, {"w": [1.0, -2.0, 1.0]}, {"weight": "w"}, r"weight is -2.0 at edge \(.*\); weights must be finite"),
        (
            {},
            {"source": [0, 1, 0], "target": [1, 0, 2], "w": [1.0, 5.0, 1.0]},
            {"weight": "w"},
            "make the weights agree",
        ),
        ({}, {}, {"source": "from"}, "edges has no column 'from'"),
        ({}, {}, {"id": "name"}, "nodes has no column 'name'"),
        ({}, {"w": [0.0, 0.0, 0.0]}, {"weight": "w"}, "graph has no edges"),
    ],
)
def test_tables_that_do_not_fit_are_refused(client, nodes, edges, given, message):
    with pytest.raises(ValueError, match=message):
        rd.DistributedGraph.from_parquet(client, frame(**EDGES | edges), frame(**NODES | nodes), **given)


def test_edges_to_unknown_nodes_can_be_left_out(client):
    edges = frame(**EDGES | {"target": [1, 2, 9]})
    graph = rd.DistributedGraph.from_parquet(client, edges, frame(**NODES), skip_unknown=True)
    assert graph.n_edges == 2


def test_arguments_are_checked(client, halves, case):
    with pytest.raises(FileNotFoundError, match="edges='nowhere' not found"):
        rd.DistributedGraph.from_parquet(client, "nowhere", frame(**NODES))
    with pytest.raises(ValueError, match=r"residual has shape \(3,\) but graph has 160 nodes"):
        rd.fit_correlation(client, np.zeros(3), halves)
    with pytest.raises(ValueError, match="residual has 0 known values; at least 3"):
        rd.fit_correlation(client, np.full(case.n, np.nan), halves)
    with pytest.raises(ValueError, match="residual is zero at every labelled node"):
        rd.fit_correlation(client, np.zeros(case.n), halves)
    with pytest.raises(ValueError, match="on a cluster use Lanczos"):
        rd.fit_correlation(client, np.ones(case.n), halves, logdet=residua.Eigen())
    with pytest.raises(TypeError, match="graph is ndarray; use DistributedGraph"):
        rd.fit_correlation(client, np.ones(case.n), case.S)
    with pytest.raises(ValueError, match=r"column 'x' has 1 empty cells; fill them"):
        rd.fit(client, edges=frame(**EDGES), nodes=frame(**NODES), target="y")
    with pytest.raises(TypeError, match="estimator is object; it needs fit"):
        rd.DaskRegressor(object())
    with pytest.raises(ValueError, match=r"alpha=1\.5 is outside"):
        rd.predict(client, np.ones(case.n), halves, 1.5)


# The command line


PARAMETERS = {"base": "linear", "correlation": "learned", "field": "normalised", "random_state": 0}


@pytest.mark.parametrize(
    ("given", "parameters", "message"),
    [
        ({}, {"base": "sage"}, "--base sage does not run on a cluster"),
        ({}, {"correlation": "propagate"}, "--correlation propagate is for one machine"),
        ({"edge_type": "kind"}, {}, "--edge-type is for one machine"),
        ({"categorical": ("quarter",)}, {}, "--categorical is for one machine"),
        ({"exclude": ("rooms",)}, {}, "name the columns to use: --features"),
        ({}, {"ensemble": 3}, "--ensemble is for networks, and --base linear is none"),
        ({}, {"training": "paper"}, "--training is for networks"),
    ],
)
def test_options_for_one_machine_are_refused(given, parameters, message):
    with pytest.raises(ValueError, match=message):
        cli_scheduler.check_options(Columns("price", **given), PARAMETERS | parameters)


def test_a_dry_run_fits_nothing_on_a_cluster(tmp_path, refusal):
    words = ["fit", *map(str, write(tmp_path, *town(), "parquet")), "--target", "price"]
    said = refusal(*words, "--dry-run", "--scheduler", "tcp://127.0.0.1:9")
    assert said.startswith("--dry-run tells what a fit takes on one machine")


def test_a_cluster_reads_parquet_alone(tmp_path):
    tables = Tables(tmp_path / "nodes.csv", tmp_path / "edges.csv", Columns("price"))
    with pytest.raises(ValueError, match=r"nodes\.csv: with --scheduler tables are Parquet"):
        cli_scheduler.fit_on_cluster("tcp://127.0.0.1:9", tables, PARAMETERS, tmp_path / "out")


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(cli_scheduler, "CONNECT", 0.5)
    with pytest.raises(ConnectionError, match=r"does not answer .*dask scheduler"):
        cli_scheduler.connected("tcp://127.0.0.1:9")


def test_the_command_writes_predictions_and_tells_what_it_learned(client, tmp_path, monkeypatch):
    nodes, edges = town()
    nodes = nodes.iloc[:27]
    edges = edges[edges["source"].isin(nodes["id"]) & edges["target"].isin(nodes["id"])]
    monkeypatch.chdir(tmp_path)
    paths = " ".join(map(str, write(tmp_path, nodes, edges, "parquet")))
    words = f"{paths} --target price --features size,rooms --exclude rooms --weight width"
    scheduler = f"--scheduler {client.scheduler.address}"
    found = json.loads(run(f"fit {words} {scheduler} -o out --json"))
    graph = Graph.from_pandas(edges, weight="width", nodes=nodes["id"])
    y = nodes["price"].to_numpy()
    model = residua.GraphRegressor("linear", logdet=residua.Lanczos()).fit(nodes[["size"]], y, graph=graph)
    written = pd.read_parquet("out")
    assert written["id"].tolist() == nodes["id"].tolist()
    np.testing.assert_allclose(written["prediction"], model.predict(), rtol=1e-5, atol=1e-5)
    assert (found["nodes"], found["edges"], found["labelled"]) == (27, graph.n_edges, int((~np.isnan(y)).sum()))
    assert (found["features"], found["base"], found["predictions"]) == (["size"], "linear", "out")
    alpha, (lower, upper) = model.alpha_["edge"], model.correlation_.interval()["edge"]
    assert found["alpha"]["edge"] == pytest.approx({"value": alpha, "lower": lower, "upper": upper}, rel=1e-3)
    assert found["beta"] == pytest.approx(model.beta_, rel=1e-5)
    assert found["r2_corrected"] == pytest.approx(model.diagnose().r2_corrected, abs=0.02)  # of 64 draws
    lines = cli_scheduler.lines(found)
    assert [label for label, _ in lines] == ["Nodes", "Features", "Alpha", "R2", "Cluster", "Output"]
    assert f"{alpha:+.4f}, 95 % interval [{lower:+.4f}" in dict(lines)["Alpha"]


@pytest.mark.parametrize("name", ["trees", "hops"])
def test_a_base_for_one_machine_is_refused_with_those_that_run_here(name):
    with pytest.raises(ValueError, match=f"base='{name}' is for one machine; on a cluster use .*splines"):
        rd.LinearBase(name)
