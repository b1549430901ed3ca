"""What to know about the data before believing a score: twins, conflicts, balance, novelty."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.report.given import GivenGraphs
from treelens.svm.model import FittedSVM

# Rounds of refinement; colours of real graphs have settled long before.
_ROUNDS = 10
_MOST_GROUPS = 20
_MOST_MEMBERS = 12
_UNSEEN_BINS = 20


def diagnose(model: FittedSVM, given: GivenGraphs, known: np.ndarray) -> dict[str, Any]:
    """Everything the report says about the given graphs as data.

    ``known`` is what :func:`known_from_training` found.
    """
    sizes = given.graphs.sizes
    return {
        "n_graphs": len(given),
        "n_nodes": {"mean": sizes.mean(), "least": sizes.min(), "most": sizes.max()},
        "n_edges_mean": given.graphs.n_edges / len(given),
        "classes": class_balance(given.codes, given.classes),
        "twins": _twins(given),
        "indistinguishable": _indistinguishable(given),
        "known_from_training": {"n_graphs": int(known.sum()), "share": known.mean()},
        "unseen": _unseen(model, given),
    }


def class_balance(codes: np.ndarray | None, classes: np.ndarray) -> list[dict[str, Any]] | None:
    """How many graphs each class has."""
    if codes is None:
        return None
    counts = np.bincount(codes, minlength=len(classes))
    return [
        {"class": str(label), "n": n, "share": n / len(codes)}
        for label, n in zip(classes.tolist(), counts.tolist(), strict=True)
    ]


# --- twins ------------------------------------------------------------------------------------


def _twins(given: GivenGraphs) -> dict[str, Any]:
    """Graphs that colour refinement cannot tell apart: equal up to isomorphism, almost always."""
    groups = _told_apart(given.graphs, equal_groups(_model_keys(given)))
    conflicts = [group for group in groups if _disagree(group, given.codes)]
    return {
        "rounds": _ROUNDS,
        "n_groups": len(groups),
        "n_graphs": sum(map(len, groups)),
        "n_conflicting_groups": len(conflicts),
        "n_conflicting_graphs": sum(map(len, conflicts)),
        "groups": _listed(groups, given),
        "conflicts": _listed(conflicts, given),
    }


def _model_keys(given: GivenGraphs) -> list[bytes]:
    """One key per graph from the colours that the model knows: equal for isomorphic graphs."""
    colors, offsets = given.colors.colors, given.colors.node_offsets.tolist()
    return [np.sort(colors[:, start:stop], axis=1).tobytes() for start, stop in pairwise(offsets)]


def _told_apart(graphs: GraphCollection, groups: list[list[int]]) -> list[list[int]]:
    """Groups of look-alikes, split where more rounds of refinement see a difference.

    Only graphs that look like another one are refined further.
    """
    if not groups:
        return []
    members = np.concatenate([np.array(group) for group in groups])
    keys = refined_keys(graphs[members])
    lookalikes = np.repeat(np.arange(len(groups)), [len(group) for group in groups]).tolist()
    again = equal_groups(zip(lookalikes, keys, strict=True))
    found = [sorted(members[group].tolist()) for group in again]
    return sorted(found, key=lambda group: (-len(group), group[0]))


def refined_keys(graphs: GraphCollection, rounds: int = _ROUNDS) -> list[bytes]:
    """One key per graph, equal for isomorphic graphs: the colours after some rounds, sorted."""
    _, found = PatternVocabulary.fit(graphs, rounds, graphs.edge_codes is not None)
    last, offsets = found.colors[-1], graphs.node_offsets
    return [
        np.sort(last[start:stop]).tobytes()
        for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ]


def equal_groups(keys: Iterable[Any]) -> list[list[int]]:
    """Positions with equal keys, groups of two and more, the largest first.

    Examples
    --------
    >>> equal_groups(["a", "b", "a"])
    [[0, 2]]
    """
    members: dict[Any, list[int]] = defaultdict(list)
    for position, key in enumerate(keys):
        members[key].append(position)
    groups = [group for group in members.values() if len(group) > 1]
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _disagree(group: list[int], codes: np.ndarray | None) -> bool:
    return codes is not None and len(set(codes[group].tolist())) > 1


def _listed(groups: list[list[int]], given: GivenGraphs) -> list[dict[str, Any]]:
    """The first groups, each with its size, some members and the classes among them."""
    return [
        {
            "n": len(group),
            "graphs": group[:_MOST_MEMBERS],
            "classes": None
            if given.codes is None
            else {
                str(given.classes[code]): n
                for code, n in enumerate(np.bincount(given.codes[group]).tolist())
                if n
            },
        }
        for group in groups[:_MOST_GROUPS]
    ]


# --- through the model's eyes -----------------------------------------------------------------


def _indistinguishable(given: GivenGraphs) -> dict[str, Any] | None:
    """Graphs of different classes with equal histograms: no weights can tell them apart."""
    if given.codes is None:
        return None
    groups = equal_groups(_histogram_keys(given.histograms))
    conflicts = [group for group in groups if _disagree(group, given.codes)]
    lost = sum(len(g) - int(np.bincount(given.codes[g]).max()) for g in conflicts)
    return {
        "n_groups": len(conflicts),
        "n_graphs": sum(map(len, conflicts)),
        "best_accuracy": 1.0 - lost / len(given),
    }


def known_from_training(model: FittedSVM, given: GivenGraphs) -> np.ndarray:
    """Which given graphs have exactly the pattern counts of some training graph."""
    trained = set(_histogram_keys(model.training.histograms))
    return np.array([key in trained for key in _histogram_keys(given.histograms)])


def _histogram_keys(histograms: PatternHistograms) -> list[Any]:
    """One key per graph, equal for equal histograms; graphs with unseen patterns equal none."""
    table = histograms.to_sparse("counts", dtype=np.int32)  # (n_graphs, n_patterns)
    indices = table.indices.astype(np.int32)  # scipy chooses a width by the size of the table
    unseen = np.asarray(histograms.unseen.any(axis=1))
    spans = zip(table.indptr[:-1].tolist(), table.indptr[1:].tolist(), strict=True)
    return [
        (position,)
        if unseen[position]
        else (indices[start:stop].tobytes(), table.data[start:stop].tobytes())
        for position, (start, stop) in enumerate(spans)
    ]


def _unseen(model: FittedSVM, given: GivenGraphs) -> dict[str, Any]:
    """The share of patterns that training never saw, and how many graphs have unusually many."""
    shares, limit = given.said.out_of_vocabulary, model.training.usual_out_of_vocabulary
    counts, edges = np.histogram(shares, bins=_UNSEEN_BINS, range=(0.0, 1.0))
    return {
        "mean": shares.mean(),
        "most": shares.max(),
        "limit": limit,
        "n_above_limit": int((shares > limit).sum()),
        "counts": counts,
        "bin_edges": edges,
    }
