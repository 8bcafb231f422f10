"""What a fit takes is estimated before it begins, near to what it does take; what would not fit is refused."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from benchmarks.memory import PHASES, coefficients, run
from sklearn.linear_model import Ridge

from residua.resources import (
    COEFFICIENTS,
    Job,
    TooLarge,
    available_bytes,
    check_memory,
    describe_estimate,
    estimate,
    operations,
    sizes,
)

SMALL = Job(nodes=100_000, edges=500_000, labels=60_000, features=20)


@pytest.mark.parametrize("job", [("mean", "learned", 40_000, 0, 10), ("linear", None, 40_000, 30, 10)], ids=str)
def test_the_estimate_is_within_a_factor_of_two_of_the_peak(job):
    [found] = run([job])
    assert 0.5 < found["expected"]["bytes"] / max(found["bytes"].values()) < 2
    assert found["expected"]["seconds"] > 0


def test_splines_count_their_columns_up_to_the_most_there_are():
    def linear(base, features):
        job = replace(SMALL, base=base, features=features)
        return sizes(job)["linear"], operations(job)["linear"]

    assert linear("splines", 20) == linear("linear", 140)
    assert linear("splines", 100) == linear("linear", 340)


def test_coefficients_are_those_that_explain_what_was_measured():
    """Of jobs that take what some coefficients say, the benchmark finds these."""
    rng, held, spent = np.random.default_rng(0), json.loads(COEFFICIENTS.read_text()), []
    for base in ("linear", "trees", Ridge(), "hops") * 4:
        numbers = {name: int(rng.integers(10**4, 10**6)) for name in ("nodes", "edges", "labels")}
        job = Job(**numbers, features=int(rng.integers(5, 50)), base=base)
        size, count = sizes(job), operations(job)
        taken = {}
        for phase, by_name in held["bytes"].items():
            taken[phase] = sum(by_name[k] * v for k, v in size.items() if k in by_name)
        spent.append(
            {
                "sizes": size,
                "operations": count,
                "bytes": taken,
                "seconds": {
                    "predict": held["seconds"]["variances"] * count["variances"],
                    "fit": sum(held["seconds"][k] * v for k, v in count.items() if k != "variances"),
                },
            }
        )
    found = coefficients(spent)
    for phase in PHASES:
        assert found["bytes"][phase] == pytest.approx(held["bytes"][phase], rel=0.02, abs=1e-3)
    assert found["seconds"] == pytest.approx(held["seconds"], rel=0.02)


@pytest.mark.parametrize("more", ["nodes", "edges", "features"])
@pytest.mark.parametrize("base", ["linear", "sage", Ridge()])
def test_more_of_anything_takes_more(base, more):
    small = replace(SMALL, base=base)
    large = replace(small, **{more: 10 * getattr(small, more)})
    assert estimate(large).bytes > estimate(small).bytes
    assert estimate(large).seconds > estimate(small).seconds


def test_memory_grows_with_the_graph_and_not_with_its_square():
    ten = replace(SMALL, nodes=1_000_000, edges=5_000_000, labels=600_000)
    hundred = replace(SMALL, nodes=10_000_000, edges=50_000_000, labels=6_000_000)
    assert estimate(hundred).bytes == pytest.approx(10 * estimate(ten).bytes, rel=0.01)
    assert 10 < estimate(ten).bytes / estimate(SMALL).bytes < 13  # and a copy in another order


def test_a_job_is_told_from_its_graph():
    from graphs import CASES

    job = Job.of(CASES["two types"].graph, 5, 2, "mean", "propagate")
    assert (job.nodes, job.edges, job.labels, job.edge_types, job.weighted) == (9, 13, 5, 2, True)
    assert Job.of(CASES["path"].graph, 4, 0, "mean", None).weighted is False


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"base": "hops", "features": 100}, "a tenth of the features would take .* GB"),
        ({"base": "mean"}, "fewer draws"),
        ({"base": Ridge()}, r"residua\.distributed \(Dask\)"),
    ],
    ids=str,
)
def test_a_job_that_would_not_fit_is_refused_with_what_to_change(change, advice):
    job = replace(SMALL, nodes=10_000_000, edges=50_000_000, **change)
    with pytest.raises(
        TooLarge, match=rf"about .* GB of memory and .* 10,000,000 nodes.*but 2\.0 GB are available; .*{advice}"
    ):
        check_memory(job, available=2e9)
    assert check_memory(job, available=1e15).bytes == estimate(job).bytes


def test_a_small_network_is_told_to_do_without_torch():
    with pytest.raises(TooLarge, match=r'base="linear" would take .* MB'):
        check_memory(replace(SMALL, base="sage", nodes=10_000, edges=50_000, labels=6_000), available=1e8)


def test_the_description_has_the_parts_and_what_there_is():
    text = describe_estimate(SMALL, available=1e12)
    assert "1000.0 GB available" in text
    assert "for variances" in text
    assert "would not fit" not in text
    assert "it would not fit: " in describe_estimate(SMALL, available=1e6)


LIMITS = {
    "sys/fs/cgroup/memory.max": "3000000\n",
    "sys/fs/cgroup/memory.current": "1000000\n",
}


def test_the_least_limit_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=4_000_000))
    assert available_bytes(tmp_path) == 4_000_000
    for name, text in LIMITS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_bytes(tmp_path) == 2_000_000
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert available_bytes(tmp_path) == 4_000_000


def test_a_limit_of_the_process_counts():
    """Under 1 GB of address space a fit of a million nodes is refused before it takes any of it."""
    code = (
        "import resource\n"
        "from residua.resources import Job, check_memory\n"
        "used = int(next(l for l in open('/proc/self/status') if l.startswith('VmSize')).split()[1]) * 1024\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, used + 10**9))\n"
        "check_memory(Job(1_000_000, 5_000_000, 600_000, base='mean'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert re.search(r"TooLarge: this fit would take about [12]\.", done.stderr)
    assert "but 1.0 GB are available" in done.stderr


def test_there_is_room_on_this_machine():
    assert 0 < available_bytes() <= psutil.virtual_memory().total
