"""
Your own graphs, from NetworkX
==============================

Two kinds of random graphs with the same numbers of nodes and edges: neighbours on a ring that were
rewired a little, and random graphs. They have no labels, so nodes are labelled with their degree.
"""

import warnings

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import treelens as tl
from treelens.errors import DegreeLabelsWarning

rng = np.random.default_rng(0)
sizes = rng.integers(15, 25, size=60)
ordered = [nx.watts_strogatz_graph(int(n), 4, 0.1, seed=i) for i, n in enumerate(sizes)]
random = [nx.gnm_random_graph(int(n), 2 * int(n), seed=i) for i, n in enumerate(sizes)]
graphs, y = ordered + random, np.repeat(["ordered", "random"], len(sizes))

# %%
# Without labels treelens takes degrees and warns. To choose labels yourself, set the attribute
# "label" of the nodes (and of the edges), or name another with as_graph_collection(node_label=...).
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DegreeLabelsWarning)
    collection = tl.as_graph_collection(graphs)
print(collection)

train, test = np.arange(0, 120, 2), np.arange(1, 120, 2)
model = tl.GraphClassifier(depth=2).fit(collection[train], y[train])
print(f"Accuracy: {model.score(collection[test], y[test]):.0%}")

# %%
# The share of a graph's patterns that are not in the training graphs.
print(f"Unknown share, mean: {model.out_of_vocabulary(collection[test]).mean():.0%}")

# %%
# One graph of each kind, coloured by the contributions of its nodes: red for "random", blue for
# "ordered".
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for position, place in zip((test[0], test[-1]), axes, strict=True):
    explanation = model.explain(collection[[position]])
    limit = np.abs(explanation.node_contributions).max()
    nx.draw(
        graphs[position],
        nx.kamada_kawai_layout(graphs[position]),
        ax=place,
        node_size=120,
        node_color=explanation.node_contributions,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        edgecolors="grey",
        edge_color="lightgrey",
    )
    place.set_title(f"{y[position]}, predicted {explanation.predicted_class}")
plt.show()
