"""The study of tests and intervals of alpha: what it writes, what it simulates, and the figures that are published."""

from pathlib import Path

import numpy as np
import pytest

from residua.reproduction import inference
from residua.reproduction.registry import Options
from residua.reproduction.runs import Task, read

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_a_smoke_test_writes_its_page_and_goes_on_where_it_stopped(tmp_path):
    asked, calls = Options(quick=True, folder=tmp_path), []
    result = inference.inference(asked, lambda *call: calls.append(call[:2]))
    assert calls == [(k, 3) for k in range(4)]
    facts = [row[:5] for row in result.rows]
    assert facts[0] == ("grid 10 x 10", "50", "1", "0", "1")
    assert facts[1:] == [("60 pairs", "20", "0", "0", "1"), ("60 pairs", "20", "2", "0.999", "1")]
    again = inference.inference(asked, lambda *call: calls.append(call[:2]))
    assert calls[4:] == [(3, 3)]
    assert again.rows == result.rows
    assert (tmp_path / "inference.md").read_text(encoding="utf-8") == again.markdown
    assert again.markdown.count("## ") == 2


@pytest.mark.parametrize("scenario", [inference.NULL[0], inference.NULL[-1], inference.TRUE[-1]])
def test_data_are_as_the_scenario_says_and_the_same_for_the_same_seed(scenario):
    graph, X, y = inference.simulate(scenario, 3)
    assert X.shape == (graph.n_nodes, scenario.features)
    assert np.isfinite(y).sum() == scenario.labels
    np.testing.assert_array_equal(inference.simulate(scenario, 3)[2], y)
    assert not np.array_equal(inference.simulate(scenario, 4)[2], y, equal_nan=True)


def test_simulated_residuals_have_the_covariance_of_the_model():
    scenario = inference.Scenario("60 pairs", 120, 0, 0.9)
    y = np.array([inference.simulate(scenario, seed)[2] for seed in range(200)]).reshape(-1, 2) - 1
    np.testing.assert_allclose(np.cov(y.T), np.linalg.inv([[1, -0.9], [-0.9, 1]]), rtol=0.05)


def test_a_block_of_seeds_is_its_seeds_one_by_one():
    name = inference.NULL[-2].name
    block = inference.work(Task("inference", name, "both", 5, "2 seeds"))
    single = [inference.work(Task("inference", name, "both", seed, "1 seeds")) for seed in (5, 6)]
    assert block == {m: {k: single[0][m][k] + single[1][m][k] for k in v} for m, v in block.items()}


def test_the_graphs_are_what_they_are_called():
    sizes = {name: (edges().max() + 1, len(edges())) for name, edges in inference.GRAPHS.items()}
    assert sizes == {
        "grid 10 x 10": (100, 180),
        "grid 16 x 16": (256, 480),
        "ring of 50": (50, 50),
        "30 paths of four": (120, 90),
        "30 squares": (120, 120),
        "60 pairs": (120, 60),
    }


# The published figures


@pytest.fixture(scope="module")
def published():
    return read(RESULTS / "inference.jsonl")


def test_the_page_is_that_of_the_records(published):
    page = (RESULTS / "inference.md").read_text(encoding="utf-8")
    assert "\n\n".join(inference.tables(inference.summary(published))) in page
    assert list(inference.joined(published)) == list(inference.SCENARIOS)


def test_tests_and_intervals_of_alpha_hold(published):
    for name, found in inference.joined(published).items():
        ours, alpha = found["restricted"], inference.SCENARIOS[name].alpha
        share = inference.covered(ours, alpha).mean()
        assert len(ours["p"]) >= 200
        if not alpha:
            assert (ours["p"] < 0.05).mean() <= 0.08, name
            assert ours["help"].mean() <= 0.08, name
            assert share >= 0.92, name
        else:
            assert share >= (0.9 if inference.SCENARIOS[name].labels >= 50 else 0.87), name


def test_plain_likelihood_did_not_hold(published):
    """What restricted likelihood is for: 80 labels and 40 features of pure noise."""
    plain = inference.joined(published)["grid 10 x 10, 80, 40, 0"]["plain"]
    assert (plain["p"] < 0.05).mean() > 0.3
