"""Where files come from: one's own folder, or verified downloads into a cache."""

import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from residua.datasets import fetch, load_county
from residua.reproduction.datasets import files

NAME = "election/income.csv"

CONTENT = b"FIPS,MedianIncome2012\n" + b"1001,51441\n" * 20_000


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder that stands for the network, an empty cache, and one file whose checksum is known."""
    served = tmp_path / "served"
    (served / NAME).parent.mkdir(parents=True)
    (served / NAME).write_bytes(CONTENT)
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.delenv("RESIDUA_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "BASE_URL", f"http://127.0.0.1:{http.server_port}/")
    monkeypatch.setattr(files, "checksums", lambda: {NAME: hashlib.sha256(CONTENT).hexdigest()})
    yield served
    http.shutdown()
    thread.join()
    http.server_close()


def test_downloads_come_from_one_pinned_commit():
    assert f"/{files.COMMIT}/datasets/" in files.BASE_URL
    assert len(files.COMMIT) == 40


def test_without_folder_and_network_one_error_names_both_ways(offline):
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded \(ConnectionError\)") as caught:
        load_county("income")
    text = str(caught.value)
    assert "\n" not in text
    assert all(way in text for way in ["RESIDUA_DATA", "residua data fetch", "docs/data.md", "adjacency.txt"])


def test_a_folder_without_the_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("RESIDUA_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"adjacency\.txt not found.*RESIDUA_DATA.*residua data fetch"):
        load_county("income")


def test_a_file_with_another_checksum_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RESIDUA_DATA", str(tmp_path))
    path = tmp_path / "election" / "adjacency.txt"
    path.parent.mkdir()
    path.write_text('"Autauga County, AL"\t01001\t"Autauga County, AL"\t01001\n')
    with pytest.raises(ValueError, match="another SHA-256") as caught:
        load_county("income")
    assert str(path) in str(caught.value)
    assert path.exists()


def test_a_download_is_verified_kept_and_reported(server, tmp_path):
    seen = []
    path = files.find_file(NAME, progress=lambda *step: seen.append(step))
    assert path.read_bytes() == CONTENT
    assert path.is_relative_to(tmp_path / "cache" / "residua")
    assert seen[-1] == (NAME, len(CONTENT), len(CONTENT))
    assert all(0 <= done <= total for _, done, total in seen)
    (server / NAME).unlink()
    assert files.find_file(NAME) == path  # from the cache: the network no longer has it


def test_a_download_with_a_wrong_checksum_leaves_nothing_behind(server):
    (server / NAME).write_bytes(CONTENT[:-7])
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded \(its checksum is wrong\)"):
        files.find_file(NAME)
    assert not [path for path in files.cache_folder().rglob("*") if path.is_file()]


@pytest.mark.usefixtures("server")
def test_what_killed_downloads_left_is_taken_away_in_every_folder():
    for folder in (files.cache_folder(), (files.cache_folder() / NAME).parent):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tmpleft").touch()
        os.utime(folder / "tmpleft", (0, 0))
    path = files.find_file(NAME)
    assert [found for found in files.cache_folder().rglob("*") if found.is_file()] == [path]


def test_a_damaged_file_in_the_cache_is_downloaded_anew(server):
    files.find_file(NAME).write_bytes(b"half a fi")
    assert files.find_file(NAME).read_bytes() == CONTENT


def test_a_file_that_the_network_lacks_is_named(server):
    (server / NAME).unlink()
    with pytest.raises(FileNotFoundError, match=r"income\.csv is not in .* \(HTTPError\)"):
        files.find_file(NAME)


def test_many_at_once_do_not_corrupt_the_cache(server):
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(files.find_file, [NAME] * 16))
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert [path.name for path in paths[0].parent.iterdir()] == ["income.csv"]


def test_with_a_folder_nothing_is_downloaded(server, tmp_path, monkeypatch):
    monkeypatch.setenv("RESIDUA_DATA", str(server))
    assert files.find_file(NAME) == server / NAME
    assert not (tmp_path / "cache").exists()


@pytest.mark.network
def test_the_pinned_commit_still_has_the_files(tmp_path, monkeypatch):
    monkeypatch.delenv("RESIDUA_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert len(fetch("anaheim")) == 2
