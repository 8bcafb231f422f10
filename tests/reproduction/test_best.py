"""The best protocol: weights, what chooses, and which labels a model knows when."""

from dataclasses import replace

import numpy as np
import pytest

from residua import best_average
from residua.reproduction import best, sets
from residua.reproduction.datasets import transport
from residua.reproduction.registry import Options
from residua.reproduction.runs import QUICK, Record, Task, read
from residua.reproduction.summary import Cell


def cell(mean, reference):
    return Cell("election", "GNN", (mean - 0.01, mean + 0.01), reference)


def test_best_weights_are_those_of_a_search_over_the_simplex(rng):
    y = rng.normal(size=60)
    predictions = np.stack([y + rng.normal(size=60) * noise for noise in (0.5, 0.7, 3.0)])
    found = best_average.best_weights(predictions, y)
    grid = np.array([(a, b, 1 - a - b) for a in np.linspace(0, 1, 201) for b in np.linspace(0, 1, 201) if a + b <= 1])
    errors = ((y - grid @ predictions) ** 2).mean(axis=1)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    assert found == pytest.approx(grid[errors.argmin()], abs=0.01)


def test_resampled_weights_keep_more_models_and_predict_new_labels_better(rng):
    gains, kept = [], []
    for _ in range(20):
        y = rng.normal(size=1060)
        predictions = y + rng.normal(size=1060) + 0.3 * rng.normal(size=(9, 1060))
        seen = predictions[:, :60], y[:60]
        alone, shared = best_average.best_weights(*seen), best_average.resampled_weights(*seen, 0)
        errors = [np.mean((y - weights @ predictions)[60:] ** 2) for weights in (alone, shared)]
        gains.append(errors[0] - errors[1])
        kept.append((shared > 0.01).sum() - (alone > 0.01).sum())
        assert shared.sum() == pytest.approx(1)
    assert np.mean(kept) > 1
    assert np.mean(gains) > 2 * np.std(gains) / len(gains) ** 0.5
    np.testing.assert_array_equal(shared, best_average.resampled_weights(*seen, 0))


def test_resampled_weights_follow_the_labels(rng):
    y = rng.normal(size=200)
    predictions = np.stack([y + rng.normal(size=200) * noise for noise in (0.3, 1.0, 1.0, 1.0)])
    assert best_average.resampled_weights(predictions, y, 0)[0] > 0.6


def test_weights_of_models_that_are_all_right_are_finite():
    y = np.ones(5)
    assert best_average.resampled_weights(np.ones((3, 5)), y, 0).sum() == pytest.approx(1)


def other_volumes_in_the_files(monkeypatch):
    """From now on roads are read with their volumes in disorder."""
    read = transport._read_links
    rng = np.random.default_rng(0)
    monkeypatch.setattr(
        transport,
        "_read_links",
        lambda network: read(network).assign(volume=lambda links: rng.permuted(links["volume"])),
    )


def predictions_for_scores(monkeypatch):
    """From now on a score is a sum of the predictions, so that it knows no label but those the predictions know."""
    monkeypatch.setattr(sets, "score", lambda name, y, prediction: float(prediction.sum()))


def test_the_validation_labels_choose_and_the_test_labels_only_report(monkeypatch, data_folder, flip_labels):
    task = Task("best", "anaheim", "best", 1, QUICK)
    predictions_for_scores(monkeypatch)
    results = best.work(task)
    name = max(best.MODELS, key=lambda name: results[name]["validation"])
    assert results["chosen"] == {"score": results[name]["score"], "told": results[name]["told"], "model": name}
    assert "validation" not in results["average"]  # its weights have seen those labels
    assert len(results["C-hops"]["alpha"]) == 3  # the directions of a street have one of their own
    flip_labels()
    other_volumes_in_the_files(monkeypatch)  # labels come from the split, so that features are all that is read
    labels = sets.draw("anaheim", 1, True)[0].y
    assert (labels != sets._fixed("anaheim").y).any()
    assert best.work(task) == results


@pytest.mark.parametrize("method", ["best", best.PAPER, best.ONE_CALL])
def test_models_know_the_validation_labels_only_once_they_are_conditioned_on(method, monkeypatch, flip_labels):
    task = Task("best", "ising-", method, 1, QUICK)
    predictions_for_scores(monkeypatch)
    results = best.work(task)
    flip_labels("validation")
    again = best.work(task)
    for name in best.MODELS if method == "best" else (method,):
        for values in (results[name], again[name]):
            values.pop("validation", None)
            values.pop("cpu_seconds", None)
        assert again[name].pop("told") != results[name].pop("told")
        assert again[name] == results[name]


def test_records_of_other_models_or_another_protocol_are_not_taken_for_these(tmp_path):
    """As after an upgrade."""
    task = Task(best.PROTOCOL, "ising-", "best", 1, QUICK)
    lacking = {name: {"score": 0.5} for name in best.METHODS if name != "C-hops+labels"}
    whole = {name: {"score": 0.5} for name in best.METHODS}
    records = [Record(task, lacking, 1.0), Record(replace(task, experiment="best, once"), whole, 1.0)]
    path = tmp_path / "best.jsonl"
    path.write_text("".join(record.line() + "\n" for record in records))
    best.table(Options(datasets=("ising-",), folder=tmp_path, quick=True), lambda *_: None)
    last = {record.task: record.results for record in read(path)}[task]
    assert last.keys() == set(best.answers(task))
    assert {values["score"] for values in last.values()} != {0.5}


def test_protocol_best(tmp_path, reproduce):
    reproduce("table1", "--protocol", "best", "-o", str(tmp_path), "--datasets", "ising-")
    text = (tmp_path / "best.md").read_text()
    head = f"| {' | '.join(best.METHODS)} |"
    assert text.count(head) == 2  # given the training labels, and those of the validation too
    cells = [line.split(" | ")[1:] for line in text.splitlines() if line.startswith("| ising- |")]
    assert len(cells) == 3  # the third is the difference split by split
    assert cells[0] != cells[1]


def test_what_is_not_asked_for_is_not_done(tmp_path, reproduce):
    words = ("--protocol", "best", "--datasets", "ising-,contacts-simulated", "-o", str(tmp_path))
    reproduce("table1", *words, "--methods", "paper's C-GNN")
    assert {record.task.method for record in read(tmp_path / "best.jsonl")} == {best.PAPER}
    assert "the law itself" not in (tmp_path / "best.md").read_text()
    assert [task.method for task in best.tasks(Options(1, ("ising+",)), ("C-linear",))] == [best.BEST]
    asked = best.tasks(Options(1, ("ising+", "twitch")), best.METHODS)
    assert [task.dataset for task in asked if task.method == "the law itself"] == ["ising+"]


def test_the_average_is_compared_with_the_papers_model_split_by_split():
    """On the same splits the difference is far surer than either mean."""
    scores = {best.AVERAGE: (0.5, 0.7, 0.9), best.PAPER: (0.48, 0.66, 0.91)}
    given = {("twitch", method): Cell("twitch", method, found) for method, found in scores.items()}
    later = {at: replace(cell, scores=cell.scores[:1]) for at, cell in given.items()}
    line = best.paired_table(given, later).splitlines()[-1]
    difference = np.array([0.02, 0.04, -0.01])
    error = difference.std(ddof=1) / 3**0.5
    assert line == f"| twitch | +0.017 ± {error:.3f}, 2 of 3 | +0.020, 1 of 1 |"
