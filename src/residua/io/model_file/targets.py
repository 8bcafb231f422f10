"""A model of several targets in a model file: the model of each in a folder of its own, and their names.

targets.json + 0/model.json + 0/arrays.safetensors [+ 0/base.skops] + 1/model.json + ..
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from sklearn.base import clone

from residua import __version__
from residua.estimator import GraphRegressor
from residua.features import same_features
from residua.graph.graph import same_graph
from residua.io.model_file.average import Members, pack_folders, unpack_folders
from residua.io.model_file.container import damaged
from residua.io.model_file.values import Table, pack_table, plain, restore

TARGETS = "targets.json"
FORMAT = 1


def pack_targets(
    targets: Mapping[Hashable, GraphRegressor], pack: Callable[[GraphRegressor], Members]
) -> dict[str, bytes]:
    """Return the members of the file, those of each model by ``pack``."""
    names = [plain(name, "name of a target") for name in targets]
    table = {"format": FORMAT, "residua": __version__, "targets": names}
    return {TARGETS: pack_table(table)} | pack_folders(targets.values(), pack)


def unpack_targets(members: Members, unpack: Callable[[Members], GraphRegressor]) -> GraphRegressor:
    """Return the model that these members hold, each of its targets by ``unpack``; they share graph and features."""
    listed = Table.read(members[TARGETS], FORMAT).need("targets", list)
    names = list(restore(listed, len(listed), "names of targets"))
    if len(names) < 2 or len(set(names)) < len(names):
        raise damaged("its targets are not several, each with a name of its own")
    models = [unpack(folder) for folder in unpack_folders(members, TARGETS, len(names))]
    first = models[0].field_
    for model in models:
        field = model.field_
        if not same_graph(field.graph, first.graph) or not same_features(field.X, first.X):
            raise damaged("its targets are of different graphs or features")
        model.field_ = replace(field, graph=first.graph, X=first.X)
    whole = clone(models[0])
    whole.targets_ = dict(zip(names, models, strict=True))
    return whole
