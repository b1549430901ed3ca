"""What a streaming classifier does with one part of the graphs, and how the parts go together.

The functions take a part and plain data, so that they run wherever an executor sends them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from treelens.graphs.blocks import Part, block_name, repeat_messages
from treelens.graphs.errors import GraphDataError
from treelens.graphs.recipe import GraphRecipe, common_recipe
from treelens.graphs.targets import check_none_missing
from treelens.kernels.approximate import RandomFourierFeatures
from treelens.models.least_squares import ProductSums
from treelens.parallel import blas_threads
from treelens.patterns.features import PatternExtractor
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.merging import merge_vocabularies, select_patterns
from treelens.patterns.vocabulary import PatternVocabulary

_HELD_OUT_OF = 10  # one graph in so many is held out to choose alpha
_ODD_WORD = np.uint64(0x9E3779B97F4A7C15)


class PartCounts(NamedTuple):
    """What the first pass learns from one part."""

    vocabulary: PatternVocabulary
    support: np.ndarray  # (n_patterns,) graphs that hold each pattern
    classes: np.ndarray
    class_counts: np.ndarray
    messages: tuple[Warning, ...]
    recipe: GraphRecipe | None = None


class Plan(NamedTuple):
    """All that a worker needs for the features of a part."""

    extractor: PatternExtractor
    feature_map: RandomFourierFeatures
    classes: np.ndarray
    class_factors: np.ndarray  # (n_classes,)
    seed: int
    n_jobs: int


# --- what is done with one part ---------------------------------------------------------------


def count_part(
    part: Part, number: int, depth: int, edge_labels: bool, n_jobs: int = 1
) -> PartCounts:
    """The patterns of a part, numbered on their own, and its classes."""
    block = part.load()
    if block.graphs is None:
        nothing = np.zeros(0, dtype=np.int64)
        empty = PatternVocabulary.empty(depth, edge_labels)
        return PartCounts(empty, nothing, nothing, nothing, block.messages)
    if block.y is None:
        raise GraphDataError(
            f"{block_name(number)} holds no classes: give every block its y (SmilesBlocks: "
            "target=..., CollectionBlocks: y=...)."
        )
    check_none_missing(block.y.tolist(), f"{block_name(number)}: ")
    vocabulary, colors = PatternVocabulary.fit(block.graphs, depth, edge_labels, n_jobs)
    support = PatternHistograms.from_colors(vocabulary, colors).support
    classes, class_counts = np.unique(block.y, return_counts=True)
    return PartCounts(
        vocabulary, support, classes, class_counts, block.messages, block.graphs.recipe
    )


def pick_from_part(
    part: Part, first: int, picked: np.ndarray, extractor: PatternExtractor, n_jobs: int = 1
) -> tuple[PatternHistograms, np.ndarray] | None:
    """Histograms and classes of the graphs whose numbers are in ``picked``, ascending."""
    block = part.load()
    if block.graphs is None:
        return None
    last = first + len(block.graphs)
    rows = picked[np.searchsorted(picked, first) : np.searchsorted(picked, last)] - first
    if not len(rows):
        return None
    return extractor.histograms(block.graphs[rows], n_jobs), np.asarray(block.y)[rows]


def sums_of_part(part: Part, first: int, plan: Plan) -> ProductSums:
    """Sums of products of the features of a part; ``first`` is the number of its first graph."""
    block = part.load()
    n_outputs = 1 if len(plan.classes) == 2 else len(plan.classes)
    if block.graphs is None:
        return ProductSums.zeros(plan.feature_map.n_components, n_outputs)
    features = plan.extractor.features(block.graphs, plan.feature_map.weights, plan.n_jobs)
    mapped = plan.feature_map.transform(features, plan.n_jobs)
    codes = np.searchsorted(plan.classes, np.asarray(block.y))
    held_out = _is_held_out(np.arange(first, first + len(codes)), plan.seed)
    with blas_threads(plan.n_jobs):
        return ProductSums.of(mapped, codes, n_outputs, plan.class_factors[codes], held_out)


def _is_held_out(numbers: np.ndarray, seed: int) -> np.ndarray:
    """One graph in ten, by a hash of its number: the same ones however the blocks are cut."""
    words = (numbers.astype(np.uint64) + np.uint64(seed)) * _ODD_WORD
    return (words >> np.uint64(33)) % np.uint64(_HELD_OUT_OF) == 0


# --- putting parts together -------------------------------------------------------------------


class _Run(NamedTuple):
    """Neighbouring parts, merged."""

    vocabulary: PatternVocabulary
    support: np.ndarray  # (n_patterns,)
    n_parts: int

    def followed_by(self, other: _Run) -> _Run:
        """Merged with the parts that come next."""
        old = self.vocabulary.level_offsets
        vocabulary, ids = merge_vocabularies(self.vocabulary, other.vocabulary)
        support = np.zeros(vocabulary.n_patterns, dtype=np.int64)
        shifts = np.repeat(vocabulary.level_offsets[:-1] - old[:-1], np.diff(old))
        support[np.arange(len(self.support)) + shifts] = self.support
        support[ids] += other.support  # ids are distinct
        return _Run(vocabulary, support, self.n_parts + other.n_parts)


class Tally:
    """The growing vocabulary: parts are added in order, rare patterns dropped when it overflows.

    A merge costs as much as both sides are large, so parts are not merged with all that came before
    but with as many as they are themselves, in a tree: each pattern is gone over as often as the
    number of parts can be halved. Which patterns come first does not depend on it.

    Parameters
    ----------
    max_patterns : int or None
        When more patterns are held, the rarest go, as many as needed; one that turns up again
        later starts from zero. That bounds the memory, at the price that the result depends on
        the blocks. None: patterns are dropped only at the end, by their exact support.
    """

    def __init__(self, depth: int, edge_labels: bool, max_patterns: int | None) -> None:
        nothing = PatternVocabulary.empty(depth, edge_labels)
        self._runs = [_Run(nothing, np.zeros(nothing.n_patterns, dtype=np.int64), 0)]
        self.max_patterns = max_patterns
        self.class_counts: dict[Any, int] = {}
        self.n_graphs: list[int] = []
        self.recipe: GraphRecipe | None = None

    def add(self, counts: PartCounts) -> None:
        """Take in the next part."""
        if counts.class_counts.size:  # a part without graphs says nothing
            first = not any(self.n_graphs)
            self.recipe = counts.recipe if first else common_recipe([self.recipe, counts.recipe])
        self.n_graphs.append(int(counts.class_counts.sum()))
        repeat_messages(counts.messages)
        for label, count in zip(counts.classes.tolist(), counts.class_counts, strict=True):
            self.class_counts[label] = self.class_counts.get(label, 0) + int(count)
        self._runs.append(_Run(counts.vocabulary, counts.support, 1))
        while len(self._runs) > 1 and self._runs[-2].n_parts <= self._runs[-1].n_parts:
            self._merge_last()
        held = sum(run.vocabulary.n_patterns for run in self._runs)
        if self.max_patterns is not None and held > self.max_patterns:
            self._shrink(self.max_patterns)

    def _merge_last(self) -> None:
        last = self._runs.pop()
        self._runs[-1] = self._runs[-1].followed_by(last)

    def _settled(self) -> _Run:
        """All parts so far, merged."""
        while len(self._runs) > 1:
            self._merge_last()
        return self._runs[0]

    @property
    def vocabulary(self) -> PatternVocabulary:
        """Of all parts so far."""
        return self._settled().vocabulary

    @property
    def support(self) -> np.ndarray:
        """How many graphs hold each of its patterns, shape (n_patterns,)."""
        return self._settled().support

    def _shrink(self, most: int) -> None:
        least = 1
        while self.vocabulary.n_patterns > most:
            least += 1
            self.keep(least)

    def keep(self, least: int) -> None:
        """Drop the patterns that fewer graphs hold."""
        vocabulary, support, n_parts = self._settled()
        mask = support >= least
        self._runs = [_Run(select_patterns(vocabulary, mask), support[mask], n_parts)]


def joined_histograms(parts: Iterable[PatternHistograms]) -> PatternHistograms:
    """Histograms of several collections over the same patterns, one after the other."""
    parts = list(parts)
    table = sparse.vstack([part.to_sparse(dtype=np.int32) for part in parts]).tocsc()
    table.sort_indices()
    return PatternHistograms(
        table.indptr.astype(np.int64),
        table.indices.astype(np.int32),
        table.data,
        parts[0].level_offsets,
        parts[0].first_depth,
        np.concatenate([part.n_nodes for part in parts]),
        np.concatenate([part.unseen for part in parts]),
    )
