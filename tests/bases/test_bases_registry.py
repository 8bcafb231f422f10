"""One table of bases, which Python, the command line, comparisons and the memory estimate read."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor, StackingRegressor
from sklearn.linear_model import Ridge

import residua
from graphs import small_world
from residua import GraphRegressor
from residua.bases.linear import LinearBase
from residua.bases.registry import BASES, COMPARED, NETWORKS, find_base, make_base
from residua.bases.scikit import ScikitBase
from residua.cli import options


@pytest.mark.parametrize("name", BASES)
def test_every_name_makes_a_base_of_its_kind(name):
    entry = find_base(name)
    assert entry is BASES[name]
    assert entry.name == name
    assert entry.help
    if entry.kind != "network":
        assert isinstance(make_base(name), {"linear": LinearBase, "regressor": ScikitBase}[entry.kind])


def test_every_network_is_made():
    pytest.importorskip("torch_geometric")
    assert [make_base(name).name for name in NETWORKS] == list(NETWORKS)


def test_a_base_itself_has_an_entry():
    assert find_base(Ridge()).kind == "regressor"
    assert find_base(StackingRegressor([("ridge", Ridge())])).kind == "regressor"  # without predict until it is fitted
    assert make_base(Ridge()).name == "Ridge"
    torch = pytest.importorskip("torch")
    assert find_base(torch.nn.Linear(2, 1)).kind == "network"
    assert find_base(residua.Network("hops")).columns == BASES["hops"].columns > 1
    assert find_base(residua.Network(torch.nn.Linear(2, 1))).columns == 1


@pytest.mark.parametrize("wrong", ["forest", None, 3, Ridge, object()])
def test_an_unknown_base_is_refused_with_the_table(wrong):
    with pytest.raises(ValueError, match="is unknown") as refusal:
        make_base(wrong)
    assert all(f'"{name}"' in str(refusal.value) for name in BASES)


def test_trees_are_scikit_learns_boosted_trees_cross_fitted():
    graph = small_world(60).graph
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    y[::3] = np.nan
    named, given = (GraphRegressor(base).fit(X, y, graph=graph) for base in ("trees", HistGradientBoostingRegressor()))
    assert_array_equal(named.outcome_.residual, given.outcome_.residual)
    assert_array_equal(named.predict(), given.predict())
    assert named.alpha_ == given.alpha_


def test_a_model_with_trees_is_saved_with_the_name_of_its_base(tmp_path):
    graph = small_world(60).graph
    y = np.random.default_rng(1).normal(size=60)
    model = GraphRegressor("trees").fit(np.arange(60.0)[:, None], y, graph=graph)
    model.save(tmp_path / "trees.residua")
    with pytest.raises(residua.ModelFileError, match="not trusted"):
        residua.load(tmp_path / "trees.residua")
    again = residua.load(tmp_path / "trees.residua", trusted=BASES["trees"].trusted)
    assert again.base == "trees"
    assert_array_equal(again.predict(known="predict"), model.predict(known="predict"))


def test_documentation_and_help_name_every_base():
    assert all(f'"{name}"' in GraphRegressor.__doc__ for name in BASES)
    assert all(name in options.BASE_NAMES for name in BASES)
    assert set(COMPARED) <= BASES.keys()
