"""What one asks of an experiment, and which there are."""

import pytest

from residua.reproduction.registry import EXPERIMENTS, Options, chosen, find


@pytest.mark.parametrize(
    ("options", "compared"),
    [(Options(), True), (Options(first_seed=10), True), (Options(first_seed=11), False), (Options(quick=True), False)],
)
def test_the_paper_is_compared_with_on_its_own_splits(options, compared):
    assert options.compared is compared


def test_names_are_kept_in_their_order_and_unknown_ones_refused():
    assert chosen(("b", "a"), ("a", "b", "c"), "datasets") == ("a", "b")
    assert chosen(None, ("a", "b"), "datasets") == ("a", "b")
    with pytest.raises(ValueError, match=r"datasets=x is unknown; use a, b\."):
        chosen(("a", "x"), ("a", "b"), "datasets")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_of_the_registry_exists(name):
    assert callable(find(name))
