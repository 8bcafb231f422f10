"""Values known at L and their conditional mean at U in one compiled call, against dense algebra."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from graphs import CASES
from residua.field.precision import unit_precision
from residua.field.training_loss import Objective, PaperObjective
from residua.linalg.kernels.conditional_mean import conditional_mean


@pytest.mark.parametrize("alpha", [-0.9, 0.0, 0.6, 0.99])
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_dense_conditional_mean(name, alpha):
    case = CASES[name]
    types = len(case.graph.edge_types)
    G = unit_precision(list(case.graph.operators.values()), np.full(types, alpha))  # type by type: their sum has norm 1
    A = G.dense()
    L, U = np.flatnonzero(case.labelled), np.flatnonzero(~case.labelled)
    rng = np.random.default_rng(0)
    r, x = rng.standard_normal(len(L)), rng.standard_normal(len(A))
    slope, q, done = conditional_mean(G, G.submatrix(U), L, U, r, x, 1e-12, 1000)
    expected = np.zeros(len(A))
    expected[L] = r
    expected[U] = -np.linalg.solve(A[np.ix_(U, U)], A[np.ix_(U, L)] @ r)
    assert done
    assert_allclose(x, expected, atol=1e-10)
    assert_allclose(slope, (A @ expected)[L], atol=1e-10)
    assert_allclose(q, expected @ A @ expected, rtol=1e-10)


def test_it_says_when_it_has_not_arrived_and_its_form_is_right_to_second_order():
    case = CASES["weighted"]
    G = unit_precision(list(case.graph.operators.values()), np.array([0.95]))
    A = G.dense()
    L, U = np.flatnonzero(case.labelled), np.flatnonzero(~case.labelled)
    r, x = np.random.default_rng(1).standard_normal(len(L)), np.zeros(len(A))
    _, q, done = conditional_mean(G, G.submatrix(U), L, U, r, x, 1e-12, 2)
    assert not done
    assert_allclose(q, x @ A @ x, rtol=1e-12)


@pytest.mark.parametrize("tol", [1e-3, 1e-10])
@pytest.mark.parametrize("name", ["two types", "weighted", "isolate"])
def test_loss_and_slope_are_the_dense_ones_within_the_tolerance(name, tol):
    case = CASES[name]
    objective = Objective(case.graph, case.labelled, tol=tol)
    objective._set(np.full(len(case.graph.edge_types), 0.4))
    rng = np.random.default_rng(2)
    r = rng.standard_normal(int(case.labelled.sum()))
    for _ in range(4):
        r += 0.1 * rng.standard_normal(len(r))
        value, slope = objective.loss(r)
    A, L, U = (
        objective.likelihood.precisions(objective.alpha)[0].dense(),
        objective.likelihood.L,
        objective.likelihood.U,
    )
    marginal = A[np.ix_(L, L)] - A[np.ix_(L, U)] @ np.linalg.solve(A[np.ix_(U, U)], A[np.ix_(U, L)])
    q = r @ marginal @ r
    height = np.linalg.slogdet(A)[1] - np.linalg.slogdet(A[np.ix_(U, U)])[1]
    assert_allclose(value, np.log(q / len(r)) - height / len(r), atol=10 * tol**2 + 1e-9)
    assert_allclose(slope, 2 * marginal @ r / q, atol=5 * tol * np.linalg.norm(r) / q)


def test_a_batch_of_the_paper_marginalises_all_other_nodes():
    case = CASES["weighted"]
    paper = PaperObjective(case.graph, case.labelled, "auto", 0)
    paper.a = np.array([1.2])
    batch = np.flatnonzero(case.labelled)[::3]
    r = np.random.default_rng(3).standard_normal(len(batch))
    A = unit_precision(paper.terms, np.tanh(paper.a)).dense()
    others = np.setdiff1d(np.arange(len(A)), batch)
    inside = np.linalg.solve(A[np.ix_(others, others)], A[np.ix_(others, batch)])
    marginal = A[np.ix_(batch, batch)] - A[np.ix_(batch, others)] @ inside
    expected = 2 * np.exp(paper.b) * marginal @ r / len(r)
    assert_allclose(paper.batch_slope(batch, r), expected, rtol=1e-5, atol=1e-5)


def test_a_process_that_compiles_and_one_that_loads_what_was_compiled_add_in_the_same_order(tmp_path):
    code = (
        "import numpy as np, residua\n"
        "from residua.field.precision import unit_precision\n"
        "from residua.linalg import Solver\n"
        "rng, i = np.random.default_rng(0), np.arange(60)\n"
        "graph = residua.Graph.from_edges(i, (i + 1) % 60)\n"
        "G = unit_precision(list(graph.operators.values()), np.array([0.9]))\n"
        "print(Solver().solve(G, rng.standard_normal((60, 1))).X.tobytes().hex())"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    found = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment).stdout
        for _ in range(2)
    ]
    assert list(tmp_path.rglob("*cg_column*.nbc"))
    assert found[0] == found[1]
