"""Which bases there are: one table that Python, the command line, comparisons, Dask and the memory estimate read.

Nothing heavy is imported until a base is made, so that ``residua --help`` can read the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from residua.extras import needs

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
    kind : {"linear", "trees", "regressor", "network"}
        A linear mean, boosted trees, a scikit-learn regressor, or a network, which needs torch.
    features : bool
        Whether it looks at features.
    columns : int
        Columns that it makes of one feature, at most.
    tables : bool
        Whether it takes a table as it is, with missing values and text.
    trusted : tuple of str
        Types in its model file that skops does not trust unasked.
    """

    name: str
    help: str
    kind: Literal["linear", "trees", "regressor", "network"]
    features: bool = True
    columns: int = 1
    tables: bool = False
    trusted: tuple[str, ...] = ()


BENDS, MOST_BENDS = 6, 240  # of a spline: for each feature, and for all features together
_TREES = (
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",  # in files of version 0.1
    "sklearn.tree._tree.Tree",  # in averages by ``residua.best``
)
_TABLE = (
    Entry("zero", "nothing", "linear", features=False),
    Entry("mean", "one level for all nodes", "linear", features=False),
    Entry("linear", "a linear mean of the features", "linear"),
    Entry("splines", "a smooth curve of each feature", "linear", columns=1 + BENDS),
    Entry("trees", "boosted trees, grown through the likelihood", "trees", tables=True, trusted=_TREES),
    Entry("mlp", "layers on a node's own features", "network"),
    Entry("hops", "layers on features averaged over 0, 1 and 2 hops", "network", columns=3),
    Entry("gcn", "graph convolutions", "network"),
    Entry("sage", "GraphSAGE, mean of neighbours", "network"),
    Entry("sage-gcn", "GraphSAGE, mean of neighbours and the node itself", "network"),
    Entry("sage-max", "GraphSAGE, maximum of neighbours", "network"),
    Entry("sage-pool", "GraphSAGE, maximum of a layer's output at neighbours", "network"),
)
BASES = {entry.name: entry for entry in _TABLE}
LINEAR = tuple(name for name, entry in BASES.items() if entry.kind == "linear")
NETWORKS = tuple(name for name, entry in BASES.items() if entry.kind == "network")
COMPARED = ("linear", "splines", "trees", "mlp", "hops", "sage")  # by ``compare``, unless others are asked for


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
            return Entry(name, "a network with settings", "network", columns=columns)
        if hasattr(base, "state_dict"):
            return Entry(name, "a torch module", "network")
        # Of a stack of regressors only the class has predict before it is fitted.
        if all(hasattr(base, method) or hasattr(type(base), method) for method in ("fit", "predict", "get_params")):
            return Entry(name, "a scikit-learn regressor", "regressor", tables=True)
    raise ValueError(f"base={base!r} is unknown; use {listed()}, a scikit-learn regressor or a torch module.")


def make_base(base: Any, training: str = "joint", ensemble: int = 1, device: Any = "cpu") -> Base:
    """Return a fresh base.

    Parameters
    ----------
    base : str, regressor, torch module or Network
        A name of the table, or what to make a base of.
    training : {"joint", "post-hoc", "paper"}
        How a network is trained.
    ensemble : int
        Members of a network's ensemble.
    device : str or torch.device
        Where a network is trained.
    """
    kind = find_base(base).kind
    if kind == "linear":
        from residua.bases.linear import LinearBase
        from residua.bases.splines import SplineBase

        return SplineBase() if base == "splines" else LinearBase(base)
    if kind == "trees":
        from residua.bases.trees.base import TreesBase

        return TreesBase(joint=training != "post-hoc")
    if kind == "regressor":
        from residua.bases.scikit import ScikitBase

        return ScikitBase(base, joint=training != "post-hoc")
    try:
        from residua.bases.networks.base import NetworkBase
        from residua.bases.networks.settings import Network
    except ImportError as error:
        linear = 'use base="linear", which does not'
        raise ImportError(needs(f"base={base!r}", "PyTorch", "gnn", error, linear)) from None
    return NetworkBase(base if isinstance(base, Network) else Network(base), training, ensemble, device)


def listed(names: tuple[str, ...] = tuple(BASES)) -> str:
    """Return names in quotes, with commas."""
    return ", ".join(f'"{name}"' for name in names)


def networks_installed() -> bool:
    """Return whether torch and torch_geometric, of the extra gnn, are there."""
    return find_spec("torch") is not None and find_spec("torch_geometric") is not None
