"""What all model files share: parameters, the recipe of the graphs, patterns and their counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treelens.graphs.recipe import GraphRecipe
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.refinement import PatternLevel
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.storage.archive import Contents
from treelens.storage.plain_data import UnknownKindError, to_plain
from treelens.storage.stored import Stored
from treelens.storage.stored_records import check_labels

_INT32_END = 2**31
_MOST_ALIKE = 8  # patterns with the same hash by chance


def plain_parameters(estimator: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Constructor parameters as plain data, and the text of those that have no plain form.

    The latter (a splitter, a random generator) matter only for fitting again; a loaded model has
    their defaults.
    """
    kept: dict[str, Any] = {}
    not_kept: dict[str, str] = {}
    flat = hasattr(estimator, "flat_parameters")
    given = estimator.flat_parameters() if flat else estimator.get_params(deep=False)
    for name, value in given.items():
        try:
            kept[name] = to_plain(value)
        except UnknownKindError:
            not_kept[name] = repr(value)[:200]
    return kept, not_kept


def plain_value(value: Any, what: str) -> Any:
    try:
        return to_plain(value)
    except UnknownKindError as error:
        raise UnknownKindError(
            f"The model cannot be saved: {what} cannot be kept in a file. {error}"
        ) from None


# --- what made the graphs -------------------------------------------------------------------


def put_recipe(recipe: GraphRecipe | None, into: Contents) -> None:
    into.data["recipe"] = None if recipe is None else recipe.to_plain()


def get_recipe(stored: Stored) -> GraphRecipe | None:
    """What made the training graphs; None, not known, in files that were written before it."""
    record = stored.value("recipe", dict, type(None)) if stored.has_value("recipe") else None
    if record is None:
        return None
    try:
        return GraphRecipe.from_plain(record)
    except ValueError as error:
        raise stored.error(f"'recipe': {error}") from error


# --- patterns -------------------------------------------------------------------------------


def put_vocabulary(vocabulary: PatternVocabulary, into: Contents, prefix: str = "") -> None:
    """A vocabulary under names that begin with ``prefix``."""
    into.data[f"{prefix}node_alphabet"] = _plain_labels(vocabulary.node_alphabet, "node")
    edges = vocabulary.edge_alphabet
    into.data[f"{prefix}edge_alphabet"] = None if edges is None else _plain_labels(edges, "edge")
    into.data[f"{prefix}degree_labels"] = bool(vocabulary.degree_labels)
    into.data[f"{prefix}depth"] = vocabulary.depth
    for depth, level in enumerate(vocabulary.levels, 1):
        into.arrays[f"{prefix}level_{depth}_own"] = level.own
        into.arrays[f"{prefix}level_{depth}_child_offsets"] = level.child_offsets
        into.arrays[f"{prefix}level_{depth}_child_keys"] = level.child_keys


def _plain_labels(labels: Sequence[Any], what: str) -> list[Any]:
    return [plain_value(label, f"the {what} label {label!r}") for label in labels]


def get_vocabulary(stored: Stored, prefix: str = "") -> PatternVocabulary:
    node_alphabet = tuple(stored.value(f"{prefix}node_alphabet", list))
    edges = stored.value(f"{prefix}edge_alphabet", list, type(None))
    check_labels(stored, f"{prefix}node_alphabet", node_alphabet)
    check_labels(stored, f"{prefix}edge_alphabet", edges or ())
    depth_name = f"{prefix}depth"
    deepest = stored.whole(stored.value(depth_name, int), repr(depth_name), 0, _INT32_END)
    n_keys_per_color = 1 if edges is None else len(edges)
    levels: list[PatternLevel] = []
    n_below = len(node_alphabet)
    for depth in range(1, deepest + 1):
        level = _get_level(stored, f"{prefix}level_{depth}", n_below, n_keys_per_color)
        levels.append(level)
        n_below = len(level)
    return PatternVocabulary(
        node_alphabet,
        None if edges is None else tuple(edges),
        tuple(levels),
        stored.value(f"{prefix}degree_labels", bool),
    )


def _get_level(stored: Stored, name: str, n_below: int, keys_per_color: int) -> PatternLevel:
    own = stored.integers(f"{name}_own", np.int32, (None,), 0, n_below)
    n_keys = n_below * keys_per_color
    child_keys = stored.integers(f"{name}_child_keys", np.int64, (None,), 0, n_keys)
    offsets = stored.offsets(f"{name}_child_offsets", len(own), len(child_keys))
    level = PatternLevel(own, offsets, child_keys)
    if level.most_alike() > _MOST_ALIKE:  # a hash table of them would be as slow as a list
        raise stored.error(f"the patterns of {name!r} should differ from each other")
    return level


def put_lists(histograms: PatternHistograms, into: Contents) -> None:
    """Which training graphs hold each pattern, and how often."""
    for name in ("offsets", "graphs", "counts", "n_nodes"):
        into.arrays[f"train_{name}"] = getattr(histograms, name)


def get_lists(
    stored: Stored,
    level_offsets: np.ndarray,
    first_depth: int,
    level_depths: np.ndarray | None = None,
) -> PatternHistograms:
    """Training histograms over known levels; a forest, which names depths, leaves nothing unseen.

    Every node of a graph carries one pattern of each level, known or not.
    """
    n_nodes = stored.integers("train_n_nodes", np.int64, (None,), 0, _INT32_END)
    graphs = stored.integers("train_graphs", np.int32, (None,), 0, len(n_nodes))
    offsets = stored.offsets("train_offsets", int(level_offsets[-1]), len(graphs))
    counts = stored.integers("train_counts", np.int32, (len(graphs),), 1, _INT32_END)
    inside = np.ones(len(graphs), dtype=bool)  # not the first entry of a pattern's list
    inside[offsets[:-1][offsets[:-1] < len(graphs)]] = False
    if (np.diff(graphs) <= 0)[inside[1:]].any() or (n_nodes[graphs] == 0).any():
        raise stored.error("the array 'train_graphs' should ascend within a pattern")
    shape = (len(n_nodes), len(level_offsets) - 1)
    unseen = np.zeros(shape, dtype=np.int64)
    if level_depths is None:
        unseen = stored.integers("train_unseen", np.int64, shape, 0, _INT32_END)
    found = PatternHistograms(
        offsets, graphs, counts, level_offsets, first_depth, n_nodes, unseen, level_depths
    )
    if (found.nodes_counted() + unseen != n_nodes[:, None]).any():
        raise stored.error("the counts in 'train_counts' should add up to 'train_n_nodes'")
    return found
