"""The tables: what is compared with what, how it is written, and the command line around it."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import residua
from residua.cli.app import app
from residua.cli.reproduce import _blocks
from residua.reproduction import best, paper, sets, tables, transductive
from residua.reproduction.datasets import transport
from residua.reproduction.neighbour_labels import neighbour_labels
from residua.reproduction.paper import Reference
from residua.reproduction.registry import EXPERIMENTS, Options, chosen, find
from residua.reproduction.runs import QUICK, Record, Task, read
from residua.reproduction.splits import random_split
from residua.reproduction.summary import BELOW, Cell, gather, learned, markdown_table, rows

runner = CliRunner()


def cell(mean, reference):
    return Cell("election", "GNN", (mean - 0.01, mean + 0.01), reference)


@pytest.mark.parametrize(
    ("mean", "sd", "below"),
    [(0.47, 0.03, False), (0.469, 0.03, True), (0.46, 0.05, False), (0.459, 0.05, True), (0.9, 0.03, False)],
)
def test_a_mean_is_marked_when_it_is_further_below_than_chance(mean, sd, below):
    found = cell(mean, Reference(0.50, sd))
    assert found.below is below
    assert (BELOW in found.text()) is below
    assert (BELOW in found.lines()) is below


def test_outdated_cells_are_compared_with_the_logs():
    income, election = paper.CELLS1["income", "C-GNN"], paper.CELLS1["election", "C-GNN"]
    assert (income.mean, income.goal) == (0.81, 0.791)
    assert (election.logs, election.goal) == (0.691, 0.69)
    assert paper.CELLS1["twitch", "LP"].goal == -0.078


def test_text_shows_ours_theirs_and_the_difference():
    assert cell(0.52, Reference(0.50, 0.03, 0.51)).text() == "0.520 ± 0.014 (0.50; 0.510) +0.020"
    assert cell(0.52, Reference(0.50, 0.03)).lines() == ".520±.014\n[dim].500 +.020[/]"
    assert cell(0.52, None).text() == "0.520 ± 0.014"
    assert Cell("a", "b", (0.5,)).sd == 0.0


def test_every_set_has_its_numbers():
    for table, methods in ((paper.CELLS1, paper.METHODS1), (paper.CELLS2, paper.METHODS2)):
        assert table.keys() == {(name, method) for name in sets.SETS for method in methods}
    assert paper.ALPHA.keys() == paper.BETA.keys() == set(sets.SETS)
    assert paper.CELLS2["twitch", "C-SAGE-pool"] == Reference(0.71, 0.03)


def test_alphas_agree_within_a_tenth_and_by_sign():
    assert tables.alpha_agrees(np.array([0.9, 0.2]), (0.95, 0.17))
    assert not tables.alpha_agrees(np.array([0.84]), (0.95,), (0.951,))
    assert not tables.alpha_agrees(np.array([-0.02]), (0.05,))


def test_records_become_rows():
    records = [
        Record(Task("t", name, "GNN", seed), {"GNN": {"score": 0.1 * seed}, "LP-GNN": {"score": 0.5}}, 1.0)
        for seed in range(3)
        for name in ("election", "twitch")
    ]
    table = rows(gather(records, ("LP", "LP-GNN", "GNN"), paper.CELLS1), ("LP", "LP-GNN", "GNN"))
    assert list(table) == ["election", "twitch"]
    nothing, half, mean = table["election"]
    assert nothing is None
    assert half.mean == 0.5
    assert mean.mean == pytest.approx(0.1)
    assert mean.reference == paper.CELLS1["election", "GNN"]


def test_alphas_are_averaged_over_seeds():
    values = [{"score": 0.0, "alpha": [0.9, x], "beta": 2.0 + x} for x in (0.1, 0.3)]
    records = [Record(Task("t", "anaheim", "C-GNN", k), {"C-GNN": v}, 1.0) for k, v in enumerate(values)]
    mean, sd, beta = learned(records, "C-GNN")["anaheim"]
    np.testing.assert_allclose([*mean, *sd, beta], [0.9, 0.2, 0.0, 0.02**0.5, 2.2])
    table = tables.alpha_table(records)
    assert "+0.900 ± 0.000, +0.200 ± 0.141 | +0.95, +0.17 | +0.946, +0.165 | yes | 2.20 | 6.69" in table


@pytest.mark.parametrize(
    ("options", "compared"),
    [(Options(), True), (Options(first_seed=10), True), (Options(first_seed=11), False), (Options(quick=True), False)],
)
def test_the_paper_is_compared_with_on_its_own_splits(options, compared):
    assert options.compared is compared


def test_a_table_of_other_splits_leaves_the_papers_numbers_out(tmp_path):
    for first, shown in ((1, True), (11, False)):
        options = Options(1, ("ising-",), ("LP",), folder=tmp_path / str(first), first_seed=first)
        text = tables.table1(options, lambda *_: None).markdown
        assert ("(0.30; 0.300)" in text) is shown
        assert ("of seeds 1 to 10, other splits than these, and left out" in text) is not shown


def test_one_seed_has_no_spread():
    assert Cell("x", "A", (0.5,)).text() == "0.500"
    assert Cell("x", "A", (0.5,)).lines() == ".500"
    assert Cell("x", "A", (0.4, 0.6)).text() == "0.500 ± 0.141"


def test_markdown_table():
    assert markdown_table(["", "A"], [["x", "1"]]) == "|  | A |\n| --- | ---: |\n| x | 1 |"


def test_one_training_serves_a_method_and_its_propagation():
    todo = tables.tasks("table1", ("MLP", "LP-MLP", "C-MLP", "LP"), Options(seeds=2, datasets=("twitch",)))
    assert [(task.method, task.seed) for task in todo] == [(m, s) for s in (1, 2) for m in ("MLP", "C-MLP", "LP")]


def test_the_parts_of_a_split_tell_apart_what_is_known_and_what_comes_later():
    split = random_split(20, 1)
    y = np.arange(20.0)
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(split.known(y))), split.train)
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(split.later(y))), split.validation)
    assert sorted([*split.train, *split.validation, *split.test]) == list(range(20))


def test_names_are_kept_in_their_order_and_unknown_ones_refused():
    assert chosen(("b", "a"), ("a", "b", "c"), "datasets") == ("a", "b")
    assert chosen(None, ("a", "b"), "datasets") == ("a", "b")
    with pytest.raises(ValueError, match=r"datasets=x is unknown; use a, b\."):
        chosen(("a", "x"), ("a", "b"), "datasets")


def test_best_weights_are_those_of_a_search_over_the_simplex(rng):
    y = rng.normal(size=60)
    predictions = np.stack([y + rng.normal(size=60) * noise for noise in (0.5, 0.7, 3.0)])
    found = best.best_weights(predictions, y)
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
        alone, shared = best.best_weights(*seen), best.resampled_weights(*seen, 0)
        errors = [np.mean((y - weights @ predictions)[60:] ** 2) for weights in (alone, shared)]
        gains.append(errors[0] - errors[1])
        kept.append((shared > 0.01).sum() - (alone > 0.01).sum())
        assert shared.sum() == pytest.approx(1)
    assert np.mean(kept) > 1
    assert np.mean(gains) > 2 * np.std(gains) / len(gains) ** 0.5
    np.testing.assert_array_equal(shared, best.resampled_weights(*seen, 0))


def test_resampled_weights_follow_the_labels(rng):
    y = rng.normal(size=200)
    predictions = np.stack([y + rng.normal(size=200) * noise for noise in (0.3, 1.0, 1.0, 1.0)])
    assert best.resampled_weights(predictions, y, 0)[0] > 0.6


def test_weights_of_models_that_are_all_right_are_finite():
    y = np.ones(5)
    assert best.resampled_weights(np.ones((3, 5)), y, 0).sum() == pytest.approx(1)


def flip_labels(monkeypatch, part="test"):
    """From now on data come with other labels at the nodes of a part of the split."""
    draw = sets.draw

    def flipped(*arguments):
        data, split = draw(*arguments)
        y = data.y.copy()
        y[getattr(split, part)] *= -1
        return replace(data, y=y), split

    monkeypatch.setattr(sets, "draw", flipped)


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


def test_the_validation_labels_choose_and_the_test_labels_only_report(monkeypatch, data_folder):
    task = Task("best", "anaheim", "best", 1, QUICK)
    predictions_for_scores(monkeypatch)
    results = best.work(task)
    name = max(best.MODELS, key=lambda name: results[name]["validation"])
    assert results["chosen"] == {"score": results[name]["score"], "told": results[name]["told"], "model": name}
    assert "validation" not in results["average"]  # its weights have seen those labels
    assert len(results["C-hops"]["alpha"]) == 3  # the directions of a street have one of their own
    flip_labels(monkeypatch)
    other_volumes_in_the_files(monkeypatch)  # labels come from the split, so that features are all that is read
    labels = sets.draw("anaheim", 1, True)[0].y
    assert (labels != sets._fixed("anaheim").y).any()
    assert best.work(task) == results


@pytest.mark.parametrize("method", ["best", best.PAPER])
def test_models_know_the_validation_labels_only_once_they_are_told(method, monkeypatch):
    task = Task("best", "ising-", method, 1, QUICK)
    predictions_for_scores(monkeypatch)
    results = best.work(task)
    flip_labels(monkeypatch, "validation")
    again = best.work(task)
    for name in (best.PAPER,) if method == best.PAPER else best.MODELS:
        for values in (results[name], again[name]):
            values.pop("validation", None)
        assert again[name].pop("told") != results[name].pop("told")
        assert again[name] == results[name]


@pytest.mark.parametrize("dataset", ["ising-", "unemployment", "anaheim", "twitch"])
def test_a_training_of_the_paper_does_not_see_the_test_labels(dataset, monkeypatch, data_folder):
    task = Task("table1", dataset, "C-GNN", 1, QUICK)
    results = transductive.work(task)["C-GNN"]
    assert all(-1 < alpha < 1 for alpha in results["alpha"])
    assert len(results["alpha"]) == (2 if dataset == "anaheim" else 1)
    flip_labels(monkeypatch)
    again = transductive.work(task)["C-GNN"]
    assert again.pop("score") != results.pop("score")
    assert again == results


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


def test_columns_are_broken_into_blocks_that_fit():
    assert _blocks([5, 10, 10, 10], 80) == [[0, 1, 2, 3]]
    assert _blocks([5, 10, 10, 10], 36) == [[0, 1, 2], [0, 3]]
    assert _blocks([5, 50, 50], 20) == [[0, 1], [0, 2]]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_of_the_registry_exists(name):
    assert callable(find(name))


def test_spins_are_new_for_every_seed_and_roads_the_same(data_folder):
    assert (sets.load("ising+", 0).y != sets.load("ising+", 1).y).any()
    assert sets.load("anaheim", 0) is sets.load("anaheim", 1)


@pytest.mark.parametrize("name", sets.SETS)
def test_labels_can_be_propagated_on_every_set(name, data_folder):
    results = transductive.work(Task("table1", name, "LP", 0, QUICK))
    assert -1 < results["LP"]["score"] < 1


def test_a_base_and_its_propagation_come_from_one_training():
    results = transductive.work(Task("table1", "ising+", "MLP", 0, QUICK))
    assert results.keys() == {"MLP", "LP-MLP"}
    results = transductive.work(Task("table1", "ising-", "C-GNN", 0, QUICK))
    assert results["C-GNN"]["alpha"][0] < 0
    assert results["C-GNN"]["beta"] > 0


def invoke(*words):
    result = runner.invoke(app, ["reproduce", *words, "--quick", "--jobs", "1"])
    assert result.exit_code == 0, result.output
    return result.output


def test_table1_is_printed_and_written(tmp_path):
    output = invoke("table1", "-o", str(tmp_path))
    assert "smoke test" in output
    assert "contacts-simulated" in output
    assert (tmp_path / "table1.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "table1.md").read_text()
    for word in ("| ising- |", "C-GNN", "numpy", "Python", "smoke test, the numbers mean nothing"):
        assert word in text
    before = (tmp_path / "table1.jsonl").read_bytes()
    invoke("table1", "-o", str(tmp_path))
    assert (tmp_path / "table1.jsonl").read_bytes() == before


def test_table2_and_a_choice_of_methods(tmp_path):
    invoke("table2", "-o", str(tmp_path), "--datasets", "ising+", "--methods", "GCN,LP-GCN,C-SAGE-pool")
    text = (tmp_path / "table2.md").read_text()
    assert "|  | GCN | LP-GCN | C-SAGE-pool |" in text
    assert "SAGE-max" not in text


def test_protocol_best(tmp_path):
    invoke("table1", "--protocol", "best", "-o", str(tmp_path), "--datasets", "ising-")
    text = (tmp_path / "best.md").read_text()
    head = f"| {' | '.join(best.METHODS)} |"
    assert text.count(head) == 2  # given the training labels; told those of the validation too
    cells = [line.split(" | ")[1:] for line in text.splitlines() if line.startswith("| ising- |")]
    assert len(cells) == 3  # the third is the difference split by split
    assert cells[0] != cells[1]


def test_what_is_not_asked_for_is_not_done(tmp_path):
    words = ("--protocol", "best", "--datasets", "ising-,contacts-simulated", "-o", str(tmp_path))
    invoke("table1", *words, "--methods", "paper's C-GNN")
    assert {record.task.method for record in read(tmp_path / "best.jsonl")} == {best.PAPER}
    assert "the law itself" not in (tmp_path / "best.md").read_text()
    assert [task.method for task in best.tasks(Options(1, ("ising+",)), ("C-linear",))] == [best.BEST]
    asked = best.tasks(Options(1, ("ising+", "twitch")), best.METHODS)
    assert [task.dataset for task in asked if task.method == "the law itself"] == ["ising+"]


def test_scores_of_a_model_that_is_told_more_are_kept_apart():
    task = Task("best", "ising-", "best", 1)
    cells = gather([Record(task, {"A": {"score": 0.5, "told": 0.75}, "B": {"score": 0.25}}, 1.0)], ("A", "B"), {})
    assert cells["ising-", "A"] == Cell("ising-", "A", (0.5,), None, (0.75,))
    assert cells["ising-", "B"].told == ()


def test_a_comparison_is_written_in_full(tmp_path):
    """The files of a run that is not quick, from records that are there already."""
    for method, results in {"GNN": {"GNN": 0.5, "LP-GNN": 0.7}, "C-GNN": {"C-GNN": 0.69}}.items():
        values = {name: {"score": score, "alpha": [0.95], "beta": 66.0} for name, score in results.items()}
        with open(tmp_path / "table1.jsonl", "a") as file:
            file.write(Record(Task("table1", "election", method, 1), values, 1.0).line() + "\n")
    options = Options(1, ("election",), ("GNN", "LP-GNN", "C-GNN"), folder=tmp_path)
    result = tables.table1(options, lambda *_: None)
    assert "0.500 (0.51; 0.508) -0.010" in result.markdown
    assert "| election | +0.950 ± 0.000 | +0.95 | +0.951 | yes | 66.00 | 66.50 |" in result.markdown
    assert all(file.exists() for file in result.files)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table1", "--datasets", "mars"], "datasets=mars is unknown; use ising+, ising-, income"),
        (["table1", "--methods", "GNN,ABC"], "methods=ABC is unknown; use LP, MLP"),
        (["table1", "--protocol", "best", "--methods", "LP"], "methods=LP is unknown; use paper's C-GNN, C-hops"),
        (["table1", "--datasets", ","], "datasets is empty; use ising+, ising-, income"),
        (["table2", "--protocol", "best"], "--protocol has no effect on table2; leave it out."),
        (["calibration", "--protocol", "best"], "--protocol has no effect on calibration; leave it out."),
        (["fig-features", "--protocol", "best"], "--protocol has no effect on fig-features; leave it out."),
        (["fig-scaling", "--seeds", "7"], "--seeds has no effect on fig-scaling; leave it out."),
        (["fig-scaling", "--first-seed", "7"], "--first-seed has no effect on fig-scaling; leave it out."),
        (["fig-election", "--seeds", "7"], "--seeds has no effect on fig-election; leave it out."),
        (["all", "--methods", "GNN"], "--methods has no effect on all; name one experiment in place of all."),
        (["table1", "--protocol", "good"], "protocol='good' is unknown"),
        (["table9"], "experiment='table9' is unknown"),
        (["fig-ising", "--datasets", "election"], "--datasets has no effect on fig-ising; leave it out."),
    ],
)
def test_wrong_names_end_in_one_line_and_exit_code_2(words, message, tmp_path, refusal):
    assert refusal("reproduce", *words, "-o", str(tmp_path)).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_made_is_named(refusal):
    error = refusal("reproduce", "table1", "--quick", "-o", "/proc/nowhere")
    assert error.startswith("folder /proc/nowhere cannot be made (No such file or directory); name one that can be")


def test_data_list_names_every_set_and_its_terms():
    result = runner.invoke(app, ["data", "list"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for word in ("county", "anaheim", "twitch", "contacts-simulated", "own copy", "CC0"):
        assert word in result.output


def test_data_fetch_finds_the_files_that_are_here(data_folder):
    result = runner.invoke(app, ["data", "fetch", "anaheim", "elect80"])
    assert result.exit_code == 0, result.output
    assert "anaheim: 2 files in" in result.output
    assert "elect80: needs no files" in result.output


def test_data_fetch_refuses_an_unknown_name(refusal):
    assert refusal("data", "fetch", "mars").startswith("name='mars' is unknown")


def test_labels_around_a_node_are_features_without_its_own():
    edges = [(0, 1, 2.0), (1, 2, 1.0), (2, 3, 1.0), (3, 0, 1.0), (1, 1, 5.0), (2, 4, 3.0)]
    graph = residua.Graph.from_edges(*np.array(edges).T[:2].astype(int), weight=[w for *_, w in edges])
    y = np.array([4.0, 1.0, np.nan, -2.0, 7.0])
    found = neighbour_labels(graph, y)
    A = graph.adjacency().toarray() * (1 - np.eye(5))
    A2 = A @ A * (1 - np.eye(5))
    known = ~np.isnan(y)
    v = np.where(known, y - y[known].mean(), 0)
    for at, M in ((0, A), (2, A2)):
        weight = M @ known
        np.testing.assert_allclose(found[:, at], np.where(weight > 0, M @ v / np.maximum(weight, 1e-300), 0))
        np.testing.assert_allclose(found[:, at + 1], weight)
    moved = y.copy()
    moved[1] += 1.0
    centred = neighbour_labels(graph, moved) - found
    assert abs(centred[1, 0] + 0.25) < 1e-12  # the mean of all labels moves, nothing else


def test_the_average_is_compared_with_the_papers_model_split_by_split():
    """On the same splits the difference is far surer than either mean."""
    scores = {best.AVERAGE: (0.5, 0.7, 0.9), best.PAPER: (0.48, 0.66, 0.91)}
    given = {("twitch", method): Cell("twitch", method, found) for method, found in scores.items()}
    told = {at: replace(cell, scores=cell.scores[:1]) for at, cell in given.items()}
    line = best.paired_table(given, told).splitlines()[-1]
    difference = np.array([0.02, 0.04, -0.01])
    error = difference.std(ddof=1) / 3**0.5
    assert line == f"| twitch | +0.017 ± {error:.3f}, 2 of 3 | +0.020, 1 of 1 |"
