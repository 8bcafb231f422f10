"""Compiled kernels: one body for one thread and for many."""

import os
import subprocess
import sys

import pytest
from numpy.testing import assert_array_equal

from residua.linalg.kernels import rows as kernels


@pytest.mark.parametrize("count", [1, 3, kernels.BLOCKS])
def test_both_do_the_same(count, rng):
    X, P, R = rng.standard_normal((3, 50, 4))
    a, b = rng.standard_normal((2, 4))
    found = []
    for small in (True, False):
        parts = X.copy(), P.copy(), R.copy()
        squares = kernels.add_scaled(small, count, parts[2], P, a)
        kernels.advance(small, count, *parts, a, b)
        found.append((*parts, squares))
    for one, many in zip(*found, strict=True):
        assert_array_equal(one, many)


def test_both_are_kept_and_loaded_by_the_next_process(tmp_path):
    code = (
        "import numpy as np\n"
        "from residua.linalg.kernels.rows import advance\n"
        "for small in (True, False):\n"
        "    advance(small, 2, *np.ones((3, 5, 2)), *np.ones((2, 2)))\n"
        "print([sum(kernel.stats.cache_hits.values()) for kernel in advance])"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    hits = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment).stdout
        for _ in range(2)
    ]
    assert [line.strip() for line in hits] == ["[0, 0]", "[1, 1]"]
