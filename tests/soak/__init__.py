"""A soak: hostile files and faults thrown at residua for as long as one likes, by pytest in small and `make soak`.

The folder ``tests`` is on the path of both, so this package is called ``soak``.
"""
