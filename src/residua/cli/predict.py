"""The command ``predict``, and the models that commands read: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from residua.bases.registry import BASES
from residua.cli import options

if TYPE_CHECKING:
    import pandas as pd

    from residua.average import Average
    from residua.estimator import GraphRegressor


def predict(
    model: Annotated[Path, Argument(help="A file that `residua fit` wrote.", show_default=False)],
    nodes: Annotated[Path | None, Option(help="Another node table; its known labels are used.")] = None,
    edges: Annotated[Path | None, Option(help="The edge table of those nodes.")] = None,
    labels: Annotated[Path | None, Option(help="Labels that came after the fit: a table of ids and target.")] = None,
    polygons: Annotated[Path | None, Option(help="A map of the nodes, for predictions as .gpkg or .geojson.")] = None,
    keep: Annotated[str | None, Option(help="Columns of --nodes to write too, with commas.")] = None,
    coverage: Annotated[float, Option(help="Share of nodes that lower to upper should cover.")] = 0.9,
    left_out: Annotated[
        str,
        Option(
            help="What tells their width: labels left out as nodes, as blocks, or auto: blocks if regions lack labels."
        ),
    ] = "auto",
    skip_unknown: options.SkipUnknown = False,
    duplicates: Annotated[str | None, Option(help="As in `residua fit`; by default as there.")] = None,
    as_json: options.Json = False,
    trust: options.Trust = False,
    output: Annotated[
        Path, options.Output(help="Where predictions go: .csv, .parquet, .gpkg, .geojson, or - for the screen.")
    ] = Path("predictions.csv"),
) -> None:
    """Write a line for each node: id, prediction, std, lower, upper, base, correction, known, leave_one_out."""
    from residua.intervals import LEFT_OUT
    from residua.io.tables.graphs import read_again, read_labels
    from residua.io.tables.maps import on_map
    from residua.io.tables.predictions import SUFFIXES, check_output, prediction_table, write_table
    from residua.maps import write_map

    check_output(output, SUFFIXES, (model, nodes, edges, labels, polygons))
    polygons = _map_of(output, polygons, nodes)
    if not 0 < coverage < 1:
        raise ValueError(f"--coverage {coverage:g} is not between 0 and 1; for nine in ten give 0.9.")
    if left_out not in LEFT_OUT:
        raise ValueError(f"--left-out {left_out!r} is none of {', '.join(LEFT_OUT)}.")
    _check_options(nodes, edges, labels, keep, as_json and str(output) == "-")
    with options.status():
        fitted = load_model(model, trust)
        given = nodes or labels
        if given is not None and not hasattr(fitted, "recipe_"):
            raise ValueError(f"{model} was not fitted on tables, so it cannot read {given}; fit it by `residua fit`.")
        data = read_again(nodes, edges, fitted.recipe_, skip_unknown, duplicates) if nodes and edges else None
        later = read_labels(labels, fitted.graph_, fitted.recipe_) if labels else None
        table = prediction_table(fitted, data, coverage, later, left_out)
        for name, column in kept_columns(nodes, options.split_names(keep), table, fitted).items():
            table[name] = column
        if polygons is None:
            write_table(table, output)
        else:
            write_map(on_map(table, polygons, fitted.recipe_.id if hasattr(fitted, "recipe_") else "id"), output)
    notes = list(data.notes) if data else []
    if later is not None:
        known, again = options.known(later), options.known(fitted.y_[later == later])
        notes.append(f"{labels}: new labels {known - again:,}, in place of one of the fit {again:,}.")
    known = int(table["known"].sum())
    facts = {"output": str(output), "nodes": len(table), "predicted": len(table) - known, "known": known}
    if as_json:
        options.print_json(facts | {"coverage": coverage, "columns": list(table.columns), "notes": notes})
        return
    for note in notes:
        options.note(note)
    said = f"{output}: {len(table):,} nodes, {len(table) - known:,} of them predicted and {known:,} known"
    typer.echo(said, err=str(output) == "-")


def _check_options(nodes: Path | None, edges: Path | None, labels: Path | None, keep: str | None, twice: bool) -> None:
    """Refuse options that do not go together."""
    if labels is not None and edges is not None:
        raise ValueError(f"--labels {labels} is for the graph of the fit; leave out --nodes and --edges, or --labels.")
    if edges is not None and nodes is None:
        raise ValueError("give --nodes and --edges together, or neither for the graph of the fit.")
    if nodes is not None and edges is None and keep is None:
        raise ValueError(
            "give --nodes and --edges together, or neither for the graph of the fit; --nodes alone is for --keep."
        )
    if keep is not None and nodes is None:
        raise ValueError(f"--keep {keep} needs the table that has these columns: --nodes nodes.csv.")
    if twice:
        raise ValueError("--json and --output - both write to the screen; give --output a file.")


def kept_columns(
    nodes: Path | None, names: tuple[str, ...] | None, table: pd.DataFrame, model: GraphRegressor | Average
) -> dict[str, Any]:
    """Return columns of the node table that are to be written beside the predictions, row by row."""
    if nodes is None or not names:
        return {}
    from residua.io.tables.graphs import columns_like

    twice = [name for name in names if name in table.columns]
    if twice:
        raise ValueError(
            f"--keep {twice[0]} is a column of the predictions too; leave it out, or rename it in {nodes}."
        )
    return columns_like(nodes, table["id"].to_numpy(), model.recipe_, names)


def _map_of(output: Path, polygons: Path | None, nodes: Path | None) -> Path | None:
    """Return the map that predictions are written on; None where they are written as a table."""
    from residua.maps import KINDS, WRITTEN, is_map

    if output.suffix.lower() not in WRITTEN:
        if polygons is not None:
            raise ValueError(f"--polygons {polygons} is for predictions on a map; name --output predictions.gpkg.")
        return None
    found = polygons or (nodes if nodes is not None and is_map(nodes) else None)
    if found is None or not is_map(found):
        raise ValueError(f"--output {output} is a map; give the one with the places of the nodes, --polygons: {KINDS}.")
    return found


def load_model(path: Path, trust: bool = False) -> GraphRegressor | Average:
    """Load the model of a command, or its average of several; one with scikit-learn's trees has to be trusted."""
    from residua.io.model_file import ModelFileError, load

    try:
        trusted = [name for entry in BASES.values() for name in entry.trusted] if trust else ()
        found: GraphRegressor | Average = load(path, trusted=trusted)
        return found
    except ModelFileError as error:
        if "not trusted by default" not in str(error):
            raise
        beyond = "it holds other types than `residua fit` writes; load it in Python"
        remedy = beyond if trust else "if you know where the file comes from, add --trust"
        raise ModelFileError(f"{path} holds trees or other types that can steer compiled code; {remedy}.") from None


def load_single(path: Path, trust: bool = False) -> GraphRegressor:
    """Load a model, of an average the one of the largest weight, and say so."""
    from residua.average import Average

    found = load_model(path, trust)
    if not isinstance(found, Average):
        return found
    shown = found.models[int(found.weights.argmax())]
    text = f"{path} averages {len(found.models)} models; the page shows the one of the largest weight"
    options.note(f"{text}, {shown.base_.name} ({found.weights.max():.2f}).")
    if hasattr(found, "recipe_") and not hasattr(shown, "recipe_"):
        shown.recipe_ = found.recipe_
    return shown
