"""Pictures and pages for people."""

from residua.report.plots import draw_nodes, layout, strip

__all__ = ["draw_nodes", "layout", "strip"]
