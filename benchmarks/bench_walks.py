"""The random-walk kernel on dense graphs: without naming sequences, with, and GraKeL's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import treelens as tl
from benchmarks.bench_kernels import as_grakel
from benchmarks.measure import THREADS, Row, best_times, once
from treelens.graphs.build import build_collection
from treelens.kernels.gram import pair_sums
from treelens.patterns.paths import WalkVocabulary

DECAY = 0.1


def rows() -> Iterator[Row]:
    yield against_sequences(
        "40 graphs of 200 nodes, a tenth of all pairs joined, 4 labels",
        dense(40, (200, 200), 0.1, 4),
        8,
    )
    yield from against_grakel()


def dense(
    n_graphs: int, sizes: tuple[int, int], density: float, n_labels: int
) -> tl.GraphCollection:
    """Random graphs in which every pair of nodes is joined with the same probability."""
    rng = np.random.default_rng(0)
    n_nodes = rng.integers(sizes[0], sizes[1] + 1, n_graphs)
    edges = [
        np.argwhere(np.triu(rng.random((n, n)) < density, 1)) + base
        for n, base in zip(n_nodes, np.cumsum(n_nodes) - n_nodes, strict=True)
    ]
    labels = rng.integers(0, n_labels, n_nodes.sum()).tolist()
    return build_collection(n_nodes, np.concatenate(edges), labels, None)


def kernel_of(graphs: tl.GraphCollection, max_length: int) -> np.ndarray:
    return tl.RandomWalk(max_length, decay=DECAY, edge_labels=False, n_jobs=THREADS).fit_transform(
        graphs
    )


def by_sequences(graphs: tl.GraphCollection, max_length: int) -> np.ndarray:
    """Name and count every label sequence, and multiply the counts."""
    counts = WalkVocabulary.fit(graphs, max_length, DECAY)[1]
    return pair_sums(counts.pair_features(), n_jobs=THREADS)


def against_sequences(words: str, graphs: tl.GraphCollection, max_length: int) -> Row:
    claim = f"Random walks of up to {max_length} steps, {words}, against naming every sequence"
    by_sequences(graphs[:4], 2)  # compile
    theirs = once(lambda: by_sequences(graphs, max_length))
    ours = best_times(lambda: kernel_of(graphs, max_length), repeats=3)[0]
    measured = f"{theirs / ours:,.0f} × ({ours:.3f} s against {theirs:.1f} s)"
    return Row(claim, measured, ">= 20 × faster", theirs / ours >= 20)


def against_grakel() -> Iterator[Row]:
    """Its walks of bounded length need the whole product matrix; its full series does not."""
    import grakel

    graphs = dense(12, (15, 20), 0.5, 4)
    tuples = as_grakel(graphs)
    ours = best_times(lambda: kernel_of(graphs, 4))[0]
    words = "dense graphs (12 of 15 to 20 nodes, half of all pairs joined, 4 labels)"
    for name, settings in (
        ("RandomWalkLabeled(p=4, method_type='baseline')", {"p": 4, "method_type": "baseline"}),
        ("RandomWalkLabeled() of all lengths", {}),
    ):
        rival = grakel.RandomWalkLabeled(lamda=1e-3, **settings)
        theirs = once(lambda rival=rival: rival.fit_transform(tuples))
        measured = f"{theirs / ours:,.0f} × ({ours:.4f} s against {theirs:.1f} s)"
        yield Row(
            f"Random walks of up to 4 steps, {words}, against GraKeL {name}",
            measured,
            ">= 20 × faster",
            theirs / ours >= 20,
        )
