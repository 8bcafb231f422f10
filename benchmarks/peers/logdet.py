"""Log-determinant of Gamma = I - alpha S and its derivative in alpha, by random probes and Lanczos steps.

    d logdet Gamma / d alpha = -tr(Gamma^-1 S) = (n - tr Gamma^-1) / alpha

residua and the peers estimate from the same number of probes and steps. imate and scikit-primate take a second run
for the derivative (the trace of the inverse); linear_operator differentiates backwards; residua reads both off one
quadrature.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.clock import now
from benchmarks.peers.grids import grid
from benchmarks.peers.record import Cell, Part, Table, installed
from residua import Cholesky, Graph, Lanczos
from residua.linalg.logdet.choice import auto
from residua.linalg.logdet.strategy import Strategy
from residua.reproduction.figures.small_world import watts_strogatz

PEERS = ("imate", "linear_operator", "primate")
PROBES, STEPS = 128, 32
RELATIVE = 2.5e-3  # standard error over |logdet| that every method is asked to reach
REFERENCE_RUNS = 8


@dataclass(frozen=True)
class Problem:
    """Gamma in the form that each library reads, made before the clock starts."""

    graph: Graph
    alpha: float
    threads: int

    @cached_property
    def S(self):
        return self.graph.operators["edge"]

    @cached_property
    def gamma(self) -> sp.csr_matrix:
        return sp.csr_matrix(sp.eye_array(self.graph.n_nodes, format="csr") - self.alpha * self.S.to_scipy())

    @cached_property
    def tensor(self):
        import torch

        S = self.S.to_scipy()
        parts = (torch.as_tensor(part.astype(np.int64)) for part in (S.indptr, S.indices))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls its CSR tensors a beta
            return torch.sparse_csr_tensor(*parts, torch.as_tensor(S.data), S.shape)


@dataclass(frozen=True)
class Answer:
    """Value, derivative, what the method says of their errors (NaN: nothing), seconds: value, then both; probes."""

    value: float
    stderr: float
    slope: float
    slope_stderr: float
    seconds: float
    seconds_both: float
    size: str = ""


Method = Callable[[Problem, int, int, int], Answer]


def _clock() -> Callable[[], float]:
    begin = now()
    return lambda: now() - begin


def strategy_answer(problem: Problem, strategy: Strategy) -> Answer:
    alpha, clock = np.array([problem.alpha]), _clock()
    ratio = strategy.prepare([problem.S])
    value = ratio.value(alpha)
    seconds = clock()
    slope = ratio.gradient(alpha)
    both = clock()
    size = " x ".join(map(str, ratio.effort)) or "exact"
    numbers = (value.value, value.stderr, slope.value[0], slope.stderr[0], seconds, both)
    return Answer(*map(float, numbers), size)


def residua_lanczos(problem, probes, steps, seed) -> Answer:
    return strategy_answer(problem, Lanczos(probes, steps, random_state=seed))


def residua_plain(problem, probes, steps, seed) -> Answer:
    return strategy_answer(problem, Lanczos(probes, steps, control_variates=False, random_state=seed))


def residua_auto(problem, probes, steps, seed) -> Answer:
    return strategy_answer(problem, auto([problem.S], Lanczos(random_state=seed)))


def imate_slq(problem, probes, steps, seed) -> Answer:
    import imate

    options = {
        "method": "slq",
        "return_info": True,
        "min_num_samples": probes,
        "max_num_samples": probes,
        "lanczos_degree": steps,
        "num_threads": problem.threads,
        "seed": seed + 1,
    }
    gamma, clock = problem.gamma, _clock()
    value, told = imate.logdet(gamma, **options)
    seconds = clock()
    inverse, told_inverse = imate.traceinv(gamma, **options)
    both = clock()
    # It tells half the width of a 95 % interval.
    stderr, slope_stderr = (info["error"]["absolute_error"] / 1.959964 for info in (told, told_inverse))
    alpha, size = problem.alpha, f"{probes} x {steps}"
    slope = (gamma.shape[0] - float(inverse)) / alpha
    return Answer(float(value), stderr, slope, slope_stderr / alpha, seconds, both, size)


def primate_hutch(problem, probes, steps, seed) -> Answer:
    from primate.operators import MatrixFunction
    from primate.trace import hutch

    gamma, clock, found, seconds = problem.gamma, _clock(), [], []
    for function in (np.log, np.reciprocal):
        operator = MatrixFunction(gamma, fun=function, deg=steps, orth=0)
        options = {"batch": 1, "converge": "count", "count": probes, "record": True, "full": True, "seed": seed}
        mean, told = hutch(operator, **options)
        found.append((float(mean), float(np.std(np.ravel(told.estimator.values), ddof=1) / np.sqrt(probes))))
        seconds.append(clock())
    (value, stderr), (inverse, inverse_stderr) = found
    alpha, size = problem.alpha, f"{probes} x {steps}"
    return Answer(value, stderr, (gamma.shape[0] - inverse) / alpha, inverse_stderr / alpha, *seconds, size)


def linear_operator_logdet(problem, probes, steps, seed) -> Answer:
    import torch
    from linear_operator import settings

    from benchmarks.peers.gamma_operator import Gamma

    torch.set_num_threads(problem.threads)
    torch.manual_seed(seed)
    alpha = torch.tensor(problem.alpha, dtype=torch.float64, requires_grad=True)
    matrix, clock = problem.tensor, _clock()
    with (
        settings.num_trace_samples(probes),
        settings.max_lanczos_quadrature_iterations(steps),
        settings.max_cg_iterations(steps),
        settings.cg_tolerance(1e-12),  # so that all steps are taken, as by the others
        settings.max_preconditioner_size(0),
        settings.max_cholesky_size(1),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # that those steps did not reach 1e-12
        value = Gamma(alpha, matrix).inv_quad_logdet(logdet=True)[1]
        seconds = clock()
        value.backward()
    return Answer(value.item(), np.nan, alpha.grad.item(), np.nan, seconds, clock(), f"{probes} x {steps}")


METHODS: dict[str, tuple[str | None, Method]] = {
    "residua": (None, residua_lanczos),
    "residua, plain": (None, residua_plain),
    "imate": ("imate", imate_slq),
    "linear_operator": ("linear_operator", linear_operator_logdet),
    "scikit-primate": ("primate", primate_hutch),
}


def methods() -> dict[str, Method]:
    """Those that can run here."""
    return {name: method for name, (peer, method) in METHODS.items() if peer is None or installed(peer)}


def exact(problem: Problem) -> Answer:
    return strategy_answer(problem, Cholesky())


def rms(x: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def summary(name: str, runs: list[Answer], truth: Answer, unit: float) -> dict[str, Cell]:
    """One row: root mean square errors over the seeds beside the standard errors told; the best of the times."""
    both = min(run.seconds_both for run in runs)
    return {
        "method": name,
        "probes x steps": runs[0].size,
        "error of value": rms([run.value - truth.value for run in runs]),
        "told": rms([run.stderr for run in runs]),
        "error of derivative": rms([run.slope - truth.slope for run in runs]),
        "told ": rms([run.slope_stderr for run in runs]),
        "seconds, value": min(run.seconds for run in runs),
        "seconds, both": both,
        "times residua": both / unit,
    }


def gather(problem: Problem, seeds: int) -> dict[str, list[Answer]]:
    """Every method from the same number of probes and steps, and residua's own choice."""
    answers = {
        name: [method(problem, PROBES, STEPS, seed) for seed in range(seeds)] for name, method in methods().items()
    }
    answers["residua, auto"] = [residua_auto(problem, 0, 0, seed) for seed in range(seeds)]
    return answers


def equal_work(answers: dict[str, list[Answer]], truth: Answer, title: str) -> Table:
    known = f"known to {truth.stderr:.2g} and {truth.slope_stderr:.2g}" if truth.stderr else "exact, by a sparse factor"
    unit = min(run.seconds_both for run in answers["residua"])
    rows = [summary(name, runs, truth, unit) for name, runs in answers.items()]
    return Table(f"{title}: logdet {truth.value:,.2f}, derivative {truth.slope:,.2f} ({known})", rows)


def joined(runs: list[Answer]) -> Answer:
    """One estimate from several batches of probes."""
    means = [float(np.mean([getattr(run, name) for run in runs])) for name in ("value", "slope")]
    errors = [rms([getattr(run, name) for run in runs]) / np.sqrt(len(runs)) for name in ("stderr", "slope_stderr")]
    seconds = [sum(getattr(run, name) for run in runs) for name in ("seconds", "seconds_both")]
    return Answer(means[0], errors[0], means[1], errors[1], *seconds, f"{len(runs) * PROBES} x {STEPS}")


def reference(problem: Problem) -> Answer:
    """One estimate from many probes of other seeds, with twice the steps."""
    return joined([residua_lanczos(problem, PROBES, 2 * STEPS, 1000 + seed) for seed in range(REFERENCE_RUNS)])


def equal_error(answers: dict[str, list[Answer]], truth: Answer, title: str) -> Table:
    """The time to a standard error of RELATIVE; the peers' estimator is the plain one, whose error is told."""
    goal = RELATIVE * abs(truth.value)
    batches = math.ceil((answers["residua, plain"][0].stderr / goal) ** 2)
    ours = min(answers["residua, auto"], key=lambda run: run.seconds_both)
    rows: list[dict[str, Cell]] = []
    for name, runs in answers.items():
        if name == "residua" or len(runs) < batches:
            continue
        found = ours if name == "residua, auto" else joined(runs[:batches])
        times = found.seconds_both / ours.seconds_both
        row = {"method": name, "probes x steps": found.size, "error of value": abs(found.value - truth.value)}
        rows.append({**row, "told": found.stderr, "seconds, both": found.seconds_both, "times residua": times})
    return Table(f"{title}: seconds to a standard error of at most {RELATIVE:.2%} of the value, {goal:.2f}", rows)


def warm_up(threads: int) -> None:
    small = Problem(watts_strogatz(2_000), 0.95, threads)
    for method in (*methods().values(), residua_auto):
        method(small, 16, 8, 0)
    exact(small)


QUESTION = (
    "logdet(I - alpha S) and its derivative in alpha. Errors are root mean squares over the seeds; 'told' is the "
    "standard error that the method itself states (linear_operator states none). 'residua, plain' is the estimator "
    "of the peers on residua's kernels; 'residua' takes out what is known exactly."
)


def run(threads: int) -> Part:
    """A graph too large to factor: the truth is the mean of many other runs, with its error."""
    warm_up(threads)
    large = Problem(watts_strogatz(100_000), 0.95, threads)
    truth, answers = reference(large), gather(large, 3)
    title = "Watts-Strogatz, n = 100,000, alpha 0.95"
    tables = [equal_work(answers, truth, f"{title}, 3 seeds"), equal_error(answers, truth, title)]
    question = (
        f"{QUESTION} The truth is the mean of {REFERENCE_RUNS} other runs of residua with twice the steps, as far"
    )
    question += " as the errors they state let it be known; 1b has the exact truth."
    return Part("logdet", "1. Log-determinant and its derivative", question, PEERS, tables, remarks(tables))


def run_exact(threads: int) -> Part:
    """Graphs that a sparse factor can do, so that every error is known."""
    warm_up(threads)
    cases = [
        ("Watts-Strogatz, n = 5,000, alpha 0.95, 4 seeds", Problem(watts_strogatz(5_000), 0.95, threads), 4),
        ("Grid 100 x 100, alpha 0.99, 4 seeds", Problem(grid(100), 0.99, threads), 4),
    ]
    tables = []
    for title, problem, seeds in cases:
        truth = exact(problem)
        answers = gather(problem, seeds) | {"residua, Cholesky": [truth]}
        tables.append(equal_work(answers, truth, title))
    title = "1b. Log-determinant where the exact one is known"
    return Part("logdet-exact", title, QUESTION, PEERS, tables, remarks(tables))


def remarks(tables: list[Table]) -> list[str]:
    """What the tables say, in words with their numbers."""
    found = []
    for name, (peer, _) in METHODS.items():
        for table in tables if peer else ():
            rows = {str(row["method"]): row for row in table.rows}
            if name not in rows:
                continue
            row, ours = rows[name], rows.get("residua", rows["residua, auto"])
            # Errors of few seeds are luck; what a method tells of its error is not.
            told = "it tells no error"
            if row["told"] and np.isfinite(float(row["told"])):
                ratio = float(row["told"]) / float(ours["told"] or np.nan)
                told = f"the standard error it tells is {ratio:.1f} times as large"
            found.append(
                f"{table.title.split(':')[0]}: {name}, {row['probes x steps']}, takes {row['times residua']:.1f} times "
                f"the time of {ours['method']}, {ours['probes x steps']}; {told}."
            )
    found.append(
        "linear_operator takes any operator that can be multiplied and differentiates in all its parameters, imate and "
        "scikit-primate any matrix function; residua's strategies know this family of matrices alone, and gain from it."
    )
    return found
