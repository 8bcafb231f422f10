"""`python -m tests.soak --minutes 30`: every part for its share of the time, each in a process of its own."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))  # as pytest has it

from residua.reproduction.provenance import provenance  # noqa: E402
from soak.parts import PARTS  # noqa: E402
from soak.results import PACKAGES, Outcome, shown, totals, write_results  # noqa: E402

GRACE = 600.0  # seconds beyond its time after which a part counts as hung
RESULT = "soak-result "


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="of all parts together")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS), metavar="PART", help="by name")
    parser.add_argument("--output", type=Path, default=TESTS.parent / "docs" / "results", help="folder of the results")
    parser.add_argument("--alone", type=float, help=argparse.SUPPRESS)  # seconds: do one part in this process
    return parser.parse_args()


def main() -> int:
    given = options()
    if given.alone is not None:
        print(RESULT + json.dumps(PARTS[given.parts[0]].find()(given.alone, given.seed)), flush=True)
        return 0
    share = 60 * given.minutes / sum(PARTS[name].share for name in given.parts)
    outcomes = []
    for name in given.parts:
        outcomes.append(apart(name, share * PARTS[name].share, given.seed))
        print(f"{name}: {outcomes[-1].broken or shown(outcomes[-1].counts)} ({outcomes[-1].seconds:.0f} s)", flush=True)
    print(shown(totals(outcomes)), flush=True)
    if set(given.parts) == set(PARTS):
        command = f"python -m tests.soak --minutes {given.minutes:g}" + (f" --seed {given.seed}" if given.seed else "")
        write_results(given.output, outcomes, provenance(command, PACKAGES))
    return any(outcome.broken for outcome in outcomes)


def apart(name: str, seconds: float, seed: int) -> Outcome:
    """A part in a process of its own, so that a crash of compiled code is seen and ends nothing else."""
    command = [sys.executable, "-m", "tests.soak", "--alone", str(seconds), "--seed", str(seed), "--parts", name]
    begin = time.perf_counter()
    try:
        done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, timeout=seconds + GRACE)
    except subprocess.TimeoutExpired:
        return Outcome(name, {}, time.perf_counter() - begin, f"still at work {GRACE:.0f} s after its time")
    took = time.perf_counter() - begin
    results = [line.removeprefix(RESULT) for line in done.stdout.splitlines() if line.startswith(RESULT)]
    if done.returncode == 0 and results:
        return Outcome(name, json.loads(results[-1]), took)
    print(done.stderr, file=sys.stderr, flush=True)
    last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
    return Outcome(name, {}, took, f"exit code {done.returncode}: {last[:300]}")


if __name__ == "__main__":
    sys.exit(main())
