"""Graphs: nodes, typed weighted edges, and the normalised adjacency of each edge type."""

from residua.graph.graph import Graph

__all__ = ["Graph"]
