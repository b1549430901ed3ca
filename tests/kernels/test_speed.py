"""Speed that must not be lost: ratios of processor time against other work in the same run."""

import time

import numpy as np

import treelens as tl
from treelens.patterns.forest import PatternForest


def least_time(work, repeats=7):
    """The least processor time of several runs: other programs can only add to it."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def test_wasserstein_distances_against_a_sparse_product_of_the_same_counts():
    """0.63 times the product with this code; 1.0 when graphs were refined twice."""
    graphs = tl.make_synthetic(n_per_substructure=250, random_state=0)[0]
    kernel = tl.WassersteinWL(depth=5, n_jobs=1)
    forest, colors = PatternForest.fit(graphs, 5, ("labels",))
    counts = forest.count(colors).to_sparse()
    room = np.empty((len(graphs), len(graphs)))
    kernel.distance(graphs, out=room)  # compile
    ours = least_time(lambda: kernel.distance(graphs, out=room))
    assert ours < 1.5 * 0.63 * least_time(lambda: counts @ counts.T)
