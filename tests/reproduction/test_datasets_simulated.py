"""Data sets that are generated, and the contact network from files of one's own."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import residua
from residua.datasets import load_contacts, simulate_contacts, simulate_ising
from residua.metrics import sign_accuracy
from residua.reproduction.datasets.contacts import PEOPLE, TIES
from residua.reproduction.datasets.ising import draw_spins

# Ising


@pytest.fixture(scope="module")
def ising():
    return simulate_ising()


def test_ising_has_the_size_of_the_paper(ising):
    assert (ising.graph.n_nodes, ising.graph.n_edges) == (1225, 2380)
    assert set(ising.y) == {-1.0, 1.0}
    assert ising.y.dtype == np.float64


def test_ising_features_are_coordinates_from_minus_one_to_one(ising):
    assert ising.X.shape == (1225, 2)
    assert ising.X.loc[0].tolist() == [-1.0, -1.0]
    assert ising.X.loc[1224].tolist() == [1.0, 1.0]
    assert ising.X.loc[1].tolist() == pytest.approx([-1.0, -1 + 2 / 34])


@pytest.mark.parametrize("size", [2, 3, 4, 35])
def test_grid_joins_neighbours_without_wrapping_round(size):
    data = simulate_ising(size, sweeps=1)
    edges = data.graph.adjacency().tocoo()
    place = data.nodes.to_numpy()
    assert data.graph.n_edges == 2 * size * (size - 1)
    assert (abs(place[edges.row] - place[edges.col]).sum(axis=1) == 1).all()


def test_spins_depend_on_the_seed_alone(ising):
    assert (simulate_ising().y == ising.y).all()
    assert (simulate_ising(random_state=1).y != ising.y).any()


def enumerated(field, coupling):
    """Exact means of every spin and of every product of two, by summing over all configurations."""
    n = field.size
    spins = np.array(list(product([-1.0, 1.0], repeat=n)))
    grid = spins.reshape(-1, *field.shape)
    bonds = (grid[:, 1:] * grid[:, :-1]).sum(axis=(1, 2)) + (grid[:, :, 1:] * grid[:, :, :-1]).sum(axis=(1, 2))
    weight = np.exp(coupling * bonds + spins @ field.ravel())
    weight /= weight.sum()
    return weight @ spins, np.einsum("s,si,sj->ij", weight, spins, spins)


@pytest.mark.parametrize("coupling", [0.35, -0.35])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4)])
def test_spins_follow_the_exact_distribution(coupling, shape):
    field = np.linspace(-0.4, 0.7, shape[0] * shape[1]).reshape(shape)
    n = 20_000
    grids = np.broadcast_to(field, (n, *shape))
    spins = draw_spins(grids, coupling, 40, np.random.default_rng(5)).reshape(n, -1)
    mean, second = enumerated(field, coupling)
    error = np.sqrt((1 - mean**2) / n)
    assert (abs(spins.mean(axis=0) - mean) < 4.5 * error).all()
    assert (abs(spins.T @ spins / n - second) < 4.5 / np.sqrt(n)).all()


@pytest.mark.parametrize(("coupling", "reference"), [(0.35, 0.787), (-0.35, 0.291)])
def test_label_propagation_reaches_the_reference_on_ising(coupling, reference):
    scores = []
    for seed in range(10):
        data = simulate_ising(coupling=coupling, random_state=seed)
        order = np.random.default_rng(seed).permutation(len(data.y))
        labelled, test = order[:735], order[980:]
        values = np.full(len(data.y), np.nan)
        values[labelled] = data.y[labelled]
        scores.append(sign_accuracy(data.y[test], residua.propagate(values, data.graph)[test]))
    # Both the reference and this mean have a standard error of about 0.01.
    assert np.mean(scores) == pytest.approx(reference, abs=0.04)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 1}, "size=1 is below 2"),
        ({"size": 3.5}, "size=3.5 is not a whole number"),
        ({"coupling": np.nan}, "coupling=nan"),
        ({"field": np.inf}, "field=inf"),
        ({"sweeps": 0}, "sweeps=0 is below 1"),
        ({"random_state": None}, "random_state=None is not a whole number"),
    ],
)
def test_bad_arguments_of_ising_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulate_ising(**arguments)


# Contacts


@pytest.fixture(scope="module")
def contacts():
    return simulate_contacts()


def opposite_edges(data):
    edges = data.graph.adjacency().tocoo()
    return int((data.y[edges.row] != data.y[edges.col]).sum()) // 2


@pytest.mark.parametrize("seed", range(5))
def test_simulated_contacts_have_the_counts_of_the_paper(seed):
    data = simulate_contacts(seed)
    assert (data.graph.n_nodes, data.graph.n_edges) == (1888, 2096)
    assert opposite_edges(data) == 2007
    assert data.graph.describe().components == 1
    assert data.graph.describe().self_loops == 0
    assert 0.3 < (data.y > 0).mean() < 0.7


def test_simulated_contacts_say_that_they_are_generated(contacts):
    assert "Generated" in contacts.notes[0]
    assert "Generated" in contacts.source
    assert repr(contacts) == "Dataset('contacts-simulated': 1,888 nodes, 2,096 edges, 6 features)"


def test_contact_features_are_one_race_each_and_standardised_behaviour(contacts):
    assert list(contacts.X.columns) == [f"race_{k}" for k in range(1, 6)] + ["behaviour"]
    assert (contacts.X.iloc[:, :5].sum(axis=1) == 1).all()
    assert contacts.X["behaviour"].mean() == pytest.approx(0)
    assert contacts.X["behaviour"].std() == pytest.approx(1)
    missing = contacts.nodes["behav"] < 0
    assert missing.any()
    assert contacts.X["behaviour"][missing].to_numpy() == pytest.approx(0)
    assert f"missing for {missing.sum():,} people" in " ".join(contacts.notes)


def test_a_few_people_have_many_partners_and_most_have_one(contacts):
    degree = contacts.graph.degree
    assert np.median(degree) == 1
    assert degree.max() > 30


def test_simulated_contacts_depend_on_the_seed_alone(contacts):
    again, other = simulate_contacts(), simulate_contacts(1)
    pd.testing.assert_frame_equal(again.X, contacts.X)
    assert (again.y == contacts.y).all()
    assert (other.y != contacts.y).any()


DECOYS = {
    # rid: study, sex, race, behaviour
    9001: (2, 0, 1, 1),  # another study
    9002: (1, -9, 1, 1),  # sex unknown
    9003: (1, 0, 1, 1),  # known only by a tie of another type
    9004: (1, 0, 1, 2),  # 9004 and 9005: a small component
    9005: (1, 1, 2, 0),
}


def write_contacts(data, folder):
    """Write a contact network in the two files of ICPSR 22140, among rows that a reader must leave out."""
    people = data.nodes.rename(columns=str.upper).rename_axis("RID").reset_index().assign(STUDYNUM=1, AGE=30)
    decoys = pd.DataFrame(
        [(rid, *row) for rid, row in DECOYS.items()], columns=["RID", "STUDYNUM", "SEX", "RACE", "BEHAV"]
    )
    edges = data.graph.adjacency().tocoo()
    once = edges.row < edges.col
    pairs = [(data.graph.nodes[a], data.graph.nodes[b]) for a, b in zip(edges.row[once], edges.col[once], strict=True)]
    first, last = data.graph.nodes[[0, -1]]
    ties = [(1, b, a, 3) for a, b in pairs]
    ties += [(1, *pairs[0], 3), (1, first, first, 3), (1, first, last, 1), (2, first, last, 3), (2, 9001, first, 3)]
    ties += [(1, 9002, first, 3), (1, 9003, first, 2), (1, 9004, 9005, 3), (1, 9999, first, 3)]
    tables = {
        PEOPLE: pd.concat([decoys, people.iloc[::-1]])[["AGE", "STUDYNUM", "RID", "SEX", "RACE", "BEHAV"]],
        TIES: pd.DataFrame(ties, columns=["STUDYNUM", "ID1", "ID2", "TIETYPE"]),
    }
    for name, table in tables.items():
        (folder / name).parent.mkdir(parents=True)
        table.to_csv(folder / name, sep="\t", index=False, na_rep=" ")


def test_contacts_come_back_from_files_as_they_were(contacts, tmp_path):
    write_contacts(contacts, tmp_path)
    loaded = load_contacts(tmp_path)
    assert (loaded.graph.nodes == contacts.graph.nodes).all()
    assert (loaded.graph.adjacency() != contacts.graph.adjacency()).nnz == 0
    pd.testing.assert_frame_equal(loaded.X, contacts.X)
    assert (loaded.y == contacts.y).all()
    assert repr(loaded) == "Dataset('contacts': 1,888 nodes, 2,096 edges, 6 features)"
    assert loaded.notes[0] == "Of 1,892 people of study 1, 1 of unknown sex were dropped."
    assert "Of 1,890 people with a tie, the largest connected part keeps 1,888." in loaded.notes


def test_the_unpacked_folder_may_lie_in_the_one_named(contacts, tmp_path):
    write_contacts(contacts, tmp_path / "ICPSR_22140")
    assert load_contacts(str(tmp_path)).graph.n_nodes == 1888


def test_missing_contacts_say_where_to_get_them(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"ICPSR requires your own copy.*simulate_contacts") as caught:
        load_contacts(tmp_path)
    assert str(tmp_path / PEOPLE) in str(caught.value)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (PEOPLE, "STUDYNUM\tRID\tSEX\n1\t2\t0\n", r"lacks the columns RACE, BEHAV"),
        (PEOPLE, "", r"0001-Data\.tsv is malformed"),
        (PEOPLE, "STUDYNUM\tRID\tSEX\tRACE\tBEHAV\n1\t2\t0\t1\t1\n1\t2\t1\t1\t1\n", r"RID is missing or repeated"),
        (PEOPLE, "STUDYNUM\tRID\tSEX\tRACE\tBEHAV\n1\tx\t0\t1\t1\n", r"RID is missing or repeated"),
        (TIES, "STUDYNUM\tID1\tID2\tTIETYPE\n", r"has no tie of type 3"),
        (TIES, "STUDYNUM,ID1,ID2,TIETYPE\n1,2,3,3\n", r"lacks the columns STUDYNUM, ID1, ID2, TIETYPE"),
    ],
)
def test_malformed_contacts_are_refused_in_one_line(contacts, tmp_path, file, content, message):
    write_contacts(contacts, tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_contacts(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / file) in str(caught.value)
