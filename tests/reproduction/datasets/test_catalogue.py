"""What data sets there are, and whether their files are here."""

import pytest

from residua.datasets import available, fetch
from residua.reproduction.datasets import files


def test_every_file_of_the_catalogue_has_a_checksum():
    listed = [file for entry in available() for file in entry.files]
    assert sorted(listed) == sorted(files.checksums())
    assert len(listed) == 29
    assert {len(digest) for digest in files.checksums().values()} == {64}


def test_catalogue_knows_what_is_here(offline, tmp_path):
    present = {entry.name: entry.present for entry in available()}
    assert present["county"] is False
    assert present["elect80"] is True
    assert present["ising"] is True
    assert present["contacts"] is None
    assert all(entry.description and entry.terms and entry.load for entry in available())
    assert not (tmp_path / "cache").exists()


def test_nothing_is_fetched_for_what_is_packaged_or_generated(offline):
    assert fetch("elect80") == fetch("ising") == fetch("contacts-simulated") == ()


def test_fetch_explains_what_it_cannot_get():
    with pytest.raises(ValueError, match="ICPSR requires your own copy"):
        fetch("contacts")
    with pytest.raises(ValueError, match=r"name='countries' is unknown; use one of 'elect80', 'columbus'"):
        fetch("countries")


def test_catalogue_finds_all_files(data_folder):
    assert all(entry.present for entry in available() if entry.files)
    assert fetch("anaheim") == tuple(
        data_folder / "transportation" / "Anaheim" / f"Anaheim_{kind}.tntp" for kind in ("flow", "net")
    )
