"""Tables in and out: a node table and an edge table, CSV or Parquet, as a graph, features and labels.

    nodes: id, features, target (empty where unknown)        edges: source, target [, weight] [, type]

Cells are taken as they are written; what does not fit is refused with its file, line, column and the remedy.
"""
