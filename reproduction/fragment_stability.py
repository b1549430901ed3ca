"""Would the first ten fragments be the same with other molecules? Bootstrap refits tell."""

from __future__ import annotations

from typing import Any

import numpy as np

import treelens as tl
from treelens.explain.fragment_search import ExplainedGraphs
from treelens.explain.fragments import find_fragments
from treelens.graphs.collection import GraphCollection

N_REFITS = 10
N_TOP = 10
SAME = 0.5  # shared part of all the nodes that two fragments cover


def stability(
    graphs: GraphCollection, y: np.ndarray, n_jobs: int, device: str = "cpu"
) -> dict[str, Any]:
    """How many of the first ten fragments return in each refit, and their mean share.

    A refit draws graphs with replacement: those drawn are its training set, each once, with the
    number of times it was drawn as its weight (copies would explain each other).
    """
    whole = top_fragments(_fit(graphs, y, None, n_jobs, device), graphs, graphs, n_jobs)
    rng, overlaps = np.random.default_rng(0), []
    for _ in range(N_REFITS):
        drawn, times = np.unique(rng.integers(len(y), size=len(y)), return_counts=True)
        refit = _fit(graphs[drawn], y[drawn], times.astype(float), n_jobs, device)
        again = top_fragments(refit, graphs[drawn], graphs, n_jobs)
        overlaps.append(sum(any(same(a, b) for b in again) for a in whole) / len(whole))
    return {"n": len(y), "overlaps": overlaps, "mean_overlap": float(np.mean(overlaps))}


def _fit(
    graphs: GraphCollection, y: np.ndarray, weights: np.ndarray | None, n_jobs: int, device: str
) -> tl.GraphClassifier:
    return tl.GraphClassifier(device=device, n_jobs=n_jobs, random_state=0).fit(graphs, y, weights)


def top_fragments(
    model: tl.GraphClassifier, own: GraphCollection, reference: GraphCollection, n_jobs: int
) -> list[np.ndarray]:
    """The nodes of a reference collection that each of the first fragments covers, signed.

    Nodes count from 1 and are negative where the effect is.
    """
    found = find_fragments(model._expansion, own, n_fragments=N_TOP, n_jobs=n_jobs)
    colors = model.model_.look_at(reference, n_jobs).colors
    nothing = np.zeros(reference.n_nodes)
    elsewhere = ExplainedGraphs(model._expansion.forest, reference, colors, nothing)
    covered = []
    for fragment in found.fragments:
        roots = np.concatenate([elsewhere.carriers(p) for p in fragment.patterns])
        nodes = np.unique(elsewhere.balls(roots, fragment.depth).indices)
        covered.append(np.sign(fragment.effect.mean) * (nodes + 1))
    return covered


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two fragments cover mostly the same nodes, with effects of the same sign."""
    common = len(np.intersect1d(one, other))
    return common > SAME * (len(one) + len(other) - common)
