"""One model past one machine: S in row blocks on the workers of a Dask cluster; no solver and no statistics.

    w_b = S_b [v_b, halo_b]        halo_b: the rows of other blocks that block b has a neighbour in

A gang of tasks, one for each block, runs the model of one machine on its own rows; products fetch the halo, and
inner products are summed over the gang. Needs the extra ``dask``.
"""

from __future__ import annotations

from residua.extras import needs

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(needs("residua.backends.dask", "Dask", "dask", error, "use residua on one machine")) from None
