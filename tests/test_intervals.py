"""Intervals cover the share that they promise where the model is true, and conformal ones where it is not."""

import pytest

from residua.diagnosis import LEVELS
from true_draws import KINDS, LEAST, soak, tally

EACH = [(kind, level) for kind in KINDS for level in LEVELS]


@pytest.fixture(scope="module")
def true_model():
    return tally(30, random_state=0)[0]


@pytest.mark.parametrize(("kind", "level"), EACH)
def test_intervals_hold_the_share_they_promise_when_the_model_is_true(true_model, kind, level):
    assert true_model.keeps(kind, level), (true_model.coverage(kind, level), true_model.margin(kind, level))


def test_intervals_a_fifth_too_narrow_or_too_wide_are_found_out():
    for found in tally(16, random_state=1, stretch=(0.8, 1.2)):
        assert not any(found.keeps(kind, level) for kind, level in EACH if level in (0.8, 0.9))


def test_with_long_tails_conformal_intervals_hold_and_gaussian_ones_do_not():
    (found,) = tally(16, random_state=2, noise="long tails")
    assert all(found.keeps("conformal", level) for level in LEVELS)
    assert found.coverage("gaussian", 0.5) > 0.5 + found.margin("gaussian", 0.5)


def test_the_soak_counts():
    counts = soak(0.0, 3)
    assert counts["draws"] == LEAST
    assert 0 < counts["conformal 50%"] < counts["conformal 90%"] < counts["conformal 95%"] < counts["labels"]


def test_the_soak_fails_where_intervals_do_not_hold(monkeypatch):
    monkeypatch.setattr("residua.predictor.conformal_quantile", lambda scores, coverage: 1.0)
    with pytest.raises(AssertionError, match="conformal 50% intervals hold"):
        soak(0.0, 3)
