"""Traffic on road links: the line graph of a road network, with two edge types or three.

    follows: H T' + T H'        shares: H H' + T T' without the diagonal        opposite: (H T') * (T H')

H and T (links x junctions) mark the head and the tail of each link. Links that follow each other meet head to tail;
links that share have the same head or the same tail; the two directions of one street, which meet at both ends, are
opposite if asked for, and otherwise follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from residua.datasets.base import Dataset
from residua.graph import Graph
from residua.reproduction.datasets import routes
from residua.reproduction.datasets.files import data_folder, find_file, reading
from residua.reproduction.datasets.scaling import standardise
from residua.validation import check_choice

FEATURES = {"capacity": 2, "length": 3, "free_flow_time": 4, "speed": 7}  # field of a link's row
REACH = (2, 4, 8, 16, np.inf)  # how far trips go, in free-flow times of a mean link
TRIPS = (
    "trips_2 to trips_16 and trips_all are square roots, standardised, of how many trips would use a link if every "
    "junction sent one to all others within 2 to 16 times the mean link's time, and to all others; none passes a zone."
)
SOURCE = (
    "Transportation Networks for Research, github.com/bstabler/TransportationNetworks: donated data, for academic "
    "research only; name the source in publications."
)


@dataclass(frozen=True)
class Network:
    """Files of a road network, its first junction that is kept, its zones, and what its numbers are measured in."""

    files: tuple[str, ...]
    first: int
    zones: int  # junctions up to this number are where trips begin and end, not pass
    note: str

    def path(self, kind: str) -> Path | None:
        """The file of a kind (net, flow, node), if there is one."""
        return next((find_file(name) for name in self.files if name.endswith(f"_{kind}.tntp")), None)


NETWORKS = {
    "anaheim": Network(
        tuple(f"transportation/Anaheim/Anaheim_{kind}.tntp" for kind in ("flow", "net")),
        first=1,
        zones=38,
        note="All links are kept, those of zones too. Lengths are in feet, times in minutes.",
    ),
    "chicago": Network(
        tuple(f"transportation/ChicagoSketch/ChicagoSketch_{kind}.tntp" for kind in ("flow", "net", "node")),
        first=388,
        zones=0,
        note="774 links that only connect zones (junctions below 388) were dropped. Lengths are in miles, times in "
        "minutes; x and y are the midpoint of a link in feet (Illinois state plane).",
    ),
}


def load_transport(city: str, *, opposite: bool = False, trips: bool = False) -> Dataset:
    """Load traffic on the road links of Anaheim or Chicago.

    Nodes are directed road links, named ``"tail-head"`` after their junctions and ordered by them. Edges of type
    ``"follows"`` join links that meet head to tail, the two directions of one street included; edges of type
    ``"shares"`` join links with the same head or the same tail. The label is the traffic volume; the features are
    capacity, length, free-flow time and speed. All are standardised. The files are not packaged and are for academic
    research only: see ``docs/data.md``.

    Parameters
    ----------
    city : {"anaheim", "chicago"}
        914 links, or 2,176.
    opposite : bool
        Join the two directions of one street by edges of a third type, ``"opposite"``, instead of ``"follows"``.
    trips : bool
        Add five features: how many trips would use a link if every junction sent one to all others by the fastest
        route at free-flow times; to those within 2, 4, 8 and 16 times the mean link's time, and to all. They come from
        the map and these times only; of the counts, the square roots are standardised.

    Returns
    -------
    Dataset
        X of shape (n, 4), or (n, 9) with trips; ``nodes`` has tail and head and, for Chicago, the midpoint x, y
        in feet.

    Examples
    --------
    >>> load_transport("chicago").graph  # doctest: +SKIP
    Graph(2176 nodes, 15104 edges of types follows, shares)
    """
    check_choice(city, tuple(NETWORKS), "city")
    with reading(data_folder() / Path(NETWORKS[city].files[0]).parent):
        return _load(city, opposite, trips)


def _load(city: str, opposite: bool, with_trips: bool) -> Dataset:
    network = NETWORKS[city]
    links = _read_links(network)
    ends = links[["tail", "head"]]
    ids = ends["tail"].astype(str) + "-" + ends["head"].astype(str)
    links = links.set_index(pd.Index(ids, name="link", dtype=object))
    features = [*FEATURES]
    if with_trips:
        counts = _trips(links, network)
        links, features = links.join(counts), [*features, *counts.columns]
    scaled = standardise(links[[*features, "volume"]])
    return Dataset(
        graph=Graph.from_scipy(_line_graph(links["tail"], links["head"], opposite), nodes=links.index),
        X=scaled[features],
        y=scaled["volume"].to_numpy(copy=True),
        nodes=links.drop(columns=[*features, "volume"]),
        name=city,
        notes=(*_notes(network, links), *([TRIPS] if with_trips else [])),
        source=SOURCE,
    )


def _read_links(network: Network) -> pd.DataFrame:
    """Read tail, head, features, volume and midpoint of each link, ordered by tail and head."""
    net, flow, node = (network.path(kind) for kind in ("net", "flow", "node"))
    assert net is not None
    assert flow is not None
    rows, volumes = _read_rows(net, 10), _read_rows(flow, 4)
    with reading(flow):
        links = pd.DataFrame({"tail": rows[:, 0], "head": rows[:, 1]}, dtype="int64")
        links = links.assign(**{name: rows[:, field] for name, field in FEATURES.items()})
        flows = pd.DataFrame(volumes[:, :3], columns=["tail", "head", "volume"])
        links = links.merge(flows.astype({"tail": "int64", "head": "int64"}), how="left", validate="one_to_one")
        if links["volume"].isna().any():
            raise ValueError("a link has no volume")
    if node is not None:
        place = pd.DataFrame(_read_rows(node, 3), columns=["junction", "x", "y"]).set_index("junction")
        middle = (place.loc[links["tail"]].to_numpy() + place.loc[links["head"]].to_numpy()) / 2
        links = links.assign(x=middle[:, 0], y=middle[:, 1])
    kept = (links["tail"] >= network.first) & (links["head"] >= network.first)
    return links[kept].sort_values(["tail", "head"], ignore_index=True)


def _read_rows(path: Path, width: int) -> np.ndarray:
    """Read the first ``width`` numbers of every row of a TNTP file; ``<``, ``~`` and words begin other lines."""
    with reading(path):
        lines = path.read_text(encoding="utf-8").replace(";", " ").replace(":", " ").splitlines()
        fields = [line.split() for line in lines if line.strip()[:1].isdigit()]
        if not fields:
            raise ValueError("it has no rows of numbers")
        short = next((row for row in fields if len(row) < width), None)
        if short is not None:
            raise ValueError(f"a row has {len(short)} fields, not {width}: {' '.join(short)}")
        return np.array([row[:width] for row in fields], dtype="float64")


def _line_graph(tail: pd.Series, head: pd.Series, opposite: bool) -> dict[str, sp.csr_array]:
    junctions, at = np.unique(np.concatenate([tail, head]), return_inverse=True)
    size = (len(tail), len(junctions))
    row, one = np.arange(len(tail)), np.ones(len(tail))
    T, H = (sp.csr_array((one, (row, ends)), shape=size) for ends in np.split(at, 2))
    onward = H @ T.T
    both_ways = onward.multiply(onward.T)
    follows = onward + onward.T
    shares = sp.csr_array(H @ H.T + T @ T.T)
    shares.setdiag(0)
    if opposite:
        found = {"follows": follows - 2 * both_ways, "shares": shares, "opposite": both_ways}
    else:
        found = {"follows": follows, "shares": shares}
    return {name: sp.csr_array((A > 0).astype("float64")) for name, A in found.items()}


def _trips(links: pd.DataFrame, network: Network) -> pd.DataFrame:
    """The square root of the trips on each link, for every reach: counts are skewed."""
    time = links["free_flow_time"]
    if not (time > 0).all():
        raise ValueError(f"link {time.idxmin()} has free-flow time {time.min():g}; trips=True needs times above 0")
    junctions, ends = np.unique(links[["tail", "head"]].to_numpy(), return_inverse=True)
    tail, head = ends.reshape(-1, 2).T
    zones = np.flatnonzero(junctions <= network.zones)
    counts = routes.trips(tail, head, time.to_numpy(), np.array(REACH) * time.mean(), zones)
    names = [*(f"trips_{reach:g}" for reach in REACH[:-1]), "trips_all"]
    return pd.DataFrame(np.sqrt(counts), index=links.index, columns=names)


def _notes(network: Network, links: pd.DataFrame) -> tuple[str, ...]:
    volume = links["volume"]
    constant = [name for name in FEATURES if links[name].nunique() == 1]
    return (
        network.note,
        "Volumes are the solution of a traffic assignment, not counts of cars.",
        "Features and label are standardised with the n-1 standard deviation; volume had mean "
        f"{volume.mean():.6g} and standard deviation {volume.std():.6g}.",
        *(f"{name} is {links[name].iloc[0]:g} on every link, so the feature is 0." for name in constant),
        "The paper's text names three features; its code has four, free-flow time too.",
        "Numbers are float64; the authors store 32-bit floats.",
    )
