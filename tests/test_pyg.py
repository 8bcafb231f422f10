"""PyTorch Geometric data in one call, with one's own masks."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.data")

from torch_geometric.data import Data, HeteroData  # noqa: E402

import residua  # noqa: E402
from networks import problem  # noqa: E402
from residua import GraphRegressor  # noqa: E402


def pyg(n=200, **more):
    graph, X, _, truth = problem(n)
    A = graph.adjacency().tocoo()
    part = torch.tensor(np.random.default_rng(0).random(n))
    parts = {"train_mask": part < 0.5, "val_mask": (part >= 0.5) & (part < 0.7), "test_mask": part >= 0.7}
    x, y = torch.tensor(X, dtype=torch.float32), torch.tensor(truth)
    edge_index = torch.tensor(np.stack([A.row, A.col]), dtype=torch.int64)
    return Data(**{"x": x, "edge_index": edge_index, "y": y, **parts, **more})


def test_everything_comes_as_it_is_in_the_data():
    data = pyg()
    graph, X, y, known, validation = residua.from_pyg(data)
    assert graph.n_nodes == 200
    np.testing.assert_array_equal(X, data.x.numpy())
    np.testing.assert_array_equal(y, data.y.numpy())
    np.testing.assert_array_equal(known, data.train_mask.numpy())
    np.testing.assert_array_equal(validation, data.val_mask.numpy())


def test_masks_end_where_labels_do_and_are_every_label_where_there_are_none():
    data = pyg()
    data.y[:20] = float("nan")
    found = residua.from_pyg(data)
    assert not (found.known | found.validation)[:20].any()
    np.testing.assert_array_equal(found.known[20:], data.train_mask.numpy()[20:])
    del data.train_mask, data.val_mask
    found = residua.from_pyg(data)
    assert found.validation is None
    np.testing.assert_array_equal(found.known, np.arange(200) >= 20)


def test_a_column_is_a_vector_and_several_targets_stay():
    assert residua.from_pyg(pyg(y=torch.ones(200, 1))).y.shape == (200,)
    assert residua.from_pyg(pyg(y=torch.ones(200, 2))).y.shape == (200, 2)
    assert residua.from_pyg(pyg(x=None, num_nodes=200)).X is None


def test_one_of_several_splits_is_chosen():
    masks = torch.tensor(np.random.default_rng(0).random((200, 3)) < 0.4)
    data = pyg(train_mask=masks, val_mask=~masks)
    np.testing.assert_array_equal(residua.from_pyg(data, split=2).known, masks[:, 2])
    with pytest.raises(ValueError, match=r"data\.train_mask has 3 splits; choose one, such as split=0"):
        residua.from_pyg(data)
    with pytest.raises(ValueError, match="split=3 is not from 0 to 2"):
        residua.from_pyg(data, split=3)


def test_hetero_data_of_one_node_type():
    data = HeteroData()
    data["town"].x, data["town"].y = torch.ones(4, 2), torch.arange(4.0)
    data["town"].train_mask = torch.tensor([True, True, True, False])
    data["town", "road", "town"].edge_index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    graph, X, y, known, validation = residua.from_pyg(data)
    assert (graph.edge_types, X.shape, y.tolist(), known.sum(), validation) == (
        ("road",),
        (4, 2),
        [0, 1, 2, 3],
        3,
        None,
    )


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"y": None}, "data has no y; set data.y"),
        ({"y": torch.ones(3)}, r"data.y has shape \(3,\) but data has 200 nodes"),
        ({"train_mask": torch.ones(200)}, "data.train_mask has dtype float32; give flags: data.train_mask.bool"),
        ({"train_mask": torch.ones(7, dtype=bool)}, r"data.train_mask has shape \(7,\) but data has 200 nodes"),
        ({"train_mask": torch.ones(200, dtype=bool)}, "nodes are in train_mask and in val_mask; put each in one"),
        ({"train_mask": None}, "data has a val_mask and no train_mask"),
    ],
)
def test_what_cannot_be_right_is_refused(more, match):
    with pytest.raises(ValueError, match=match):
        residua.from_pyg(pyg(**more))


def test_a_fit_sees_the_training_labels_and_is_judged_by_those_of_validation():
    graph, X, y, known, validation = residua.from_pyg(pyg())
    model = GraphRegressor("linear").fit(X, np.where(known, y, np.nan), graph=graph)
    np.testing.assert_array_equal(~np.isnan(model.y_), known)
    assert np.isfinite(residua.metrics.r2(y[validation], model.predict()[validation]))
