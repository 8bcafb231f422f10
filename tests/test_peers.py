"""The comparisons with other libraries compare what they say they compare."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import joint
from benchmarks.peers import joint_trees, logdet, propagation, record, spatial_error, whole_fit
from benchmarks.peers.grids import grid
from benchmarks.peers.scores import located, scores, standardised

from residua import Graph
from residua.datasets import load_elect80
from residua.reproduction.figures.small_world import watts_strogatz
from residua.reproduction.splits import random_split

# linear_operator draws in torch and warns of its own accord; what it warns of is not ours to mend.
pytestmark = pytest.mark.filterwarnings("default")


def need(peer):
    if peer and not record.installed(peer):
        pytest.skip(f"{record.PEERS[peer]} is not installed; make peers builds an environment that has it")


@pytest.mark.parametrize("name", logdet.METHODS)
def test_every_log_determinant_and_derivative_is_that_of_dense_algebra(name):
    peer, method = logdet.METHODS[name]
    need(peer)
    problem = logdet.Problem(watts_strogatz(300), 0.9, 1)
    eigenvalues = np.linalg.eigvalsh(problem.S.to_scipy().toarray())
    value = np.log1p(-0.9 * eigenvalues).sum()
    slope = -(eigenvalues / (1 - 0.9 * eigenvalues)).sum()
    runs = [method(problem, 64, 40, seed) for seed in range(4)]
    # The plain estimator's spread bounds that of every method here.
    plain = [logdet.residua_plain(problem, 64, 40, seed) for seed in range(4)]
    spread, slope_spread = (np.mean([getattr(run, told) for run in plain]) for told in ("stderr", "slope_stderr"))
    assert abs(np.mean([run.value for run in runs]) - value) < 4 * spread / 2
    assert abs(np.mean([run.slope for run in runs]) - slope) < 4 * slope_spread / 2
    assert all(0 < run.seconds <= run.seconds_both for run in runs)


def test_the_exact_log_determinant_is_that_of_dense_algebra():
    problem = logdet.Problem(grid(12), 0.99, 1)
    found = logdet.exact(problem)
    assert found.value == pytest.approx(np.linalg.slogdet(problem.gamma.toarray())[1], rel=1e-10)
    assert found.slope == pytest.approx((144 - np.trace(np.linalg.inv(problem.gamma.toarray()))) / 0.99, rel=1e-10)


def test_errors_in_a_row_are_root_mean_squares_over_seeds():
    truth = logdet.Answer(10.0, 0.0, 5.0, 0.0, 1.0, 1.0)
    runs = [logdet.Answer(10.0 + e, 2.0, 5.0 - e, np.nan, 3.0, 4.0 + e) for e in (3.0, 4.0)]
    row = logdet.summary("x", runs, truth, unit=2.0)
    assert row["error of value"] == row["error of derivative"] == pytest.approx(np.sqrt(12.5))
    assert row["told"] == 2.0
    assert row["times residua"] == pytest.approx(3.5)


@pytest.fixture(params=[0.6, 0.1])
def harmonic(request):
    return propagation.problem(grid(12), request.param, threads=1)


def dense_solution(task):
    S, known = task.S.toarray(), task.known
    out = task.from_known()
    system = np.eye((~known).sum()) - S[np.ix_(~known, ~known)]
    out[~known] = np.linalg.solve(system, S[np.ix_(~known, known)] @ task.values[known])
    return out


def test_the_residual_is_zero_at_the_dense_solution_alone(harmonic):
    solution = dense_solution(harmonic)
    assert harmonic.residual(solution) < 1e-12
    assert harmonic.residual(np.zeros(len(solution))) == pytest.approx(1)


@pytest.mark.parametrize("method", propagation.METHODS)
@pytest.mark.parametrize("goal", [1e-4, 1e-9])
def test_peers_of_propagation_get_just_the_steps_that_reach_the_goal(harmonic, method, goal):
    peer, prepare = propagation.METHODS[method]
    need(peer)
    steps, solve = prepare(harmonic, goal)
    found = solve()
    assert harmonic.residual(found) <= goal * (1 + 1e-6)
    assert harmonic.residual(found) > 0.5 * goal
    assert steps < propagation.MAX_STEPS
    assert np.abs(found - dense_solution(harmonic)).max() < 1e3 * goal


def test_free_diffusion_does_not_solve_the_harmonic_system(harmonic):
    need("sknetwork")
    assert harmonic.residual(propagation.diffusion(harmonic, 200)) > 0.1


@pytest.fixture
def map_with_an_island():
    A = sp.lil_array(grid(7).adjacency())
    A[10] = A[:, 10] = 0
    return Graph.from_scipy(sp.csr_array(A))


def test_the_conditional_of_spregs_model_is_that_of_dense_algebra(map_with_an_island, rng):
    n = map_with_an_island.n_nodes
    X, y, split = rng.standard_normal((n, 3)), rng.standard_normal(n), random_split(n, 0)
    fit = spatial_error.Fitted(np.array([0.3, 1.0, -1.0, 0.5]), 0.7, 0.0, variance=2.0)
    W = spatial_error.walk_matrix(map_with_an_island)
    mean, std = spatial_error.conditional(W, fit, X, y, split)
    root = np.linalg.inv(np.eye(n) - 0.7 * W.toarray())
    cov, m = 2.0 * root @ root.T, 0.3 + X @ [1.0, -1.0, 0.5]
    T, L = split.test, split.train
    lever = cov[np.ix_(T, L)] @ np.linalg.inv(cov[np.ix_(L, L)])
    np.testing.assert_allclose(mean, m[T] + lever @ (y - m)[L], atol=1e-10)
    np.testing.assert_allclose(std**2, np.diag(cov[np.ix_(T, T)] - lever @ cov[np.ix_(L, T)]), atol=1e-10)


def test_rows_of_the_walk_sum_to_one_or_are_empty(map_with_an_island):
    sums = np.asarray(spatial_error.walk_matrix(map_with_an_island).sum(axis=1)).ravel()
    assert sums[10] == 0
    np.testing.assert_allclose(np.delete(sums, 10), 1)


def test_the_search_finds_what_ml_error_finds():
    need("spreg")
    graph = grid(15)
    X, y = spatial_error.simulate(graph, "spreg")
    w = spatial_error.weights(graph)
    whole, search = spatial_error.spreg_ml("LU")(X, y, graph, w), spatial_error.spreg_search(X, y, graph, w)
    assert search.strength == pytest.approx(whole.strength, abs=1e-5)
    assert search.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-6)
    assert search.variance == pytest.approx(whole.variance, rel=1e-4)
    np.testing.assert_allclose(search.coefficients, whole.coefficients, atol=1e-4)


@pytest.mark.parametrize("name", whole_fit.METHODS)
def test_test_labels_choose_nothing(name):
    peer, method = whole_fit.METHODS[name]
    need(peer)
    if "trees" in name and peer:
        pytest.skip("cross-validated trees take half a minute; they go through the same split")
    data = load_elect80()
    split = random_split(data.graph.n_nodes, 0)
    X, places = standardised(data.X.to_numpy(float), split.train), whole_fit.kilometres(data)
    y = standardised(data.y, split.train)
    hidden = y.copy()
    hidden[split.test] = 1e3
    hidden[split.validation] = -1e3
    first, second = (method(X, labels, places, data, split, 1) for labels in (y, hidden))
    np.testing.assert_allclose(first[0], second[0], atol=1e-6)  # the hidden labels are a thousand off
    assert scores(y[split.test], *first)["R2"] > 0.5


def test_a_map_is_cut_to_the_nodes_with_coordinates():
    data = load_elect80()
    data.nodes.loc[data.nodes.index[:7], "longitude"] = np.nan
    cut = located(data)
    assert cut.graph.n_nodes == len(cut.y) == len(cut.X) == data.graph.n_nodes - 7
    np.testing.assert_array_equal(cut.graph.nodes, data.graph.nodes[7:])
    A = data.graph.adjacency()
    assert abs(cut.graph.adjacency() - A[7:][:, 7:]).sum() == 0


def part(name, number):
    table = record.Table("numbers", [{"method": "ours", "seconds": number, "told": np.nan}])
    return record.Part(name, f"About {name}", "Which?", ("spreg",), [table], ["a remark"])


def test_a_part_run_again_replaces_itself_and_leaves_the_others(tmp_path):
    for name, number in (("a", 1.5), ("b", np.float64(2.5)), ("a", 3.5)):
        made = part(name, number)
        record.keep(made, record.origin(made, 2, 1.0), tmp_path)
    kept = json.loads((tmp_path / "peers.json").read_text())
    assert {name: found["tables"][0]["rows"][0]["seconds"] for name, found in kept.items()} == {"a": 3.5, "b": 2.5}
    page = (tmp_path / "peers.md").read_text()
    assert "| ours | 3.500 | - |" in page
    assert "1.500" not in page
    assert "About b" in page


def test_the_origin_names_command_versions_threads_and_what_is_missing(monkeypatch):
    monkeypatch.setattr(record, "find_spec", lambda name: None)
    found = record.origin(part("a", 1.0), 2, 1.0)
    assert found["command"] == "python -m benchmarks.peers --only a --threads 2 --clock wall"
    assert found["not installed"] == ["spreg"]
    assert {"residua", "numpy", "numba"} <= set(found["versions"])


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, "-"), (np.inf, "-"), ("x", "x"), (12345, "12,345"), (0.0, "0.000"), (1e-7, "1e-07"), (123.456, "123.5"),
     (-0.12345, "-0.123"), (54321.9, "54,322")],
)  # fmt: skip
def test_numbers_are_shown_in_few_characters(cell, text):
    assert record.shown(cell) == text


def test_joint_trees_are_compared_on_the_splits_that_both_methods_have(tmp_path):
    def line(method, seed, r2):
        return json.dumps({"method": method, "data": "twitch", "seed": seed, "scores": [r2, 0.9, None, 1.0, 0.3, 2.0]})

    lines = [line(joint.TREES, 41, 0.5), line(joint.TREES, 42, 0.9), line(joint.TREES, 43, 0.7)]
    lines += [line(joint.GPBOOST, 42, 0.8), line(joint.GPBOOST, 43, 0.8)]
    (tmp_path / "joint.jsonl").write_text("\n".join(lines))
    found = joint.read(tmp_path / "joint.jsonl")
    assert found.seeds("twitch", joint.TREES, joint.GPBOOST) == [42, 43]
    row = next(row for row in joint.beside(found, joint.GPBOOST).splitlines() if "twitch" in row)
    assert row.split(" | ")[1:5] == ["2", "1 of 2", "0.8000", "0.8000"]
    joint.write_page(found, tmp_path / "joint.md")
    assert row in (tmp_path / "joint.md").read_text()


def test_places_are_those_of_maps_and_roads():
    data = load_elect80()
    assert joint_trees.places(data).shape == (data.graph.n_nodes, 2)
    assert joint_trees.places(replace(data, nodes=data.nodes.drop(columns=["longitude", "latitude"]))) is None
