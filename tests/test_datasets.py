from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from residua.datasets import Dataset, load_elect80


@pytest.fixture(scope="module")
def elect80():
    return load_elect80()


def test_every_row_follows_the_nodes_of_the_graph(elect80):
    ids = list(elect80.graph.nodes)
    assert list(elect80.X.index) == ids
    assert list(elect80.nodes.index) == ids
    assert elect80.y.shape == (len(ids),)


def test_elect80_has_the_published_size(elect80):
    degree = elect80.graph.adjacency().sum(axis=1)
    assert (elect80.graph.n_nodes, elect80.graph.n_edges) == (3107, 9063)
    assert list(np.array(elect80.graph.nodes)[degree == 0]) == ["25007", "25019", "36085", "53055"]
    assert all(name in elect80.notes[1] for name in ["25007", "25019", "36085", "53055"])


def test_fips_codes_keep_their_zeros(elect80):
    assert elect80.X.index[0] == "01001"
    assert {len(fips) for fips in elect80.graph.nodes} == {5}


def test_columns_are_finite_numbers_and_the_label_is_not_a_feature(elect80):
    assert list(elect80.X.columns) == ["college", "homeownership", "income"]
    assert list(elect80.nodes.columns) == ["longitude", "latitude"]
    for numbers in (elect80.X.to_numpy(), elect80.y, elect80.nodes.to_numpy()):
        assert numbers.dtype == np.float64
        assert np.isfinite(numbers).all()


def test_a_county_has_the_numbers_of_the_file(elect80):
    autauga = list(elect80.graph.nodes).index("01001")
    assert elect80.y[autauga] == 0.516046
    assert elect80.X.loc["01001"].to_dict() == {
        "college": 0.483534,
        "homeownership": 0.379513,
        "income": 8.68845,
    }
    assert tuple(elect80.nodes.loc["01001"]) == (-86.6415, 32.5422)


def test_counties_that_touch_are_near(elect80):
    edges = elect80.graph.adjacency().tocoo()
    place = elect80.nodes.to_numpy()
    distance = np.linalg.norm(place[edges.row] - place[edges.col], axis=1)
    assert np.median(distance) < 0.6  # degrees
    assert distance.max() < 5


def test_least_squares_reaches_the_reference_r2(elect80):
    X = np.column_stack([np.ones(3107), elect80.X])
    fitted = X @ np.linalg.lstsq(X, elect80.y)[0]
    assert 1 - np.var(elect80.y - fitted) / np.var(elect80.y) == pytest.approx(0.47, abs=0.03)


def test_two_loads_share_no_numbers(elect80):
    other = load_elect80()
    other.y[0] = other.X.iloc[0, 0] = -1
    assert elect80.y[0] > 0
    assert elect80.X.iloc[0, 0] > 0


def test_a_dataset_is_frozen_and_prints_in_a_line(elect80):
    assert isinstance(elect80, Dataset)
    assert repr(elect80) == "Dataset('elect80': 3,107 nodes, 9,063 edges, 3 features)"
    assert "CC0" in elect80.source
    with pytest.raises(FrozenInstanceError):
        elect80.y = None
