"""The paper's methods by the authors' protocol: one training, and no look at the test labels."""

import pytest

from residua.reproduction import tables, transductive
from residua.reproduction.registry import Options
from residua.reproduction.runs import QUICK, Task


def test_one_training_serves_a_method_and_its_propagation():
    todo = tables.tasks("table1", ("MLP", "LP-MLP", "C-MLP", "LP"), Options(seeds=2, datasets=("twitch",)))
    assert [(task.method, task.seed) for task in todo] == [(m, s) for s in (1, 2) for m in ("MLP", "C-MLP", "LP")]


@pytest.mark.parametrize("dataset", ["ising-", "unemployment", "anaheim", "twitch"])
def test_a_training_of_the_paper_does_not_see_the_test_labels(dataset, monkeypatch, data_folder, flip_labels):
    task = Task("table1", dataset, "C-GNN", 1, QUICK)
    results = transductive.work(task)["C-GNN"]
    assert all(-1 < alpha < 1 for alpha in results["alpha"])
    assert len(results["alpha"]) == (2 if dataset == "anaheim" else 1)
    flip_labels()
    again = transductive.work(task)["C-GNN"]
    assert again.pop("score") != results.pop("score")
    assert again == results


def test_a_base_and_its_propagation_come_from_one_training(monkeypatch):
    base = pytest.importorskip("residua.bases.networks.base")
    trained, fit = [], base.NetworkBase._fit
    monkeypatch.setattr(base.NetworkBase, "_fit", lambda *given: trained.append(1) or fit(*given))
    results = transductive.work(Task("table1", "ising+", "MLP", 0, QUICK))
    assert results.keys() == {"MLP", "LP-MLP"}
    assert len(trained) == 1
    results = transductive.work(Task("table1", "ising-", "C-GNN", 0, QUICK))
    assert results["C-GNN"]["alpha"][0] < 0
    assert results["C-GNN"]["beta"] > 0
