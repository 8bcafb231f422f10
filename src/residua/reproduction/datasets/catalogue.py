"""What data sets there are, whether their files are here, and under which terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from residua.datasets import elect80, maps
from residua.reproduction.datasets import contacts, county, transport, twitch
from residua.reproduction.datasets.files import Progress, data_folder, find_file, is_intact
from residua.validation import check_choice


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue.

    ``present`` says whether `load` finds everything it needs without a download; it is None where only the user
    knows, since the files are at a path of one's own.
    """

    name: str
    load: str
    description: str
    terms: str
    files: tuple[str, ...] = ()
    present: bool | None = True


ENTRIES = (
    Entry(
        "elect80",
        "load_elect80()",
        "turnout in 3,107 US counties, 1980; 9,063 edges, 3 features; packaged",
        elect80.SOURCE,
    ),
    Entry(
        "columbus",
        "load_columbus()",
        "crime in 49 neighbourhoods, 1980; 118 edges, 2 features, polygons; packaged",
        maps.SOURCES["columbus"],
    ),
    Entry(
        "sids",
        "load_sids()",
        "sudden infant deaths in 100 counties, 1974 and 1979; 245 edges, 1 feature, polygons; packaged",
        maps.SOURCES["sids"],
    ),
    Entry(
        "baltimore",
        "load_baltimore()",
        "prices of 211 houses, 1978; 513 edges, 11 features, points; packaged",
        maps.SOURCES["baltimore"],
    ),
    Entry(
        "county",
        'load_county("election")',
        "seven statistics of 3,234 US counties, 2012 and 2016; 9,483 edges and 3,234 self-loops, 6 features",
        county.SOURCE,
        county.FILES,
    ),
    Entry(
        "anaheim",
        'load_transport("anaheim")',
        "traffic on 914 road links; 3,881 edges of two types, 4 features",
        transport.SOURCE,
        transport.NETWORKS["anaheim"].files,
    ),
    Entry(
        "chicago",
        'load_transport("chicago")',
        "traffic on 2,176 road links; 15,104 edges of two types, 4 features",
        transport.SOURCE,
        transport.NETWORKS["chicago"].files,
    ),
    Entry(
        "twitch",
        'load_twitch("PTBR")',
        "views of 1,912 streamers (Brazil and Portugal; five more languages); 31,299 edges, 8 features",
        twitch.SOURCE,
        twitch.FILES,
    ),
    Entry(
        "ising",
        "simulate_ising()",
        "spins on a grid of 35 x 35; 2,380 edges, 2 features; generated",
        "Generated; free.",
    ),
    Entry(
        "contacts",
        "load_contacts(path)",
        "sex of 1,888 people in a contact network; 2,096 edges, 6 features; from one's own copy",
        contacts.SOURCE,
        present=None,
    ),
    Entry(
        "contacts-simulated",
        "simulate_contacts()",
        "a generated look-alike of contacts, of the same size",
        "Generated; free.",
    ),
)
NAMES = tuple(entry.name for entry in ENTRIES)


def available() -> tuple[Entry, ...]:
    """List the data sets, and whether their files are here; nothing is downloaded.

    Examples
    --------
    >>> [entry.name for entry in available() if entry.present]  # doctest: +ELLIPSIS
    ['elect80', 'columbus', 'sids', 'baltimore', ...]
    """
    folder = data_folder()
    return tuple(_looked_up(entry, folder) for entry in ENTRIES)


def fetch(name: str, progress: Progress | None = None) -> tuple[Path, ...]:
    """Download and verify the files of a data set, where they are not here yet.

    With RESIDUA_DATA set nothing is downloaded: the files in that folder are verified.

    Parameters
    ----------
    name : str
        A name of `available`.
    progress : callable, optional
        Called with the file's name, the bytes so far and the bytes in all (0 where unknown).

    Returns
    -------
    tuple of Path
        The files; empty for a data set that is packaged or generated.

    Examples
    --------
    >>> fetch("elect80")
    ()
    """
    check_choice(name, NAMES, "name")
    if name == "contacts":
        raise ValueError(
            "name='contacts' cannot be fetched: ICPSR requires your own copy, see docs/data.md; "
            "simulate_contacts() gives generated data of the same shape."
        )
    return tuple(find_file(file, progress) for file in ENTRIES[NAMES.index(name)].files)


def _looked_up(entry: Entry, folder: Path) -> Entry:
    if not entry.files:
        return entry
    present = all(is_intact(folder / file, file) for file in entry.files)
    return replace(entry, present=present)
