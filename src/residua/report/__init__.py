"""Pictures and pages for people."""

from residua.report.plots import draw_nodes, strip
from residua.report.positions import layout

__all__ = ["draw_nodes", "layout", "strip"]
