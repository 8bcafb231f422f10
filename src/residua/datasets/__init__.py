"""Graphs with features and labels, each a function from files to `Dataset`."""

from residua.datasets.base import Dataset
from residua.datasets.catalogue import Entry, available, fetch
from residua.datasets.contacts import load_contacts
from residua.datasets.contacts_simulation import simulate_contacts
from residua.datasets.county import load_county
from residua.datasets.elect80 import load_elect80
from residua.datasets.ising import simulate_ising
from residua.datasets.transport import load_transport
from residua.datasets.twitch import load_twitch

__all__ = [
    "Dataset",
    "Entry",
    "available",
    "fetch",
    "load_contacts",
    "load_county",
    "load_elect80",
    "load_transport",
    "load_twitch",
    "simulate_contacts",
    "simulate_ising",
]
