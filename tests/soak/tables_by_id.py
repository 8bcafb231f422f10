"""Pandas tables in any order, with a wrong id, or without ids: matched to nodes to the last bit, or refused."""

import numpy as np

from by_id import ASKED, WRONG, World, ask, dropped, kinds_of_ids
from soak.verdicts import Budget, Judge, PromiseBroken, until


def run(budget: Budget, random_state: int) -> dict[str, float]:
    """Ask random questions of random tables."""
    judge, matched = Judge(), 0
    for k in until(budget):
        rng = np.random.default_rng([random_state, k])
        kinds = kinds_of_ids(int(rng.integers(14, 50)))
        kind, what = rng.choice(sorted(kinds)), rng.choice(sorted(ASKED))
        ids = [kinds[kind][at] for at in rng.permutation(len(kinds[kind]))]
        world = World(tuple(ids), seed=int(rng.integers(2**31)))
        case = f"{random_state} {k} {kind} {what}".encode()
        tables = [world.tables[name] for name in ASKED[what][0]]
        shuffled = [table.iloc[rng.permutation(len(ids))].rename_axis("id") for table in tables]
        matched += _matched(judge, case, what, world, tables, shuffled)
        for change in WRONG:
            wrong, at = list(shuffled if rng.random() < 0.7 else tables), int(rng.integers(len(tables)))
            if change is dropped and ASKED[what][0][at] == "later":  # which may be the labels of a few ids
                continue
            wrong[at], example = change(wrong[at], int(rng.integers(len(ids))))
            _refused(judge, case + change.__name__.encode(), what, world, wrong, example)
        if len(tables) > 1:
            at = int(rng.integers(len(tables)))
            mixed = [table.to_numpy() if j == at else table for j, table in enumerate(shuffled)]
            if any(not table.index.equals(world.index) for j, table in enumerate(shuffled) if j != at):
                _refused(judge, case + b"contradiction", what, world, mixed, "has no ids")
        if kind in ("numbers", "counted", "beyond float", "decimals") and ids != sorted(ids):
            bare = [table.reset_index(drop=True) for table in tables]
            _refused(judge, case + b"default index", what, world, bare, "default index")
    return {**judge.counts, "matched": matched}


def _matched(judge: Judge, case: bytes, what: str, world: World, tables: list, shuffled: list) -> bool:
    """Whether the question has an answer; then it is the same to the last bit in whatever order rows come."""
    answers: list[np.ndarray] = []
    given = ([table.to_numpy() for table in tables], tables, shuffled)
    if not judge.judge(case, lambda: answers.extend(np.asarray(ask(what, world, table)) for table in given)):
        return False
    for other in answers[1:]:
        if not np.array_equal(other, answers[0], equal_nan=True):
            raise PromiseBroken(f"the order of rows changed an answer: {case.decode()}")
    return True


def _refused(judge: Judge, case: bytes, what: str, world: World, tables: list, example: str) -> None:
    if judge.judge(case, lambda: ask(what, world, tables), example):
        raise PromiseBroken(f"wrong tables were taken: {case.decode()}")
