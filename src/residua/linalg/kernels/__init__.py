"""The loops that have to be fast, compiled by numba. Knows arrays alone."""
