"""
Kernels in a pipeline of your own
=================================

The kernels are scikit-learn transformers: graphs in, rows of kernel values out. They work in
pipelines, grid searches and cross-validation.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import treelens as tl

graphs, y = tl.make_synthetic(n_per_substructure=10, noise_nodes=(8, 12), random_state=0)

kernels = {
    "shortest path": tl.ShortestPath(normalize="cosine"),
    "random walk": tl.RandomWalk(max_length=3, normalize="cosine"),
    "WL subtree": tl.WLSubtree(depth=2, normalize="cosine"),
    "WL-OA": tl.WLOptimalAssignment(depth=2, normalize="tanimoto"),
    "WWL": tl.WassersteinWL(depth=2, gamma=1.0),
    "learned WWL": tl.WassersteinWL(depth=2, gamma=1.0, weights=tl.PairwiseWeights(radius=3.0)),
}
scores = {}
for name, kernel in kernels.items():
    pipeline = make_pipeline(kernel, SVC(kernel="precomputed", C=10.0))
    scores[name] = cross_val_score(pipeline, graphs, y, cv=5)
    print(f"{name:14} {scores[name].mean():.3f} ± {scores[name].std():.3f}")

# %%
# Parameters of the kernel, of the learner inside it and of the machine, in one grid.
search = GridSearchCV(
    make_pipeline(tl.WassersteinWL(weights=tl.PairwiseWeights()), SVC(kernel="precomputed")),
    {
        "wassersteinwl__depth": [1, 2],
        "wassersteinwl__weights__radius": [0.0, 3.0],
        "svc__C": [1.0, 10.0],
    },
    cv=3,
).fit(graphs, y)
print(search.best_params_, f"{search.best_score_:.3f}")

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.boxplot(list(scores.values()), orientation="horizontal")
axes.set_yticks(range(1, len(scores) + 1), list(scores))
axes.set(xlabel="accuracy on held-out folds", title="Six kernels on the same graphs")
plt.show()
