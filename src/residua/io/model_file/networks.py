"""Networks in a model file: settings in the JSON part, weights among the arrays, and never the code of a module.

A network of a known kind is built anew and takes its weights; a module of one's own has to be handed back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from residua.bases.networks.base import NetworkBase
from residua.bases.networks.settings import Network
from residua.graph import Graph
from residua.io.model_file.container import ModelFileError, damaged
from residua.io.model_file.values import Arrays, Table, plain_or_none
from residua.validation import check_choice, one_line

TRAINING = ("joint", "post-hoc", "paper")
MODULE = "module"  # stands for a torch module of one's own


def pack_network(base: NetworkBase, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the settings and scales of a fitted base; its weights go to ``arrays``."""
    arrays["base.x_centre"], arrays["base.x_spread"] = base.x_centre, base.x_spread
    try:
        states = base.states()
    except (TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(
            f"base {base.name} cannot be kept in a model file ({one_line(error)}); its state must be tensors on the "
            "CPU, of types that numpy knows."
        ) from error
    arrays |= {_weights(name, k): value for k, state in enumerate(states) for name, value in state.items()}
    return {
        "kind": "network",
        "settings": pack_settings(base.settings),
        "members": len(base.members),
        **{name: getattr(base, name) for name in ("training", "y_centre", "y_spread")},
    }


def _weights(name: str, member: int) -> str:
    """Return the name of an array; the member comes last, for ".T" at the end would stand for a transposed one."""
    return f"base.weights.{name}.{member}"


def unpack_network(table: Table, graph: Graph, X: np.ndarray, arrays: Arrays, module: Any) -> NetworkBase:
    """Return the fitted base, its weights checked by name, type and shape before they are used."""
    members, training = table.need("members", int), table.need("training", str)
    check_choice(training, TRAINING, "training")
    base = NetworkBase(unpack_settings(table.need("settings", Table), module), training, members)
    base.edge_types = graph.edge_types
    inputs = base.width(graph, X.shape[1])
    base.x_centre, base.x_spread = (arrays.take(f"base.x_{name}", (inputs,)) for name in ("centre", "spread"))
    base.y_centre, base.y_spread = (table.number(f"y_{name}") for name in ("centre", "spread"))
    scale = np.append(base.x_spread, base.y_spread)
    if members < 1 or not (np.isfinite(base.y_centre) and np.isfinite(scale).all() and (scale > 0).all()):
        raise damaged("base has no members, or a scale that is not positive")
    layout, own = base.layout(inputs), not isinstance(base.settings.kind, str)
    if own:
        _check_names(layout.keys(), arrays, members, base.name)

    def state(k: int) -> dict[str, np.ndarray]:
        return {name: arrays.take(_weights(name, k), *like, finite=not own) for name, like in layout.items()}

    base.restore([state(k) for k in range(members)])
    return base


def _check_names(names: Any, arrays: Arrays, members: int, given: str) -> None:
    """Refuse a module with other weights: a mistake of the caller, not of the file."""
    expected = {_weights(name, k) for name in names for k in range(members)}
    found = {name for name in arrays.left if name.startswith("base.weights.")}
    if expected != found:
        other = sorted(name.removeprefix("base.weights.").rpartition(".")[0] for name in expected ^ found)
        raise ModelFileError(
            f"does not fit module {given}: weights {one_line(other)} are only in one; give one like that of the fit."
        )


def pack_settings(settings: Network) -> dict[str, Any]:
    """Return a ``Network`` by its parameters."""
    packed = settings.get_params(deep=False)
    packed["kind"] = packed["kind"] if isinstance(packed["kind"], str) else MODULE
    packed["widths"] = None if packed["widths"] is None else tuple(packed["widths"])
    return {name: plain_or_none(value, f"network {name}") for name, value in packed.items()}


def unpack_settings(table: Table, module: Any) -> Network:
    fields = dict(table)
    if fields.get("kind") == MODULE:
        fields["kind"] = need_module(module)
    if type(fields.get("widths")) is list:
        fields["widths"] = tuple(fields["widths"])
    if fields.keys() != Network().get_params().keys():
        raise damaged(f"network has settings {one_line(sorted(fields))}")
    settings = Network(**fields)
    settings.check()
    return settings


def pack_parameter(value: Any) -> dict[str, Any]:
    """Return the constructor's ``base``, a ``Network`` or a module."""
    return {"network": pack_settings(value)} if isinstance(value, Network) else {MODULE: type(value).__name__}


def unpack_parameter(table: Table, module: Any) -> Any:
    return need_module(module) if MODULE in table else unpack_settings(table.need("network", Table), module)


def need_module(module: Any) -> Any:
    if module is None:
        raise ModelFileError(
            "holds the weights of a torch module but not the module, which is code; "
            "build it as for the fit and give it: residua.load(path, module=...)."
        )
    if not hasattr(module, "load_state_dict") or isinstance(module, type):
        raise ModelFileError(f"needs module= to be a torch module, not {one_line(repr(module), 60)}.")
    return module
