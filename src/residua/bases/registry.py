"""Which bases there are: one table that Python, the command line, comparisons, Dask and the memory estimate read.

Nothing heavy is imported until a base is made, so that ``residua --help`` can read the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from residua.bases.base import Base


@dataclass(frozen=True)
class Entry:
    """One kind of base.

    Parameters
    ----------
    name : str
        What users write.
    help : str
        One line on what it is.
    make : callable
        Returns a fresh ``Base``, given the training and the size of the ensemble of a network.
    kind : {"linear", "regressor", "network"}
        A linear mean, a scikit-learn regressor, or a network.
    features : bool
        Whether it looks at features.
    columns : int
        Columns that it makes of one feature.
    trusted : tuple of str
        Types in its model file that skops does not trust unasked.
    """

    name: str
    help: str
    make: Callable[[str, int], Base]
    kind: Literal["linear", "regressor", "network"]
    features: bool = True
    columns: int = 1
    trusted: tuple[str, ...] = ()

    @property
    def network(self) -> bool:
        """Whether it is a network, which needs torch."""
        return self.kind == "network"


def _linear(name: str, training: str, ensemble: int) -> Base:
    from residua.bases.linear import LinearBase

    return LinearBase(name)


def _regressor(estimator: Any, training: str, ensemble: int) -> Base:
    from residua.bases.scikit import ScikitBase

    return ScikitBase(estimator)


def _trees(training: str, ensemble: int) -> Base:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return _regressor(HistGradientBoostingRegressor(), training, ensemble)


def _network(base: Any, training: str, ensemble: int) -> Base:
    from residua.bases.networks.settings import Network

    try:
        from residua.bases.networks.base import NetworkBase
    except ImportError as error:
        raise ImportError(
            f'base={base!r} needs PyTorch ({error}); pip install "residua[gnn]", or use base="linear", which does not.'
        ) from None
    return NetworkBase(base if isinstance(base, Network) else Network(base), training, ensemble)


_TABLE = (
    Entry("zero", "nothing", partial(_linear, "zero"), "linear", features=False),
    Entry("mean", "one level", partial(_linear, "mean"), "linear", features=False),
    Entry("linear", "a linear mean", partial(_linear, "linear"), "linear"),
    Entry(
        "trees",
        "boosted trees",
        _trees,
        "regressor",
        trusted=("sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",),
    ),
    *(
        Entry(name, text, partial(_network, name), "network", columns=columns)
        for name, text, columns in (
            ("mlp", "layers on a node's own features", 1),
            ("hops", "the same on features averaged over neighbours", 3),
            ("gcn", "graph convolutions", 1),
            ("sage", "GraphSAGE, mean of neighbours", 1),
            ("sage-gcn", "GraphSAGE, mean with the node itself", 1),
            ("sage-max", "GraphSAGE, maximum of neighbours", 1),
            ("sage-pool", "GraphSAGE, pooled maximum", 1),
        )
    ),
)
BASES = {entry.name: entry for entry in _TABLE}
NETWORKS = tuple(name for name, entry in BASES.items() if entry.network)
COMPARED = ("linear", "trees", "mlp", "sage")  # by ``compare``, unless others are asked for


def find_base(base: Any) -> Entry:
    """Return the entry of a base.

    Parameters
    ----------
    base : str, regressor, torch module or Network
        A name of the table, or the base itself.
    """
    if isinstance(base, str) and base in BASES:
        return BASES[base]
    if not isinstance(base, str | type):
        from residua.bases.networks.settings import Network

        name = type(base).__name__
        if isinstance(base, Network):
            columns = BASES[base.kind].columns if base.kind in NETWORKS else 1
            return Entry(name, "a network with settings", partial(_network, base), "network", columns=columns)
        if hasattr(base, "state_dict"):
            return Entry(name, "a torch module", partial(_network, base), "network")
        if all(hasattr(base, method) for method in ("fit", "predict", "get_params")):
            return Entry(name, "a scikit-learn regressor", partial(_regressor, base), "regressor")
    raise ValueError(f"base={base!r} is unknown; use {listed()}, a scikit-learn regressor or a torch module.")


def make_base(base: Any, training: str = "joint", ensemble: int = 1) -> Base:
    """Return a fresh base.

    Parameters
    ----------
    base : str, regressor, torch module or Network
        A name of the table, or what to make a base of.
    training : {"joint", "post-hoc", "paper"}
        How a network is trained.
    ensemble : int
        Members of a network's ensemble.
    """
    return find_base(base).make(training, ensemble)


def listed(names: tuple[str, ...] = tuple(BASES)) -> str:
    """Return names in quotes, with commas."""
    return ", ".join(f'"{name}"' for name in names)


def networks_installed() -> bool:
    """Return whether torch and torch_geometric, of the extra residua[gnn], are there."""
    return find_spec("torch") is not None and find_spec("torch_geometric") is not None
