"""A report counts what a graph holds."""

import numpy as np
import pytest

from residua.graph import Graph


def test_report_counts_what_is_there():
    graph = Graph.from_edges(
        ["a", "b", "c", "c", "d"],
        ["b", "c", "c", "d", "c"],
        type=["road", "rail", "rail", "road", "road"],
        nodes=list("abcdef"),
    )
    report = graph.describe(labelled=[np.nan, 1.0, np.nan, np.nan, np.nan, 0.0])
    assert report.edges == {"road": 2, "rail": 2}
    assert (report.n_nodes, report.self_loops, report.isolates, report.components) == (6, 1, 2, 3)
    assert (report.largest_component, report.unlabelled_components, report.unlabelled_nodes) == (4, 1, 1)
    text = str(report)
    for line in [
        "edges          4 (road 2, rail 2)",
        "isolates       2",
        "without label  1 (nodes in them: 1)",
    ]:
        assert line in text.splitlines()
    assert "A row is an undirected edge" in text
    assert "without label" not in str(graph.describe())


def test_report_takes_a_mask_or_labels_only():
    graph = Graph.from_edges([0, 2], [1, 3])
    assert graph.describe(np.array([True, False, False, False])).unlabelled_components == 1
    assert graph.describe(np.zeros(4, bool)).unlabelled_nodes == 4
    with pytest.raises(ValueError, match=r"labelled has shape \(3,\) but graph has 4 nodes"):
        graph.describe([True, False, True])
    with pytest.raises(ValueError, match="labelled has dtype int64; give a boolean mask, or y with NaN"):
        graph.describe([1, 0, 0, 1])
