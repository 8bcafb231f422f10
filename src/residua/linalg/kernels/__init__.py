"""The loops that have to be fast, compiled by numba. Knows only arrays."""
