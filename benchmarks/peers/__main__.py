"""Run the comparisons and write them to docs/results/peers.json and peers.md.

    python -m benchmarks.peers [--only logdet,propagation] [--threads 2] [--clock wall]

The county maps are read from the folder that RESIDUA_DATA names; without it the packaged map stands alone.
"""

from __future__ import annotations

import argparse
import os
import time
from importlib import import_module
from pathlib import Path

# A part, and the function that runs it.
PARTS = {
    "logdet": ("logdet", "run"),
    "logdet-exact": ("logdet", "run_exact"),
    "propagation": ("propagation", "run"),
    "spatial-error": ("spatial_error", "run"),
    "whole-fit": ("whole_fit", "run"),
    "joint-trees": ("joint_trees", "run"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: for one thread, on a shared machine"
    )
    parser.add_argument("--quick", action="store_true", help="smaller problems")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[2] / "docs" / "results")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"--only names {', '.join(sorted(unknown))}; use any of {', '.join(PARTS)}.")
    # Threads are read when a library loads, so all of them load after this.
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = str(arguments.threads)
    os.environ["RESIDUA_PEERS_QUICK"] = "1" if arguments.quick else "0"
    os.environ["RESIDUA_PEERS_CLOCK"] = arguments.clock
    from rich.console import Console

    from benchmarks.peers.record import keep, origin, show

    console = Console(width=150)
    for name in wanted:
        begin = time.perf_counter()
        module, function = PARTS[name]
        part = getattr(import_module(f"benchmarks.peers.{module}"), function)(arguments.threads)
        keep(part, origin(part, arguments.threads, time.perf_counter() - begin), arguments.folder)
        show(part, console)


if __name__ == "__main__":
    main()
