"""Statistics of counties: scales and filling as the authors have them."""

import numpy as np
import pandas as pd
import pytest

from residua.datasets import load_county
from residua.reproduction.datasets.county import TARGETS


def test_a_county_is_its_own_neighbour_with_weight_two(election):
    A = election.graph.adjacency()
    degree = election.graph.degree
    assert (A.diagonal() == 2).all()
    assert (degree == A.sum(axis=1)).all()
    unit = np.eye(3234, 40)
    S_ii = (election.graph.operators["edge"] @ unit)[np.arange(40), np.arange(40)]
    np.testing.assert_allclose(S_ii, 2 / degree[:40])
    assert (degree == 2).sum() == 10  # islands, where S_ii = 1


def test_without_self_loops_the_edges_are_those_between_counties(data_folder, election):
    graph = load_county("election", self_loops=False).graph
    assert graph.n_edges == 9483
    assert (graph.degree == election.graph.degree - 2).all()
    assert (graph.describe().components, graph.describe().isolates) == (17, 10)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("year", [2012, 2016])
def test_label_and_features_are_the_seven_statistics(data_folder, target, year, standardised):
    data = load_county(target, year)
    assert list(data.X.columns) == [name for name in TARGETS if name != target]
    assert standardised(data.X.drop(columns="election", errors="ignore"))
    assert standardised(data.y) == (target != "election")
    assert abs(data.X.get("election", pd.Series(data.y))).max() < 1
    assert data.name == f"county-{target}-{year}"


def test_counties_without_votes_share_one_margin(data_folder, election):
    votes = pd.read_csv(data_folder / "election" / "election.csv", dtype={"fips_code": str}).set_index("fips_code")
    missing = ~election.X.index.isin(votes.index)
    assert missing.sum() == 122
    present = votes.loc[election.X.index[~missing]]
    dem, gop = present["dem_2012"].mean(), present["gop_2012"].mean()
    assert election.y[missing] == pytest.approx((gop - dem) / (gop + dem))
    expected = (present["gop_2012"] - present["dem_2012"]) / (present["gop_2012"] + present["dem_2012"])
    np.testing.assert_allclose(election.y[~missing], expected)
    assert "votes 122" in election.notes[0]


@pytest.mark.parametrize(("year", "missing"), [(2012, 92), (2016, 95)])
def test_missing_income_is_the_mean(data_folder, year, missing):
    data = load_county("income", year)
    table = pd.read_csv(data_folder / "election" / "income.csv", thousands=",").set_index("FIPS")
    raw = table[f"MedianIncome{year}"].reindex(data.X.index.astype(int)).to_numpy()
    assert np.isnan(raw).sum() == missing
    assert data.y[np.isnan(raw)] == pytest.approx(0)
    assert np.corrcoef(raw[~np.isnan(raw)], data.y[~np.isnan(raw)])[0, 1] == pytest.approx(1)
    assert f"income {missing}" in data.notes[0]


def test_counties_have_names_and_mostly_a_place(election):
    assert list(election.graph.nodes) == sorted(election.graph.nodes)
    assert {len(fips) for fips in election.graph.nodes} == {5}
    assert election.nodes.loc["35013", ["county", "state"]].tolist() == ["Doña Ana County", "NM"]
    assert election.nodes.loc["27165", ["county", "state"]].tolist() == ["Watonwan County", "MN"]
    assert election.nodes.loc["72097", "county"] == "Mayagüez Municipio"
    assert election.nodes[["county", "state"]].notna().all(axis=None)
    assert election.nodes[["longitude", "latitude"]].notna().all(axis=1).sum() == 3104


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("wages",), "target='wages' is unknown; use one of 'income', 'migration'"),
        (("income", 2014), "year=2014 is unknown; use one of 2012, 2016"),
        (("income", "2012"), "year='2012' is unknown"),
    ],
)
def test_bad_arguments_of_county_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_county(*arguments)
