"""What a fit takes is told before it begins, near to what it does take; what would not fit is refused."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.memory import run
from sklearn.linear_model import Ridge

from residua.resources import Job, TooLarge, available_bytes, check_memory, describe_estimate, estimate

SMALL = Job(nodes=100_000, edges=500_000, labels=60_000, features=20)


@pytest.mark.parametrize("job", [("mean", "learned", 40_000, 0, 1), ("linear", None, 40_000, 30, 1)], ids=str)
def test_the_estimate_is_within_a_factor_of_two_of_the_peak(job):
    [found] = run([job])
    assert 0.5 < found["expected_bytes"] / found["bytes"] < 2
    assert found["expected_seconds"] > 0


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
    ("base", "ensemble", "advice"),
    [
        ("hops", 5, r"ensemble=1 instead of 5 would take .* GB; base=\"linear\" would take"),
        ("mean", 1, "fewer draws"),
        (Ridge(), 1, r"residua\.distributed \(Dask\)"),
    ],
)
def test_a_job_that_would_not_fit_is_refused_with_what_to_change(base, ensemble, advice):
    job = replace(SMALL, nodes=10_000_000, edges=50_000_000, base=base, ensemble=ensemble)
    with pytest.raises(
        TooLarge, match=rf"about .* GB of memory and .* 10,000,000 nodes.*but 2\.0 GB are available; .*{advice}"
    ):
        check_memory(job, available=2e9)
    assert check_memory(job, available=1e15).bytes == estimate(job).bytes


def test_the_description_has_the_parts_and_what_there_is():
    text = describe_estimate(SMALL, available=1e12)
    assert "1000.0 GB available" in text
    assert "for variances" in text
    assert "would not fit" not in text
    assert "it would not fit: " in describe_estimate(SMALL, available=1e6)


LIMITS = {
    "proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n",
    "sys/fs/cgroup/memory.max": "3000000\n",
    "sys/fs/cgroup/memory.current": "1000000\n",
}


def test_the_least_limit_counts(tmp_path):
    assert available_bytes(tmp_path) == float("inf")
    for name, text in LIMITS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_bytes(tmp_path) == 2_000_000
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert available_bytes(tmp_path) == 4000 * 1024


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
    assert "TooLarge: this fit would take about 2." in done.stderr
    assert "but 1.0 GB are available" in done.stderr


def test_there_is_room_on_this_machine():
    assert 0 < available_bytes() < 1e16
    assert Path("/proc/meminfo").exists()
