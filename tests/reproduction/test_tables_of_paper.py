"""Tables 1 and 2, as the command line runs them: what is written."""

from residua.reproduction import tables
from residua.reproduction.registry import Options
from residua.reproduction.runs import Record, Task


def test_a_table_of_other_splits_leaves_the_papers_numbers_out(tmp_path):
    for first, shown in ((1, True), (11, False)):
        options = Options(1, ("ising-",), ("LP",), folder=tmp_path / str(first), first_seed=first)
        text = tables.table1(options, lambda *_: None).markdown
        assert ("(0.30; 0.300)" in text) is shown
        assert ("of seeds 1 to 10, other splits than these, and left out" in text) is not shown


def test_table1_is_printed_and_written(tmp_path, reproduce):
    output = reproduce("table1", "-o", str(tmp_path))
    assert "smoke test" in output
    assert "contacts-simulated" in output
    assert (tmp_path / "table1.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "table1.md").read_text()
    for word in ("| ising- |", "C-GNN", "numpy", "Python", "smoke test, the numbers mean nothing"):
        assert word in text
    before = (tmp_path / "table1.jsonl").read_bytes()
    reproduce("table1", "-o", str(tmp_path))
    assert (tmp_path / "table1.jsonl").read_bytes() == before


def test_table2_and_a_choice_of_methods(tmp_path, reproduce):
    reproduce("table2", "-o", str(tmp_path), "--datasets", "ising+", "--methods", "GCN,LP-GCN,C-SAGE-pool")
    text = (tmp_path / "table2.md").read_text()
    assert "|  | GCN | LP-GCN | C-SAGE-pool |" in text
    assert "SAGE-max" not in text


def test_a_comparison_is_written_in_full(tmp_path):
    """The files of a run that is not quick, from records that are there already."""
    for method, results in {"GNN": {"GNN": 0.5, "LP-GNN": 0.7}, "C-GNN": {"C-GNN": 0.69}}.items():
        values = {name: {"score": score, "alpha": [0.95], "beta": 66.0} for name, score in results.items()}
        with open(tmp_path / "table1.jsonl", "a") as file:
            file.write(Record(Task("table1", "election", method, 1), values, 1.0).line() + "\n")
    options = Options(1, ("election",), ("GNN", "LP-GNN", "C-GNN"), folder=tmp_path)
    result = tables.table1(options, lambda *_: None)
    assert "0.500 (0.51; 0.508) -0.010" in result.markdown
    assert "| election | +0.950 ± 0.000 | +0.95 | +0.951 | yes | 66.00 | 66.50 |" in result.markdown
    assert all(file.exists() for file in result.files)
