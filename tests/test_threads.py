"""Threads of the compiled kernels change no bit of a fit, and those of BLAS no more than its last digits."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

SCRIPT = """
import json, sys
import numpy as np, residua
n = 6000
rng = np.random.default_rng(0)
source, target = np.arange(n), (np.arange(n) + 1) % n
far = rng.integers(0, n, (2, n))
far = far[:, (far[0] - far[1]) % n > 1]
graph = residua.Graph.from_edges(np.append(source, far.min(axis=0)), np.append(target, far.max(axis=0)))
X = rng.normal(size=(n, 20))
y = X @ rng.normal(size=20) + rng.normal(size=n)
y[::3] = np.nan
answers = []
for correlation in ("learned", "propagate"):
    model = residua.GraphRegressor("linear", correlation, logdet=residua.Lanczos(probes=4, steps=20))
    model.fit(X, y, graph=graph)
    answers.append([model.alpha_["edge"], model.beta_, *model.predict()[::50]])
print(json.dumps(answers))
"""


def answers(blas: int, kernels: int) -> list[np.ndarray]:
    """Return the numbers of a fit in a process that has so many threads of each kind."""
    counts = {
        "OPENBLAS_NUM_THREADS": blas,
        "OMP_NUM_THREADS": blas,
        "MKL_NUM_THREADS": blas,
        "NUMBA_NUM_THREADS": kernels,
    }
    settings = os.environ | {name: str(count) for name, count in counts.items()}
    program = f"import sys; sys.path[:0] = {sys.path}\n{SCRIPT}"
    run = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=True)
    return [np.array(values) for values in json.loads(run.stdout)]


@pytest.fixture(scope="module")
def one() -> list[np.ndarray]:
    return answers(1, 1)


def test_threads_of_the_kernels_change_no_bit(one):
    for found, expected in zip(answers(1, 2), one, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_threads_of_blas_change_the_last_digits_at_most(one):
    for found, expected in zip(answers(2, 2), one, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
