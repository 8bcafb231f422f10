"""Graphs with features and labels, each a function from files to `Dataset`."""

from importlib import import_module
from typing import Any

from residua.datasets.base import Dataset
from residua.datasets.elect80 import load_elect80
from residua.datasets.maps import load_baltimore, load_columbus, load_sids

# The data sets of the paper live with its reproduction, which nothing else needs; found on first use.
_PAPER = {
    "Entry": "catalogue",
    "available": "catalogue",
    "fetch": "catalogue",
    "load_contacts": "contacts",
    "load_county": "county",
    "load_transport": "transport",
    "load_twitch": "twitch",
    "simulate_contacts": "contacts_simulation",
    "simulate_ising": "ising",
}

__all__ = ["Dataset", "load_baltimore", "load_columbus", "load_elect80", "load_sids", *_PAPER]


def __getattr__(name: str) -> Any:
    if name in _PAPER:
        return getattr(import_module(f"residua.reproduction.datasets.{_PAPER[name]}"), name)
    raise AttributeError(f"module 'residua.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
