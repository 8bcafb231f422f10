"""One change to the sources, and the tests that have to notice it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """In ``file`` (under src/residua), ``right`` becomes ``wrong``; ``tests`` must notice."""

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


def changes(file: str, tests: str, *changes: tuple[str, str, str]) -> list[Mutation]:
    """Return changes of one file that the same tests notice, each a name, what is right and what is wrong."""
    return [Mutation(name, file, right, wrong, tuple(tests.split())) for name, right, wrong in changes]
