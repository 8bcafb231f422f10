"""The commands ``fit`` and ``predict``: parse, call, print."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from residua.bases.registry import BASES, find_base
from residua.cli import options

if TYPE_CHECKING:
    from residua.diagnosis import Diagnosis
    from residua.estimator import GraphRegressor
    from residua.io.tables.graphs import NodeData
    from residua.resources import Job


@options.of_tables
def fit(
    tables: options.Tables,
    base: Annotated[str, Option(help=f"What explains a node by its features: {options.BASE_NAMES}.")] = "linear",
    correlation: Annotated[str, Option(help="What neighbours' residuals add: learned, propagate or none.")] = "learned",
    training: Annotated[str, Option(help="Of networks: joint, post-hoc or paper.")] = "joint",
    ensemble: Annotated[int, Option(min=1, help="Of networks: members that are averaged.")] = 1,
    seed: options.Seed = 0,
    checkpoint: Annotated[Path | None, Option(help="Of networks: file to go on from after an interruption.")] = None,
    device: Annotated[str, Option(help="Of networks: where they are trained, cpu, cuda, mps or auto.")] = "cpu",
    dry_run: Annotated[bool, Option("--dry-run", help="Only tell the time and memory that a fit would take.")] = False,
    scheduler: Annotated[
        str | None, Option(help="Address of a Dask scheduler; tables are Parquet, the output a folder of predictions.")
    ] = None,
    as_json: options.Json = False,
    output: Annotated[Path, options.Output(help="Where the model goes.")] = Path("model.residua"),
) -> None:
    """Learn from a node table and an edge table, and write a model."""
    from residua.io.tables.predictions import check_output

    if scheduler is None:
        check_output(output, (".residua",), (tables.nodes, tables.edges))
    if not find_base(base).features and tables.columns.features is None:
        tables = replace(tables, columns=replace(tables.columns, features=()))
    parameters = {"base": base, "correlation": correlation, "training": training, "ensemble": ensemble}
    parameters |= {"random_state": seed, "checkpoint": checkpoint, "device": device}
    if scheduler is not None:
        from residua.cli.scheduler import fit_on_cluster, lines

        if dry_run:
            raise ValueError("--dry-run tells what a fit takes on one machine; leave out --scheduler, or --dry-run.")
        folder = Path("predictions") if output == Path("model.residua") else output
        found = fit_on_cluster(scheduler, tables, parameters, folder)
        options.print_json(found) if as_json else options.say_all(lines(found))
    elif dry_run:
        from residua.resources import describe_estimate

        print(describe_estimate(_job(*_ready(tables, parameters))))
    else:
        found = fit_tables(tables, parameters, output)
        options.print_json(found) if as_json else options.say_all(fit_lines(found))


MOST_COEFFICIENTS = 8  # that are printed


def fit_tables(tables: options.Tables, parameters: dict[str, Any], output: Path) -> dict[str, Any]:
    """Read, fit and save; return what there is to print."""
    begin, name = time.perf_counter(), parameters["base"]
    with status(name):
        from residua.resources import check_memory

        data, model = _ready(tables, parameters)
        check_memory(_job(data, model))
        with options.name_labels(tables):
            model.fit(data.features, data.y, graph=data.graph)
        model.recipe_ = data.recipe
        diagnosis = model.diagnose()
        model.save(output)
    facts = options.facts_of(data)
    if not find_base(name).features:
        facts["left_out"] = {}
    learned = describe_model(model, diagnosis, name)
    return facts | learned | {"seconds": time.perf_counter() - begin, "model": str(output)}


def _ready(tables: options.Tables, parameters: dict[str, Any]) -> tuple[NodeData, GraphRegressor]:
    """Read the tables, and make a model that is not fitted yet."""
    from residua.estimator import GraphRegressor
    from residua.io.tables.graphs import read_tables
    from residua.validation import check_choice

    name, chosen = parameters["base"], parameters["correlation"]
    check_choice(chosen, ("learned", "propagate", "none"), "correlation")
    options.check_network_options(parameters)
    data = read_tables(tables.nodes, tables.edges, tables.columns)
    if data.X is None and find_base(name).features:
        raise ValueError(f"{tables.nodes} has no column to predict from, which --base {name} needs; use --base mean.")
    return data, GraphRegressor(**parameters | {"correlation": None if chosen == "none" else chosen})


def _job(data: NodeData, model: GraphRegressor) -> Job:
    from residua.resources import Job

    features = 0 if data.X is None else data.X.shape[1]
    return Job.of(data.graph, options.known(data.y), features, model.base, model.correlation, model.ensemble)


def describe_model(model: GraphRegressor, diagnosis: Diagnosis, base: str) -> dict[str, Any]:
    """Return what was learned, for people and for JSON."""
    ends = diagnosis.alpha_interval if model.correlation_ is not None else dict.fromkeys(model.alpha_, (None, None))
    summary = model.summary().to_dict()
    kept = ("coefficients", "log_likelihood", "aic", "bic", "residual_std", "std_given_neighbours")
    return {
        "base": base,
        "correlation": model.correlation,
        "alpha": options.alpha_facts(model.alpha_, ends),
        "beta": model.beta_,
        "p_value": diagnosis.p_value,
        **{name: summary[name] for name in kept},
        "r2_base": diagnosis.r2_base,
        "r2_corrected": diagnosis.r2_corrected,
        "labels_left_out": diagnosis.n_labelled,
        "coverage_of_gaussian_90": diagnosis.coverage,
        "verdict": diagnosis.verdict,
        "warnings": list(diagnosis.warnings),
    }


def fit_lines(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was read and learned, as labelled lines."""
    yield from options.fact_lines(found)
    for k, (name, alpha) in enumerate(found["alpha"].items()):
        learned = alpha["lower"] is not None
        interval = f"95 % interval [{alpha['lower']:+.4f}, {alpha['upper']:+.4f}]" if learned else "not learned"
        yield "" if k else "Alpha", f"{name}: {alpha['value']:+.4f}, {interval}"
    yield from _coefficient_lines(found["coefficients"])
    known = found["r2_base"] == found["r2_base"]  # NaN is unlike itself
    base = f"{found['r2_base']:.3f}" if known else "unknown (it was trained with the correlation)"
    scores = f"base {found['base']} {base}, corrected {found['r2_corrected']:.3f}"
    yield "R2", f"{scores}; each of {found['labels_left_out']:,} labels predicted without itself"
    yield "Verdict", found["verdict"]
    yield from (("Note", note) for note in found["warnings"])
    yield "Model", f"{found['model']} ({found['seconds']:.1f} s)"


def _coefficient_lines(coefficients: dict[str, dict[str, float]]) -> Iterator[tuple[str, str]]:
    """Yield the coefficients of a linear base in the units of the columns, those with the largest statistic first."""
    rows = sorted(coefficients.items(), key=lambda row: -abs(row[1]["statistic"]))
    for k, (name, row) in enumerate(rows[:MOST_COEFFICIENTS]):
        estimable = row["std_error"] == row["std_error"]
        error = f", standard error {row['std_error']:.2g}, p = {row['p_value']:.2g}" if estimable else ""
        yield "" if k else "Mean", f"{name}: {row['estimate']:+.4g}{error}"
    if len(rows) > MOST_COEFFICIENTS:
        yield "", f"and {len(rows) - MOST_COEFFICIENTS} more, with --json"


def predict(
    model: Annotated[Path, Argument(help="A file that `residua fit` wrote.", show_default=False)],
    nodes: Annotated[Path | None, Option(help="Another node table; its known labels are used.")] = None,
    edges: Annotated[Path | None, Option(help="The edge table of those nodes.")] = None,
    labels: Annotated[Path | None, Option(help="Labels that came after the fit: a table of ids and target.")] = None,
    polygons: Annotated[Path | None, Option(help="A map of the nodes, for predictions as .gpkg or .geojson.")] = None,
    coverage: Annotated[float, Option(help="Share of nodes that lower to upper should cover.")] = 0.9,
    skip_unknown: options.SkipUnknown = False,
    trust: options.Trust = False,
    output: Annotated[Path, options.Output(help="Where predictions go: .csv, .parquet, .gpkg or .geojson.")] = Path(
        "predictions.csv"
    ),
) -> None:
    """Write a line for each node: id, prediction, std, lower, upper, base, correction."""
    from residua.io.tables.graphs import read_again, read_labels
    from residua.io.tables.maps import on_map
    from residua.io.tables.predictions import SUFFIXES, check_output, prediction_table, write_table
    from residua.maps import write_map

    check_output(output, SUFFIXES, (model, nodes, edges, labels, polygons))
    polygons = _map_of(output, polygons, nodes)
    if not 0 < coverage < 1:
        raise ValueError(f"--coverage {coverage:g} is not between 0 and 1; for nine in ten give 0.9.")
    if labels is not None and (nodes or edges) is not None:
        raise ValueError(f"--labels {labels} is for the graph of the fit; leave out --nodes and --edges, or --labels.")
    if (nodes is None) != (edges is None):
        raise ValueError("give --nodes and --edges together, or neither for the graph of the fit.")
    with status():
        fitted = load_model(model, trust)
        given = nodes or labels
        if given is not None and not hasattr(fitted, "recipe_"):
            raise ValueError(f"{model} was not fitted on tables, so it cannot read {given}; fit it by `residua fit`.")
        data = read_again(nodes, edges, fitted.recipe_, skip_unknown) if nodes and edges else None
        later = read_labels(labels, fitted.graph_, fitted.recipe_) if labels else None
        table = prediction_table(fitted, data, coverage, later)
        if polygons is None:
            write_table(table, output)
        else:
            write_map(on_map(table, polygons, fitted.recipe_.id if hasattr(fitted, "recipe_") else "id"), output)
    for note in data.notes if data else ():
        options.note(note)
    if later is not None:
        known, again = options.known(later), options.known(fitted.y_[later == later])
        options.note(f"{labels}: new labels {known - again:,}, in place of one of the fit {again:,}.")
    unknown = int((table["std"] > 0).sum())
    typer.echo(f"{output}: {len(table):,} nodes, {unknown:,} of them predicted and {len(table) - unknown:,} known")


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


def load_model(path: Path, trust: bool = False) -> GraphRegressor:
    """Load the model of a command; one with trees has to be trusted."""
    from residua.estimator import GraphRegressor
    from residua.io.model_file import ModelFileError, load

    try:
        trusted = [name for entry in BASES.values() for name in entry.trusted] if trust else ()
        return load(path, trusted=trusted, kind=GraphRegressor)
    except ModelFileError as error:
        if "not trusted by default" not in str(error):
            raise
        beyond = "it holds other types than `residua fit` writes; load it in Python"
        remedy = beyond if trust else "if you know where the file comes from, add --trust"
        raise ModelFileError(f"{path} holds trees or other types that can steer compiled code; {remedy}.") from None


def status(base: str = "linear") -> AbstractContextManager[Any]:
    """Show something that turns while a person waits; a network has a bar of its own."""
    if find_base(base).kind == "network" or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("Working")
