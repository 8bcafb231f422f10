"""Pictures and pages for people."""

from residua.views.figures import draw_nodes, strip
from residua.views.positions import layout

__all__ = ["draw_nodes", "layout", "strip"]
