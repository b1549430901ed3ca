"""Fragments of a fitted model on graphs of one's own, and how far they depend on its sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.explain.explained import explained_by
from treelens.explain.fragment_seen import ExplainedGraphs, mean_over_graphs
from treelens.explain.fragments import N_FRAGMENTS, find_fragments, fragment_table
from treelens.graphs.collection import GraphCollection


def fragments_of_model(
    model: Any,
    graphs: GraphCollection,
    y: Any = None,
    *,
    class_label: Any = None,
    n_fragments: int = N_FRAGMENTS,
    min_support: int | None = None,
    refits: int = 0,
    seed: int = 0,
    smarts: bool = True,
) -> Any:
    """The table of fragments of a fitted model on some graphs.

    Parameters
    ----------
    model : GraphClassifier, GraphRegressor or GraphSVC
        Fitted.
    graphs : GraphCollection
    y : array-like, shape (n_graphs,), optional
        Classes or values.
    class_label : object, optional
        The class that positive effects speak for: by default, with two classes the second; with
        more, each row names its own.
    n_fragments : int, default=40
        At most so many rows.
    min_support : int, optional
        A fragment must be held by so many graphs; by default 0.4 % of them, at least 3.
    refits : int, default=0
        Fit the model so many times to graphs drawn with replacement from these, and add
        ``refit_error``: the standard deviation over refits of each effect, measured on the graphs
        that were not drawn. Needs ``y``; two classes or numbers.
    seed : int
        For the draws.
    smarts : bool, default=True
        Whether fragments of molecules are written as SMARTS, which takes a while.
    """
    if refits == 1 or refits < 0:
        raise ValueError(f"refits must be 0, or at least 2 for a spread; got {refits!r}.")
    decision = model._decision
    targets = None if y is None else _targets(decision.classes, y, len(graphs))
    options: dict[str, Any] = {"n_fragments": n_fragments, "min_support": min_support}
    jobs = model._n_jobs()
    table = fragment_table(
        decision, graphs, targets, class_label, n_jobs=jobs, smarts=smarts, **options
    )
    if refits:
        if y is None or "class_label" in table:
            raise ValueError("refits needs y, and two classes or numbers (or a class_label).")
        table["refit_error"] = _over_refits(model, graphs, np.asarray(y), refits, seed, options)
    return table


def _targets(classes: np.ndarray | None, y: Any, n: int) -> np.ndarray:
    """Class codes or values, one a graph."""
    y = np.asarray(y)
    if len(y) != n:
        raise ValueError(f"y has {len(y)} entries for {n} graphs.")
    if classes is None:
        return y.astype(float)
    codes = np.searchsorted(classes, y)
    known = classes[np.minimum(codes, len(classes) - 1)] == y
    if not known.all():
        wrong = y[~known].tolist()[0]
        raise ValueError(f"y holds {wrong!r}, which is none of the classes {classes.tolist()}.")
    return codes


def _over_refits(
    model: Any,
    graphs: GraphCollection,
    y: np.ndarray,
    refits: int,
    seed: int,
    options: dict[str, Any],
) -> np.ndarray:
    """Standard deviation over refits of the effects of the same occurrences: (n_fragments,)."""
    from sklearn.base import clone

    jobs = model._n_jobs()
    found = find_fragments(model._decision, graphs, n_jobs=jobs, **options)
    rng, effects = np.random.default_rng(seed), []
    for _ in range(refits):
        drawn = rng.integers(len(graphs), size=len(graphs))
        refit = clone(model).fit(graphs[np.sort(drawn)], y[np.sort(drawn)])
        rest = np.setdiff1d(np.arange(len(graphs)), drawn)
        effects.append(effects_elsewhere(refit, found.seen, found.fragments, rest))
    return np.nanstd(np.array(effects), axis=0, ddof=1)


def effects_elsewhere(
    model: Any, seen: ExplainedGraphs, fragments: list[Any], chosen: np.ndarray
) -> list[float]:
    """Effects of fragments by another model, over some of the graphs; NaN where none holds one."""
    explained = explained_by(model._decision, seen.graphs[chosen], n_jobs=model._n_jobs())
    phi = np.full(seen.graphs.n_nodes, np.nan)
    phi[np.isin(seen.graph_of_node, chosen)] = explained.seen.phi
    means = []
    for fragment in fragments:
        roots = fragment.roots[np.isin(seen.graph_of_node[fragment.roots], chosen)]
        held = seen.balls(roots, fragment.depth)
        means.append(mean_over_graphs(held @ np.nan_to_num(phi), seen.graph_of_node[roots]).mean)
    return means
