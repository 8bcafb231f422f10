"""Graphs with features and labels, each a function from files to `Dataset`."""

from residua.datasets.base import Dataset
from residua.datasets.elect80 import load_elect80

__all__ = ["Dataset", "load_elect80"]
