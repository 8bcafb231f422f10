"""The authors' numbers."""

from residua.reproduction import paper, sets
from residua.reproduction.paper import Reference


def test_every_set_has_its_numbers():
    for table, methods in ((paper.CELLS1, paper.METHODS1), (paper.CELLS2, paper.METHODS2)):
        assert table.keys() == {(name, method) for name in sets.SETS for method in methods}
    assert paper.ALPHA.keys() == paper.BETA.keys() == set(sets.SETS)
    assert paper.CELLS2["twitch", "C-SAGE-pool"] == Reference(0.71, 0.03)
