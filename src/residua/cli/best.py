"""``residua fit --base best``: several bases, averaged; parse, call one function, print."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from residua.bases.registry import networks_installed
from residua.cli import options

if TYPE_CHECKING:
    from residua.average import Average
    from residua.estimator import GraphRegressor
    from residua.io.tables.graphs import NodeData


def jobs(data: NodeData) -> list[Any]:
    """Return the sizes of the fits that take most."""
    from residua.resources import Job

    features = 0 if data.X is None else data.X.shape[1]
    bases = ("linear", "trees", *(("hops",) if networks_installed() else ()))
    return [Job.of(data.graph, options.known(data.y), features, base, "learned") for base in bases]


def check_options(parameters: dict[str, Any]) -> None:
    """Refuse options that several bases together would not look at."""
    for option, default in (options.OF_NETWORKS | {"correlation": "learned", "field": "normalised"}).items():
        if parameters.get(option, default) != default:
            raise ValueError(f"--{option} is for a single base, and --base best takes several; leave it out.")


def fit_best(tables: options.Tables, data: NodeData, parameters: dict[str, Any], output: Path) -> dict[str, Any]:
    """Fit and save; return what there is to print."""
    from residua.best_average import BUDGET, best
    from residua.resources import check_memory

    begin = time.perf_counter()
    if data.X is None:
        raise ValueError(f"{tables.nodes} has no column to predict from, which --base best needs; use --base mean.")
    for job in jobs(data):
        check_memory(job)
    seed, budget = parameters["random_state"], parameters["time_budget"] or BUDGET
    with options.name_labels(tables):
        average = best(data.features, data.y, graph=data.graph, time_budget=budget, random_state=seed)
    average.recipe_ = data.recipe
    average.save(output)
    found = options.facts_of(data) | describe_average(average)
    return found | {"seconds": time.perf_counter() - begin, "model": str(output)}


def describe_average(average: Average) -> dict[str, Any]:
    """Return what was learned, for people and for JSON."""
    scores = average.out_of_sample_scores()
    return {
        "base": options.BEST,
        "correlation": "learned",
        "bases": [
            {"base": name_of(model), "weight": float(weight), "alpha": model.alpha_, "r2_corrected": score}
            for model, weight, score in zip(average.models, average.weights, scores.r2_of_models, strict=True)
        ],
        "r2_corrected": scores.r2,
        "labels_left_out": scores.n_labels,
        "coverage_of_gaussian_90": scores.coverage,
    }


def name_of(model: GraphRegressor) -> str:
    """Return what a base is called; a pipeline by its steps."""
    steps = getattr(model.base, "steps", ())
    return ", ".join(type(step).__name__ for _, step in steps) or model.base_.name


def best_lines(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was read and learned, as labelled lines."""
    yield from options.fact_lines(found)
    for k, one in enumerate(sorted(found["bases"], key=lambda one: -one["weight"])):
        alpha = ", ".join(f"{name} {value:+.4f}" for name, value in one["alpha"].items())
        yield "" if k else "Bases", f"{one['base']}: weight {one['weight']:.2f}, R2 {one['r2_corrected']:.3f}, {alpha}"
    yield "R2", f"{found['r2_corrected']:.3f}; each of {found['labels_left_out']:,} labels predicted without itself"
    yield "Model", f"{found['model']} ({found['seconds']:.1f} s)"
