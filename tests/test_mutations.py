"""Every place that mutations change is still there, once; whether tests notice is for `python -m tests.mutations`."""

from pathlib import Path

import pytest

import residua
from mutations.places import PLACES


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_place_to_mutate_is_there_once(place):
    text = (Path(residua.__file__).parent / place.file).read_text(encoding="utf-8")
    assert text.count(place.right) == 1
    for name in (part for part in place.tests if part.startswith("tests/")):
        assert (Path(__file__).parents[1] / name).exists()
