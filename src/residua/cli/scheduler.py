"""``residua fit --scheduler``: the same tables, on a Dask cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from residua.bases.registry import LINEAR
from residua.cli.options import Tables, alpha_facts, check_network_options

if TYPE_CHECKING:
    from residua.backends.dask.pipeline import DistributedFit
    from residua.io.tables.graphs import Columns

CONNECT = 20  # seconds in which a scheduler should answer


def fit_on_cluster(address: str, tables: Tables, parameters: dict[str, Any], output: Path) -> dict[str, Any]:
    """Read, fit and predict on the workers of a scheduler.

    Parameters
    ----------
    address : str
        Of the scheduler, such as tcp://10.0.0.1:8786.
    tables : Tables
        Parquet files or folders that every worker can read, and their columns as for one machine; text and several
        edge types are refused.
    parameters : dict
        Of ``residua fit``.
    output : Path
        Folder of Parquet files for the predictions.

    Returns
    -------
    dict
        What was learned.
    """
    given = tables.columns
    check_options(given, parameters)
    for path in (tables.nodes, tables.edges):
        if path.suffix.lower() in (".csv", ".tsv", ".txt"):
            raise ValueError(f"{path}: with --scheduler tables are Parquet; convert it, or leave out --scheduler.")
    from residua import distributed

    begin, base = time.perf_counter(), parameters["base"]
    names: Any = {name: getattr(given, name) for name in ("target", "weight", "skip_unknown")}
    names["features"] = given.features and [name for name in given.features if name not in given.exclude]
    names |= {"id": given.id or "id", "source": given.source or "source", "target_node": given.to or "target"}
    settings = {"base": base, "random_state": parameters["random_state"], "output": output}
    with connected(address) as client:
        facts = learned(distributed.fit(client, edges=tables.edges, nodes=tables.nodes, **names, **settings), base)
    return facts | {"scheduler": address, "predictions": str(output), "seconds": time.perf_counter() - begin}


def check_options(given: Columns, parameters: dict[str, Any]) -> None:
    """Refuse what a cluster does not do."""
    base, correlation = parameters["base"], parameters["correlation"]
    numbers = "on a cluster features are columns of numbers: leave it out."
    if base not in LINEAR:
        raise ValueError(
            f"--base {base} does not run on a cluster by this command; use {', '.join(LINEAR)}, or "
            "residua.distributed.fit with a regressor on dask arrays."
        )
    for option, refused, remedy in (
        (f"correlation {correlation}", correlation != "learned", "leave out --scheduler."),
        (f"field {parameters['field']}", parameters["field"] != "normalised", "on a cluster leave it out."),
        ("length", given.length, "on a cluster give a column of weights: --weight."),
        ("edge-type", given.edge_type, "on a cluster all edges count alike: leave it out."),
        ("categorical", given.categorical, numbers),
        ("missing", given.missing, numbers),
        *((name, getattr(given, name), numbers) for name in ("thousands", "units")),
        (
            f"duplicates {given.duplicates}",
            given.duplicates != "error",
            "on a cluster rows of one edge add up: leave it out.",
        ),
        (f"coordinates {given.coordinates}", given.coordinates != "map", "name the columns by --features."),
        ("decimal", given.decimal != ".", numbers),
        ("exclude", given.exclude and given.features is None, "on a cluster name the columns to use: --features."),
    ):
        if refused:
            raise ValueError(f"--{option} is for one machine; {remedy}")
    check_network_options(parameters)


def connected(address: str) -> Any:
    """Return a client of the scheduler at ``address``."""
    from distributed import Client

    try:
        return Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"--scheduler {address} does not answer ({type(error).__name__}); start one: dask scheduler, and workers: "
            "dask worker ADDRESS."
        ) from None


def learned(found: DistributedFit, base: str) -> dict[str, Any]:
    """Return what was learned, for people and for JSON."""
    return {
        "nodes": found.graph.n_nodes,
        "edges": found.graph.n_edges,
        "labelled": found.labelled,
        "features": found.features,
        "base": base,
        "alpha": alpha_facts(found.correlation.alpha, found.correlation.interval()),
        "beta": found.beta,
        "p_value": found.correlation.p_value,
        "r2_corrected": found.r2,
        "methods": found.correlation.methods,
        "warnings": [found.correlation.note] if found.correlation.note else [],
        "halo_rows": found.graph.S.moved_rows,
    }


def lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the same as labelled lines."""
    alpha = found["alpha"]["edge"]
    return [
        ("Nodes", f"{found['nodes']:,}, {found['labelled']:,} of them labelled; {found['edges']:,} edges"),
        ("Features", ", ".join(found["features"]) or "none"),
        ("Alpha", f"{alpha['value']:+.4f}, 95 % interval [{alpha['lower']:+.4f}, {alpha['upper']:+.4f}]"),
        ("R2", f"base {found['base']} and correction {found['r2_corrected']:.3f}; each label predicted without itself"),
        *(("Note", note) for note in found["warnings"]),
        ("Cluster", f"{found['scheduler']}; {found['halo_rows']:,} rows of a vector move in a product"),
        ("Output", f"{found['predictions']} ({found['seconds']:.1f} s)"),
    ]
