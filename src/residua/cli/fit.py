"""The command ``fit``: parse, call, print."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from residua.bases.registry import LINEAR, find_base, listed
from residua.cli import best, options

if TYPE_CHECKING:
    from residua.diagnosis import Diagnosis
    from residua.estimator import GraphRegressor
    from residua.io.tables.graphs import NodeData
    from residua.resources import Job


@options.of_tables
def fit(
    tables: options.Tables,
    base: Annotated[str, Option(help=options.FIT_HELP)] = "linear",
    correlation: Annotated[str, Option(help="What neighbours' residuals add: learned, propagate or none.")] = "learned",
    field: Annotated[str, Option(help=f"Precision of the residuals: {options.FIELDS}")] = "normalised",
    training: Annotated[str, Option(help="Of networks: joint, post-hoc or paper.")] = "joint",
    ensemble: Annotated[int, Option(min=1, help="Of networks: members that are averaged.")] = 1,
    seed: options.Seed = 0,
    checkpoint: Annotated[Path | None, Option(help="Of networks: file to go on from after an interruption.")] = None,
    device: Annotated[str, Option(help="Of networks: where they are trained, cpu, cuda, mps or auto.")] = "cpu",
    time_budget: Annotated[
        float | None,
        Option(help="CPU seconds after which a training ends with the best so far; of best, by default 120."),
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only tell what is read, and what a fit would take.")] = False,
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
    if time_budget is not None:
        from residua.validation import check_seconds

        check_seconds(time_budget, "--time-budget")
    several = base == options.BEST
    if several or find_base(base).tables:
        tables = replace(tables, columns=replace(tables.columns, as_is=True))
    elif not find_base(base).features and tables.columns.features is None:
        tables = replace(tables, columns=replace(tables.columns, features=()))
    parameters = {"base": base, "correlation": correlation, "training": training, "ensemble": ensemble, "field": field}
    parameters |= {"random_state": seed, "checkpoint": checkpoint, "device": device}
    if several:
        best.check_options(parameters)
    if scheduler is not None:
        if several:
            raise ValueError(f"--base best is for one machine; on a cluster use {listed(LINEAR)}.")
        from residua.cli.scheduler import fit_on_cluster, lines

        if dry_run:
            raise ValueError("--dry-run tells what a fit takes on one machine; leave out --scheduler, or --dry-run.")
        folder = Path("predictions") if output == Path("model.residua") else output
        found = fit_on_cluster(scheduler, tables, parameters, folder)
        options.print_json(found) if as_json else options.say_all(lines(found))
    elif dry_run:
        if several:
            data = _read(tables)
            rehearsed = rehearsal(data, best.jobs(data))
        else:
            data, model = _ready(tables, parameters)
            rehearsed = rehearsal(data, [_job(data, model)])
        options.print_json(rehearsed) if as_json else options.say_all(rehearsal_lines(rehearsed))
    elif several:
        found = best.fit_best(tables, _read(tables), parameters | {"time_budget": time_budget}, output)
        options.print_json(found) if as_json else options.say_all(best.best_lines(found))
    else:
        found = fit_tables(tables, parameters, output, time_budget or inf)
        options.print_json(found) if as_json else options.say_all(fit_lines(found))


def rehearsal(data: NodeData, jobs: Sequence[Job]) -> dict[str, Any]:
    """Return what was read, what the graph looks like, and what a fit would take."""
    import numpy as np

    from residua.resources import available_bytes, describe_estimate, estimate

    graph, needs = data.graph, [estimate(job) for job in jobs]
    counts = np.diff(graph.adjacency().indptr)
    A = graph.adjacency().tocoo()
    shown = [f"{graph.nodes[i]} - {graph.nodes[j]}" for i, j in zip(A.row[:6], A.col[:6], strict=True) if i < j][:3]
    return options.facts_of(data) | {
        "preview": {
            "edges": shown,
            "neighbours_least": int(counts.min()),
            "neighbours_median": float(np.median(counts)),
            "neighbours_most": int(counts.max()),
            "isolated": [str(node) for node in graph.nodes[counts == 0][:MOST_ISOLATED]],
        },
        "bytes": max(need.bytes for need in needs),
        "bytes_available": available_bytes(),
        "seconds": sum(need.seconds for need in needs),
        "seconds_to_compile": COMPILATION,
        "needs": "\n".join(describe_estimate(job) for job in jobs),
    }


def rehearsal_lines(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the same as labelled lines."""
    yield from options.fact_lines(found)
    seen = found["preview"]
    counts = f"{seen['neighbours_least']:,} to {seen['neighbours_most']:,}, median {seen['neighbours_median']:,.0f}"
    yield (
        "Graph",
        f"neighbours of a node: {counts}; {found['components']:,} components; such as {', '.join(seen['edges'])}",
    )
    if seen["isolated"]:
        more = ", .." if found["isolates"] > len(seen["isolated"]) else ""
        yield "", f"without an edge: {', '.join(seen['isolated'])}{more}"
    first, *rest = found["needs"].splitlines()
    yield "Needs", f"{first}; the first fit on a machine takes some {found['seconds_to_compile']} s more, to compile"
    yield from (("", line.strip()) for line in rest)
    yield "Written", "nothing: this was a dry run"


COMPILATION = 7  # seconds that a first call takes, `python -m benchmarks.people`
MOST_ISOLATED = 5  # nodes without an edge that are named
MOST_COEFFICIENTS = 8  # that are printed


def fit_tables(
    tables: options.Tables, parameters: dict[str, Any], output: Path, time_budget: float = inf
) -> dict[str, Any]:
    """Read, fit and save; return what there is to print."""
    begin, name = time.perf_counter(), parameters["base"]
    with options.status(name):
        from residua.resources import check_memory

        data, model = _ready(tables, parameters)
        check_memory(_job(data, model))
        with options.name_labels(tables):
            model.fit(data.features, data.y, graph=data.graph, time_budget=time_budget)
        model.recipe_ = data.recipe
        diagnosis = model.diagnose()
        model.save(output)
    facts = options.facts_of(data)
    if not find_base(name).features:
        facts["left_out"] = {}
    learned = describe_model(model, diagnosis, name)
    return facts | learned | {"seconds": time.perf_counter() - begin, "model": str(output)}


def _read(tables: options.Tables) -> NodeData:
    from residua.io.tables.graphs import read_tables

    return read_tables(tables.nodes, tables.edges, tables.columns)


def _ready(tables: options.Tables, parameters: dict[str, Any]) -> tuple[NodeData, GraphRegressor]:
    """Read the tables, and make a model that is not fitted yet."""
    from residua.estimator import GraphRegressor
    from residua.validation import check_choice

    name, chosen = parameters["base"], parameters["correlation"]
    check_choice(chosen, ("learned", "propagate", "none"), "correlation")
    options.check_network_options(parameters)
    data = _read(tables)
    if data.X is None and find_base(name).features:
        raise ValueError(f"{tables.nodes} has no column to predict from, which --base {name} needs; use --base mean.")
    return data, GraphRegressor(**parameters | {"correlation": None if chosen == "none" else chosen})


def _job(data: NodeData, model: GraphRegressor) -> Job:
    from residua.resources import Job

    features = 0 if data.X is None else data.X.shape[1]
    job = Job.of(data.graph, options.known(data.y), features, model.base, model.correlation, model.ensemble)
    return replace(
        job, weighted=job.weighted or model.field != "normalised"
    )  # self-loops of the Laplacian have weights


def describe_model(model: GraphRegressor, diagnosis: Diagnosis, base: str) -> dict[str, Any]:
    """Return what was learned, for people and for JSON."""
    ends = diagnosis.alpha_interval if model.correlation_ is not None else dict.fromkeys(model.alpha_, (None, None))
    summary = model.summary().to_dict()
    kept = (
        "coefficients",
        "log_likelihood",
        "log_likelihood_mc_error",
        "aic",
        "bic",
        "residual_std",
        "std_given_neighbours",
    )
    return {
        "base": base,
        "correlation": model.correlation,
        "alpha": options.alpha_facts(model.alpha_, ends),
        "beta": model.beta_,
        "field": model.field_.kind,
        "field_in_words": diagnosis.field,
        "smoothing": model.field_.smoothing,
        "p_value": diagnosis.p_value,
        **{name: summary[name] for name in kept},
        "r2_base": diagnosis.r2_base,
        "r2_corrected": diagnosis.r2_corrected,
        "r2_left_out_blocks": diagnosis.blocks.r2 if diagnosis.blocks else None,
        "labels_left_out": diagnosis.n_labelled,
        "coverage_of_gaussian_90": diagnosis.coverage,
        "verdict": diagnosis.verdict,
        "warnings": list(diagnosis.warnings),
    }


def fit_lines(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was read and learned, as labelled lines."""
    from residua.summary import p_text

    yield from options.fact_lines(found)
    for k, (name, alpha) in enumerate(found["alpha"].items()):
        learned = alpha["lower"] is not None
        interval = f"95 % interval [{alpha['lower']:+.4f}, {alpha['upper']:+.4f}]" if learned else "not learned"
        yield "" if k else "Alpha", f"{name}: {alpha['value']:+.4f}, {interval}"
    if found["field_in_words"]:
        yield "Field", found["field_in_words"]
    if found["p_value"] is not None:
        yield "", f"no correlation at all: p {p_text(found['p_value'], equals='= ')}"
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
