"""A caller under ``mypy --strict`` sees the types of the public names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import residua

CALLER = """
import numpy as np
import pandas as pd
from typing_extensions import assert_type

import residua
from residua.model_selection import DistanceMatchedNodes
from residua.summary import Summary
from residua import Average, Graph, GraphRegressor, Lanczos

graph = Graph.from_edges([0, 1], [1, 2])
model = GraphRegressor("linear", correlation=None, ensemble=2, logdet=Lanczos(), random_state=1)
fitted = model.fit(None, np.zeros(3), graph=graph)
assert_type(fitted, GraphRegressor)
assert_type(fitted.alpha_, dict[str, float])
asked = bool(fitted.beta_)
for one in (fitted, Average([fitted])):
    assert_type(one.predict(), np.ndarray)
    assert_type(one.predict(return_std=True), tuple[np.ndarray, np.ndarray])
    assert_type(one.predict(return_std=asked), np.ndarray | tuple[np.ndarray, np.ndarray])
    assert_type(one.predict_interval(coverage=0.8), tuple[np.ndarray, np.ndarray])
    assert_type(one.score(None, np.zeros(3)), float)
assert_type(fitted.sample(3), np.ndarray)
assert_type(residua.load("model", kind=GraphRegressor), GraphRegressor)
assert_type(residua.load("model", kind=Average), Average)
assert_type(residua.fit_correlation(np.zeros(3), graph).alpha, dict[str, float])
assert_type(graph.with_features(np.zeros((3, 1))), Graph)
assert_type(graph.with_nodes(edges=[(2, 3)]), Graph)
assert_type(fitted.predict(nodes=[0, 1]), np.ndarray)
assert_type(fitted.predict(y={0: 0.5}, nodes=[0, 1], return_std=True), tuple[np.ndarray, np.ndarray])
assert_type(fitted.predict_frame(coverage=0.5), pd.DataFrame)
assert_type(fitted.summary(), Summary)
assert_type(fitted.summary().to_frame(), pd.DataFrame)
assert_type(str(fitted.summary()), str)
splits = DistanceMatchedNodes(graph, n_splits=2, share=0.5)
assert_type(splits.get_n_splits(), int)
for train, test in splits.split(graph.nodes):
    assert_type(train, np.ndarray)
"""
WRONG = """
from residua import GraphRegressor

GraphRegressor(ensemble="two")
GraphRegressor(bas="linear")
GraphRegressor().predict(return_std="yes")
"""


def errors(folder: Path, text: str) -> list[str]:
    (folder / "caller.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "caller.py"]
    path = {"MYPYPATH": str(Path(residua.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=os.environ | path)
    return [line for line in done.stdout.splitlines() if "error:" in line]


@pytest.mark.slow
def test_a_caller_under_strict_sees_types(tmp_path):
    assert errors(tmp_path, CALLER) == []
    assert len(errors(tmp_path, WRONG)) == 3
