"""Default fits of networks on the packaged map, a third of its labels hidden: CPU seconds, R2 and alpha.

With the path of another checkout its fits are made in turn with ours, each in a process of its own, and the ratio of
the least seconds is printed:

    python -m benchmarks.defaults ../other-checkout
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console

import residua

BASES = ("sage", "hops", "mlp")
ROUNDS, SEED = 12, 0
HERE = Path(__file__).resolve()


def serve(base: str) -> None:
    """Fit once for each line of standard input, and answer with seconds, R2 at the hidden labels and alpha."""
    data = residua.datasets.load_elect80()
    hidden = np.random.default_rng(SEED).random(len(data.y)) < 1 / 3
    y = np.where(hidden, np.nan, data.y)
    for _ in sys.stdin:
        begin = time.process_time()
        model = residua.GraphRegressor(base).fit(data.X, y, graph=data.graph)
        seconds = time.process_time() - begin
        error = data.y[hidden] - model.predict()[hidden]
        r2 = 1 - np.mean(error**2) / np.var(data.y[hidden])
        print(json.dumps([seconds, r2, model.alpha_["edge"]]), flush=True)


@contextmanager
def server(tree: Path, base: str) -> Iterator[subprocess.Popen[str]]:
    """A process that fits with the residua of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    with subprocess.Popen(
        [sys.executable, str(HERE), "--serve", base],
        cwd=tree,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def fit(process: subprocess.Popen[str]) -> list[float]:
    """Seconds, R2 and alpha of one fit there."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def run(console: Console | None = None, others: tuple[Path, ...] = (), rounds: int = ROUNDS) -> None:
    console = console or Console()
    console.rule("Default fits of networks, elect80, a third of the labels hidden")
    trees = HERE.parents[1], *others
    for base in BASES:
        with ExitStack() as stack:
            processes = [stack.enter_context(server(tree, base)) for tree in trees]
            first = [fit(process) for process in processes]  # loads or compiles what later ones use
            seconds = np.full(len(trees), np.inf)
            for k in range(rounds):
                for i in range(len(trees))[:: 1 - 2 * (k % 2)]:  # there and back, so that none is always first
                    seconds[i] = min(seconds[i], fit(processes[i])[0])
        ours = f"{base}: {seconds[0]:.3f} CPU s, R2 {first[0][1]:.4f}, alpha {first[0][2]:.5f}"
        theirs = (
            f"; {tree.name}: {s:.3f} CPU s, R2 {one[1]:.4f}, alpha {one[2]:.5f}; ours takes {seconds[0] / s:.3f} of it"
            for tree, s, one in zip(others, seconds[1:], first[1:], strict=True)
        )
        console.print(ours + "".join(theirs), highlight=False)
    console.print()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        run(others=tuple(Path(tree).resolve() for tree in sys.argv[1:]))
