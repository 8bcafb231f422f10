"""One table of bases, which Python, the command line, comparisons and the memory estimate read."""

import pytest
from sklearn.ensemble import StackingRegressor
from sklearn.linear_model import Ridge

import residua
from residua import GraphRegressor
from residua.bases.linear import LinearBase
from residua.bases.registry import BASES, COMPARED, NETWORKS, find_base, make_base
from residua.bases.trees.base import TreesBase
from residua.cli import options


@pytest.mark.parametrize("name", BASES)
def test_every_name_makes_a_base_of_its_kind(name):
    entry = find_base(name)
    assert entry is BASES[name]
    assert entry.name == name
    assert entry.help
    if entry.kind != "network":
        assert make_base(name).takes_tables is entry.tables
        assert isinstance(make_base(name), {"linear": LinearBase, "trees": TreesBase}[entry.kind])


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


def test_documentation_and_help_name_every_base():
    assert all(f'"{name}"' in GraphRegressor.__doc__ for name in BASES)
    assert all(name in options.BASE_NAMES for name in BASES)
    assert set(COMPARED) <= BASES.keys()
