"""The paper's data sets, where their files are here: sizes, scales and filling as the authors have them."""

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import residua
from residua.datasets import available, fetch, load_county, load_transport, load_twitch
from residua.metrics import r2
from residua.reproduction.datasets import files, transport
from residua.reproduction.datasets.county import TARGETS
from residua.reproduction.datasets.twitch import _components, _read_features

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def election(data_folder):
    return load_county("election")


@pytest.fixture(scope="module")
def anaheim(data_folder):
    return load_transport("anaheim")


@pytest.fixture(scope="module")
def chicago(data_folder):
    return load_transport("chicago")


@pytest.fixture(scope="module")
def twitch(data_folder):
    return load_twitch()


@pytest.fixture(params=["election", "anaheim", "chicago", "twitch"])
def any_data(request):
    return request.getfixturevalue(request.param)


def standardised(table):
    return np.allclose(table.mean(), 0, atol=1e-12) and np.allclose(np.std(table, axis=0, ddof=1), 1)


def test_every_row_follows_the_nodes_and_every_number_is_finite(any_data):
    ids = list(any_data.graph.nodes)
    assert list(any_data.X.index) == list(any_data.nodes.index) == ids
    assert any_data.y.shape == (len(ids),)
    for numbers in (any_data.X.to_numpy(), any_data.y):
        assert numbers.dtype == np.float64
        assert np.isfinite(numbers).all()


def test_sizes_are_those_of_the_paper(any_data):
    sizes = {
        "county-election-2012": (3234, 12717, 6),
        "anaheim": (914, 3881, 4),
        "chicago": (2176, 15104, 4),
        "twitch-PTBR": (1912, 31299, 8),
    }
    assert (any_data.graph.n_nodes, any_data.graph.n_edges, any_data.X.shape[1]) == sizes[any_data.name]


def test_catalogue_finds_all_files(data_folder):
    assert all(entry.present for entry in available() if entry.files)
    assert fetch("anaheim") == tuple(
        data_folder / "transportation" / "Anaheim" / f"Anaheim_{kind}.tntp" for kind in ("flow", "net")
    )


# Counties


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
def test_label_and_features_are_the_seven_statistics(data_folder, target, year):
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


# Roads


@pytest.mark.parametrize(("name", "follows", "shares"), [("anaheim", 2206, 1675), ("chicago", 8096, 7008)])
def test_edge_types_have_the_counts_of_the_paper_and_share_no_edge(request, name, follows, shares):
    graph = request.getfixturevalue(name).graph
    report = graph.describe()
    assert report.edges == {"follows": follows, "shares": shares}
    assert (report.components, report.self_loops, report.weighted) == (1, 0, False)
    assert graph.adjacency("follows").multiply(graph.adjacency("shares")).nnz == 0


def test_edges_join_the_links_they_should(chicago):
    ends = chicago.nodes[["tail", "head"]].to_numpy()
    follows, shares = (chicago.graph.adjacency(name).tocoo() for name in ("follows", "shares"))
    tail, head = ends.T
    assert ((head[follows.row] == tail[follows.col]) | (tail[follows.row] == head[follows.col])).all()
    assert ((head[shares.row] == head[shares.col]) ^ (tail[shares.row] == tail[shares.col])).all()


@pytest.mark.parametrize(("name", "streets"), [("anaheim", 280), ("chicago", 1088)])
def test_opposite_directions_of_a_street_can_be_a_type_of_their_own(request, name, streets):
    data = request.getfixturevalue(name)
    graph = load_transport(name, opposite=True).graph
    opposite = graph.adjacency("opposite").tocoo()
    tail, head = data.nodes[["tail", "head"]].to_numpy().T
    assert graph.describe().edges["opposite"] == streets
    assert ((head[opposite.row] == tail[opposite.col]) & (tail[opposite.row] == head[opposite.col])).all()
    together = graph.adjacency("follows") + graph.adjacency("opposite")
    assert abs(together - data.graph.adjacency("follows")).max() == 0
    assert abs(graph.adjacency("shares") - data.graph.adjacency("shares")).max() == 0


@pytest.mark.parametrize("name", ["anaheim", "chicago"])
def test_trips_add_features_and_change_nothing_else(request, name):
    plain, more = request.getfixturevalue(name), load_transport(name, trips=True)
    added = [f"trips_{reach}" for reach in (2, 4, 8, 16, "all")]
    assert list(more.X.columns) == [*plain.X.columns, *added]
    assert standardised(more.X[added])
    pd.testing.assert_frame_equal(more.X[list(plain.X.columns)], plain.X)
    pd.testing.assert_frame_equal(more.nodes, plain.nodes)
    assert (more.y == plain.y).all()
    assert abs(more.graph.adjacency("follows") - plain.graph.adjacency("follows")).max() == 0


def test_trips_do_not_know_the_traffic(chicago, monkeypatch, rng):
    expected = load_transport("chicago", trips=True).X
    read = transport._read_links
    monkeypatch.setattr(transport, "_read_links", lambda network: read(network).assign(volume=rng.permuted(chicago.y)))
    changed = load_transport("chicago", trips=True)
    assert (changed.y != chicago.y).mean() > 0.9
    pd.testing.assert_frame_equal(changed.X, expected)


def test_trips_are_the_betweenness_of_links_on_a_map_without_ways_through_zones(data_folder, monkeypatch):
    links = transport._read_links(transport.NETWORKS["anaheim"])
    links["free_flow_time"] = (100 * links["free_flow_time"]).round()  # networkx shares trips only if sums are exact
    monkeypatch.setattr(transport, "_read_links", lambda network: links)
    X = load_transport("anaheim", trips=True).X
    roads = nx.DiGraph()
    for tail, head, time in zip(links["tail"], links["head"], links["free_flow_time"], strict=True):
        roads.add_edge(tail, ("to", head) if head <= 38 else head, weight=time)
    junctions = [*range(1, 417)]
    arrivals = [("to", junction) if junction <= 38 else junction for junction in junctions]
    to_its_own = _trips_of_zones_to_themselves(roads)
    counts = nx.edge_betweenness_centrality_subset(roads, junctions, arrivals, normalized=False, weight="weight")
    found = [counts[link] - to_its_own.get(link, 0) for link in roads.edges]
    expected = np.sqrt(np.maximum(found, 0))
    expected = pd.Series(expected, [f"{a}-{b[1] if isinstance(b, tuple) else b}" for a, b in roads.edges])
    scaled = (expected - expected.mean()) / expected.std()
    assert X["trips_all"].to_numpy() == pytest.approx(scaled.loc[list(X.index)].to_numpy(), abs=1e-6)


def test_time_spent_on_links_is_that_of_all_trips_within_reach(data_folder):
    network = transport.NETWORKS["chicago"]
    links = transport._read_links(network)
    roads = nx.DiGraph()
    roads.add_weighted_edges_from(links[["tail", "head", "free_flow_time"]].itertuples(index=False))
    times = [list(found.values()) for _, found in nx.all_pairs_dijkstra_path_length(roads)]
    times, mean = np.concatenate(times), links["free_flow_time"].mean()
    spent = transport._trips(links, network).pow(2).mul(links["free_flow_time"], axis=0).sum()
    assert spent.to_numpy() == pytest.approx([times[times <= reach * mean].sum() for reach in (2, 4, 8, 16, np.inf)])


def _trips_of_zones_to_themselves(roads):
    """By link: networkx counts the trips of a zone to its own arrival too."""
    found = {}
    for zone in range(1, 39):
        if nx.has_path(roads, zone, ("to", zone)):
            listed = list(nx.all_shortest_paths(roads, zone, ("to", zone), weight="weight"))
            for route in listed:
                for link in nx.utils.pairwise(route):
                    found[link] = found.get(link, 0) + 1 / len(listed)
    return found


def test_trips_need_times_above_0(data_folder, monkeypatch):
    read = transport._read_links
    monkeypatch.setattr(transport, "_read_links", lambda network: read(network).assign(free_flow_time=0.0))
    assert load_transport("anaheim").X["free_flow_time"].eq(0).all()
    with pytest.raises(ValueError, match=r"link 1-117 has free-flow time 0; trips=True needs times above 0"):
        load_transport("anaheim", trips=True)


def test_links_are_ordered_and_named_by_their_ends(anaheim, chicago):
    for data, first in ((anaheim, 1), (chicago, 388)):
        ends = [(int(tail), int(head)) for tail, head in data.nodes[["tail", "head"]].to_numpy()]
        assert ends == sorted(ends)
        assert min(min(pair) for pair in ends) == first
        assert list(data.graph.nodes) == [f"{tail}-{head}" for tail, head in ends]


def test_road_features_and_volume_are_standardised(anaheim, chicago):
    assert list(anaheim.X.columns) == ["capacity", "length", "free_flow_time", "speed"]
    assert standardised(anaheim.X)
    assert standardised(anaheim.y)
    assert standardised(chicago.X.drop(columns="speed"))
    assert (chicago.X["speed"] == 0).all()
    assert any("speed is 0 on every link" in note for note in chicago.notes)


def test_a_link_has_the_numbers_of_the_file(anaheim):
    """Volumes of 1-117 and 2-87 in the file, in units of the standard deviation."""
    y = pd.Series(anaheim.y, index=anaheim.graph.nodes)
    spread = (9662.5 - 7074.9) / (y["2-87"] - y["1-117"])
    assert f"standard deviation {spread:.6g}" in anaheim.notes[2]


def test_chicago_has_midpoints_and_anaheim_none(anaheim, chicago):
    assert list(anaheim.nodes.columns) == ["tail", "head"]
    assert list(chicago.nodes.columns) == ["tail", "head", "x", "y"]
    follows = chicago.graph.adjacency("follows").tocoo()
    place = chicago.nodes[["x", "y"]].to_numpy()
    spread = place.std()
    assert np.median(np.linalg.norm(place[follows.row] - place[follows.col], axis=1)) < 0.2 * spread


def test_unknown_city_is_named():
    with pytest.raises(ValueError, match="city='boston' is unknown; use one of 'anaheim', 'chicago'"):
        load_transport("boston")


# Twitch


def test_components_are_the_leading_singular_vectors(rng):
    rows = sp.csr_array((rng.random((200, 40)) < 0.2).astype(float))
    U, _, _ = np.linalg.svd(rows.toarray().T)
    expected = U[:, :8] * np.sign(U[:, :8].sum(axis=0))
    np.testing.assert_allclose(_components(rows), expected, atol=1e-9)


def test_components_of_six_countries_have_positive_sums(data_folder, twitch):
    features = [_read_features(path) for path in sorted(data_folder.glob("twitch/*/*_features.json"))]
    rows = sp.vstack(features, format="csr")
    assert rows.shape == (34118, 3170)
    assert rows.max() == 1
    vectors = _components(rows)
    assert (vectors.sum(axis=0) > 0).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-10)
    strength = np.linalg.norm(rows @ vectors, axis=0)
    assert (np.diff(strength) < 0).all()
    np.testing.assert_allclose(rows.T @ (rows @ vectors), vectors * strength**2, atol=1e-6)
    np.testing.assert_allclose(twitch.X, features[4] @ vectors, atol=1e-10)


def test_views_are_standardised_logarithms_and_features_are_left_alone(twitch):
    assert standardised(twitch.y)
    assert np.corrcoef(np.log1p(twitch.nodes["views"]), twitch.y)[0, 1] == pytest.approx(1)
    assert twitch.nodes["views"].min() == 0
    assert not standardised(twitch.X)


def test_two_loads_agree_to_the_last_bit(twitch):
    assert (load_twitch().X.to_numpy() == twitch.X.to_numpy()).all()


@pytest.mark.parametrize(
    ("country", "nodes", "edges"),
    [("DE", 9498, 153138), ("ENGB", 7126, 35324), ("ES", 4648, 59382), ("FR", 6549, 112666), ("RU", 4385, 37304)],
)
def test_other_countries_load_too(data_folder, country, nodes, edges):
    data = load_twitch(country)
    assert (data.graph.n_nodes, data.graph.n_edges) == (nodes, edges)
    assert any("listed twice" in note for note in data.notes[3:]) == (country == "FR")


def test_unknown_country_is_named():
    with pytest.raises(ValueError, match="country='BR' is unknown; use one of 'DE', 'ENGB'"):
        load_twitch("BR")


# Reference numbers


@pytest.mark.parametrize(
    ("load", "reference"),
    [
        (lambda: load_county("income"), 0.531),
        (lambda: load_county("education"), 0.343),
        (lambda: load_county("unemployment"), 0.694),
        (lambda: load_county("election"), 0.590),
        (lambda: load_transport("anaheim"), 0.481),
        (lambda: load_transport("chicago"), 0.627),
        (load_twitch, -0.061),
    ],
    ids=["income", "education", "unemployment", "election", "anaheim", "chicago", "twitch"],
)
@pytest.mark.filterwarnings("ignore:.*components have no label:UserWarning")
def test_label_propagation_reaches_the_reference(data_folder, load, reference):
    data = load()
    n, scores = len(data.y), []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(n)
        labelled, test = order[: int(0.6 * n)], order[int(0.8 * n) :]
        values = np.full(n, np.nan)
        values[labelled] = data.y[labelled]
        scores.append(r2(data.y[test], residua.propagate(values, data.graph, fallback=0.0)[test]))
    # Scores spread by 0.03 to 0.055, so a mean of five by up to 0.025; the reference by less.
    assert np.mean(scores) == pytest.approx(reference, abs=0.06)


# Files that are not what they should be


@pytest.mark.parametrize(
    ("load", "name", "content"),
    [
        (lambda: load_county("income"), "election/adjacency.txt", "\t\t\tnothing\n"),
        (lambda: load_county("income"), "election/income.csv", "FIPS,Income\n1001,1\n"),
        (lambda: load_county("income"), "election/education.csv", "FIPS,BachelorRate2012\n1001,many\n"),
        (lambda: load_transport("anaheim"), "transportation/Anaheim/Anaheim_net.tntp", "<NUMBER OF LINKS> 2\n"),
        (lambda: load_transport("anaheim"), "transportation/Anaheim/Anaheim_net.tntp", "1 2 3 ;\n"),
        (lambda: load_transport("anaheim"), "transportation/Anaheim/Anaheim_flow.tntp", "1 117 : 5 5 ;\n"),
        (load_twitch, "twitch/PTBR/musae_PTBR_features.json", '{"0": [1, 2'),
        (load_twitch, "twitch/PTBR/musae_PTBR_features.json", '{"7": [1, 2]}'),
        (load_twitch, "twitch/PTBR/musae_PTBR_features.json", '{"0": [1, 9999]}'),
        (load_twitch, "twitch/PTBR/musae_PTBR_edges.csv", "a,b\n1,2\n"),
        (load_twitch, "twitch/PTBR/musae_PTBR_target.csv", "days,mature,views,partner,new_id\n1,True,5,True,0\n"),
    ],
)
def test_malformed_file_is_named_in_one_line(data_folder, tmp_path, monkeypatch, load, name, content):
    for file in files.checksums():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).symlink_to(data_folder / file)
    (tmp_path / name).unlink()
    (tmp_path / name).write_text(content)
    monkeypatch.setenv("RESIDUA_DATA", str(tmp_path))
    monkeypatch.setattr(files, "is_intact", lambda path, name: True)
    with pytest.raises(ValueError, match="is malformed") as caught:
        load()
    assert "\n" not in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)
