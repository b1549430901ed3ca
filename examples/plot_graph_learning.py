"""
Labelled graphs with attributes: kernels, a process, and what was learned
=========================================================================

For who works with graph kernels: NetworkX graphs with a label and a number at each node, the known
kernels in scikit-learn's pipelines, a Gaussian process that learns weights of patterns, and the
patterns that it found. All of them are cross-validated on the same folds.

The graphs are teams. Everybody has a role and a number of years in the team, and a team is
"lasting" where many students work with a professor and where people who have stayed long sit
together. Kernels on roles alone can see the first half of it only.
"""

import warnings

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import treelens as tl
from treelens.errors import IgnoredDataWarning

ROLES = ["professor", "student", "technician"]
rng = np.random.default_rng(0)


def team(seed):
    """A tree with a role and years at each node."""
    graph = nx.random_labeled_tree(int(rng.integers(10, 18)), seed=seed)
    for node in graph:
        graph.add_node(node, label=str(rng.choice(ROLES)), years=rng.exponential(4.0))
    return graph


def counts(graph):
    """Links between a professor and a student, and links of people who both stayed long."""
    roles, years = dict(graph.nodes("label")), dict(graph.nodes("years"))
    supervised = sum({roles[u], roles[v]} == {"professor", "student"} for u, v in graph.edges)
    settled = sum(min(years[u], years[v]) > 3.0 for u, v in graph.edges)
    return supervised, settled


teams = [team(seed) for seed in range(160)]
both = np.array([counts(graph) for graph in teams], dtype=float)
strength = ((both - both.mean(axis=0)) / both.std(axis=0)) @ [1.0, 0.7]
y = np.where(strength > np.median(strength), "lasting", "short")

# %%
# ``as_graph_collection`` reads NetworkX, igraph, PyTorch Geometric and GraKeL graphs alike. The
# attributes to use are named.
graphs = tl.as_graph_collection(teams, node_attributes=["years"])
with warnings.catch_warnings():
    warnings.simplefilter("ignore", IgnoredDataWarning)  # of the years
    roles = tl.as_graph_collection(teams)
print(graphs)

# %%
# Known kernels are transformers: ``fit_transform`` returns the matrix of the training graphs, and
# ``transform`` that of new ones against them, as in GraKeL. In a pipeline with a support vector
# machine, depth and cost are chosen by an inner grid search within each fold.
folds = StratifiedKFold(4, shuffle=True, random_state=0)
kernels = {
    "shortest path, roles": (tl.ShortestPath(normalize="cosine"), roles),
    "WL subtree, roles": (tl.WLSubtree(normalize="cosine"), roles),
    "WL-OA, roles": (tl.WLOptimalAssignment(normalize="tanimoto"), roles),
    "WL-OA, roles and years": (tl.WLOptimalAssignment(normalize="tanimoto"), graphs),
}
scores = {}
for name, (kernel, given) in kernels.items():
    pipeline = make_pipeline(kernel, SVC(kernel="precomputed"))
    grid = {"svc__C": [1.0, 10.0, 100.0]}
    if "depth" in kernel.get_params():
        grid[f"{type(kernel).__name__.lower()}__depth"] = [1, 2, 3]
    search = GridSearchCV(pipeline, grid, cv=3)
    scores[name] = cross_val_score(search, given, y, cv=folds)

# %%
# A Gaussian process chooses its depth and learns its weights by the marginal likelihood, so there
# is no inner grid. Attributes have a view of their own, whose share is learned, too.
for name, given in {"process, roles": roles, "process, roles and years": graphs}.items():
    scores[name] = cross_val_score(tl.GraphClassifier(), given, y, cv=folds)
for name, found in scores.items():
    print(f"{name:24} {found.mean():.2f} ± {found.std():.2f}")

figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
colors = ["#8fb3d9" if name in kernels else "#c8651b" for name in scores]
means, errors = zip(*((found.mean(), found.std()) for found in scores.values()), strict=True)
axes.barh(list(scores), means, xerr=errors, color=colors)
axes.axvline(0.5, color="grey", linewidth=0.8)
axes.invert_yaxis()
axes.set(xlabel="accuracy in four folds", xlim=(0.0, 1.0))
plt.show()

# %%
# What was learned. How much each view explains:
model = tl.GraphClassifier().fit(graphs, y)
print(model.shares_.round(2).to_string())

# %%
# Fragments, with the effect of one occurrence on the decision ("short" is positive):
print(model.fragments_[["name", "effect", "error", "support"]].head(5).round(2).to_string())

# %%
# Which attribute carries a prediction, and where in the graph. Blue nodes speak for "lasting".
margins = model.decision_function(graphs)
shown = [int(margins.argmin()), int(margins.argmax())]
explanations = [model.explain(graphs[position]) for position in shown]
limit = 1.5 * max(np.abs(each.node_contributions).max() for each in explanations)
figure, places = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
for position, explanation, place in zip(shown, explanations, places, strict=True):
    parts = explanation.attribute_contributions.groupby("attribute")["contribution"].sum()
    print(f"team {position}: " + ", ".join(f"{k} {v:+.2f}" for k, v in parts.items()))
    graph = teams[position]
    nx.draw(
        graph,
        nx.kamada_kawai_layout(graph),
        ax=place,
        labels={node: f"{of['label'][:4]}\n{of['years']:.0f}" for node, of in graph.nodes.items()},
        font_size=7,
        node_size=420,
        node_color=explanation.node_contributions,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        edgecolors="grey",
        edge_color="lightgrey",
    )
    place.set_title(f"{y[position]}, predicted {explanation.predicted_class}")
plt.show()
