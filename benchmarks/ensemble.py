"""Five networks trained in one pass or one after the other: whole fits of 100 steps, in one run."""

from rich.console import Console

from benchmarks.common import best_seconds
from benchmarks.training import problem
from residua import GraphRegressor, Network
from residua.bases.networks import stack

MEMBERS = 5
CASES = (
    ("hops", 914, (16, 16, 8)),
    ("hops", 3_234, (16, 16, 8)),
    ("hops", 3_234, (64, 32)),
    ("hops", 10_000, (16, 16, 8)),
    ("hops", 30_000, (64, 32)),
    ("sage", 914, (16, 8)),
    ("sage", 3_234, (16, 8)),
    ("sage", 10_000, (16, 8)),
)


def fit_seconds(kind: str, n: int, widths: tuple[int, ...], correlation: str | None, together: bool) -> float:
    graph, data, _ = problem(n)
    base = Network(kind, widths=widths, epochs=100, patience=10**9, batch_size=10**9)
    model = GraphRegressor(base, correlation, ensemble=MEMBERS)
    limits, stack.MOST = stack.MOST, {kind: 10**12} if together else {}
    try:
        return best_seconds(lambda: model.fit(data.x.double().numpy(), data.y, graph=graph), repeats=2)
    finally:
        stack.MOST = limits


def run(console: Console | None = None) -> None:
    console = console or Console()
    console.rule(f"{MEMBERS} networks at once, or one after the other")
    for kind, n, widths in CASES:
        chosen = "at once" if stack.worth_stacking(kind, n, widths) else "in turn"
        for correlation in (None, "learned"):
            in_turn, together = (fit_seconds(kind, n, widths, correlation, once) for once in (False, True))
            console.print(
                f"{kind}, n = {n:,}, widths {widths}, correlation {correlation}: {in_turn:.2f} s in turn, "
                f"{together:.2f} s at once: {in_turn / together:.2f}; a fit takes them {chosen}",
                highlight=False,
            )
    console.print()


if __name__ == "__main__":
    run()
