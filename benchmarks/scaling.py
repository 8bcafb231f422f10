"""Time of build, fit and mean from 10^4 to 10^6 nodes, and the exponent of n."""

import numpy as np
from rich.console import Console
from rich.table import Table

import residua
from benchmarks.common import best_seconds, correlated_residuals, predict_mean, warm_up, watts_strogatz

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)


def measure(n: int) -> tuple[float, float, float]:
    """Seconds of build, fit and mean."""
    source, target = watts_strogatz(n)
    graph = residua.Graph.from_edges(source, target)
    residual = correlated_residuals(graph, 0.9, 1.0, 0.6)
    return (
        best_seconds(lambda: residua.Graph.from_edges(source, target)),
        best_seconds(lambda: residua.fit_correlation(residual, graph)),
        best_seconds(lambda: predict_mean(residual, graph, 0.9)),
    )


def run(console: Console | None = None) -> None:
    console = console or Console()
    warm_up()
    table = Table(title="Watts-Strogatz, mean degree 10, 60 % labelled, alpha 0.9: seconds")
    for column in ("nodes", "build", "fit", "mean", "total"):
        table.add_column(column, justify="right")
    totals = []
    for n in SIZES:
        seconds = measure(n)
        totals.append(sum(seconds))
        table.add_row(f"{n:,}", *(f"{part:.3f}" for part in (*seconds, totals[-1])))
    slope = np.polyfit(np.log(SIZES), np.log(totals), 1)[0]
    ends = np.log(totals[-1] / totals[0]) / np.log(SIZES[-1] / SIZES[0])
    console.print(table)
    console.print(f"time grows like n^{slope:.2f} (least squares), n^{ends:.2f} from end to end\n")


if __name__ == "__main__":
    run()
