"""A graph of your own: an edge table, a networkx graph and a scipy matrix give the same answer."""

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp

import residua

# Five stations on a line and one that no track reaches; the numbers are minutes of delay.
tracks = pd.DataFrame({"from": ["Aa", "Bo", "Ce", "Da"], "to": ["Bo", "Ce", "Da", "El"], "trains": [9, 4, 4, 7]})
stations = ["Aa", "Bo", "Ce", "Da", "El", "Fy"]
delay = pd.Series([2.0, 3.0, np.nan, 8.0, 9.0, np.nan], index=stations)

table = residua.Graph.from_pandas(tracks, "from", "to", weight="trains", nodes=stations)

net = nx.Graph()
net.add_nodes_from(stations)
net.add_weighted_edges_from(tracks.itertuples(index=False))
network = residua.Graph.from_networkx(net)

row, column = table.index(tracks["from"]), table.index(tracks["to"])
upper = sp.coo_array((tracks["trains"], (row, column)), shape=(6, 6))
matrix = residua.Graph.from_scipy(upper + upper.T, nodes=stations)

print(table.describe(labelled=delay.notna()))
print()
for name, graph in {"pandas": table, "networkx": network, "scipy": matrix}.items():
    model = residua.GraphRegressor(base="mean", correlation="learned").fit(None, delay, graph=graph)
    mean, std = model.predict(return_std=True)
    filled = [f"{graph.nodes[i]} {mean[i]:.2f} +- {std[i]:.2f}" for i in np.flatnonzero(delay.isna())]
    print(f"{name:<10}{', '.join(filled)}")
