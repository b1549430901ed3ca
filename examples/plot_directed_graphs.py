"""
Directed graphs
===============

Programs as graphs: nodes are steps, and data flow along the edges. In a safe program the input is
checked on its way to where it is written (input -> check -> write), in an unsafe one the check only
sees what has been written (input -> check <- write). Without directions the two are the same.
"""

import warnings

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.model_selection import StratifiedKFold

import treelens as tl

rng = np.random.default_rng(0)


def program(kind):
    """Input, check and write; a check before and one after another write; and random steps."""
    graph = nx.DiGraph([(0, 1), (1, 2) if kind == "safe" else (2, 1), (3, 4), (5, 6)])
    labels = ["input", "check", "write", "check", "write", "write", "check"]
    labels += rng.choice(["parse", "sort", "cache", "log", "merge"], rng.integers(8, 15)).tolist()
    for node in range(7, len(labels)):
        others = {7: [0, 3], 8: [1, 5]}.get(node, [node - rng.integers(1, 9)])
        graph.add_edges_from((node, n) if rng.random() < 0.5 else (n, node) for n in others)
    nx.set_node_attributes(graph, dict(enumerate(labels)), "label")
    return graph


y = np.array(["safe", "unsafe"] * 100)
digraphs = [program(kind) for kind in y]

# %%
# Directed NetworkX and igraph graphs, and TU data sets whose edge list is not symmetric, are read
# as directed without being told; directed=False leaves the directions out.
readings = {
    "with directions": tl.as_graph_collection(digraphs),
    "without": tl.as_graph_collection(digraphs, directed=False),
}
print(readings["with directions"])
warnings.filterwarnings("ignore", message=".*training graphs are copies")
folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(y, y))
for name, read in readings.items():
    scores = [
        tl.GraphClassifier(depth=2).fit(read[train], y[train]).score(read[test], y[test])
        for train, test in folds
    ]
    print(f"Accuracy {name}: {np.mean(scores):.1%}")

# %%
# What the model found: the patterns that speak most for one class or the other in the test graph
# that it is most certain of.
train, test = folds[0]
read = readings["with directions"]
model = tl.GraphClassifier(depth=2).fit(read[train], y[train])
decisions = model.decision_function(read[test])
certain = {"safe": test[np.argmin(decisions)], "unsafe": test[np.argmax(decisions)]}
print(model.explain(read[[certain["unsafe"]]]))

# %%
# The surest safe and the surest unsafe program, coloured by the contributions of their nodes: red
# for "unsafe", blue for "safe".
figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
for kind, place in zip(("safe", "unsafe"), axes, strict=True):
    graph = digraphs[certain[kind]]
    contributions = model.explain(read[[certain[kind]]]).node_contributions
    limit = np.abs(contributions).max()
    nx.draw(
        graph,
        nx.kamada_kawai_layout(graph.to_undirected()),
        ax=place,
        node_size=500,
        labels=nx.get_node_attributes(graph, "label"),
        font_size=7,
        node_color=contributions,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        edgecolors="grey",
        edge_color="grey",
    )
    place.set_title(f"{kind}, in truth {y[certain[kind]]}")
plt.show()
