"""Patterns that a user's own view finds in graphs, one graph at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from treelens.errors import GraphDataError
from treelens.graphs.collection import Graph, GraphCollection
from treelens.patterns.histograms import PatternHistograms, SparseRows
from treelens.patterns.source import PatternSource, Sites
from treelens.patterns.vocabulary import offsets_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class PatternFinder(ABC):
    """What finds patterns in a graph: the part of :class:`treelens.PatternView` that is stored."""

    name: ClassVar[str]
    levels: ClassVar[Sequence[str]] = ("all",)

    @abstractmethod
    def occurrences(self, graph: Graph) -> Iterable[tuple[str, str, Sequence[int]]]:
        """Yield a level, the text of a pattern and the nodes that have part in it, each time."""


class Place(NamedTuple):
    """One occurrence of a pattern."""

    level: int
    text: str
    nodes: tuple[int, ...]


class Places(NamedTuple):
    """The occurrences of patterns, graph by graph."""

    of_graphs: list[list[Place]]
    sizes: np.ndarray  # (n_graphs,) nodes

    def select_graphs(self, positions: np.ndarray) -> Places:
        """Return those of some graphs."""
        return Places([self.of_graphs[k] for k in positions], self.sizes[positions])


@dataclass(frozen=True, eq=False)
class OwnPatterns(PatternSource):
    """The different texts that a finder gave for training graphs, level by level."""

    finder: PatternFinder
    known: tuple[tuple[str, ...], ...]

    has_depths = False

    @classmethod
    def empty(cls, finder: PatternFinder) -> OwnPatterns:
        return cls(finder, ((),) * len(finder.levels))

    def validate(self) -> None:
        """Raise ``ValueError`` where a pattern stands twice."""
        if not self.known or any(len(set(level)) < len(level) for level in self.known):
            raise ValueError("there must be levels of different patterns")
        if len(self.known) != len(self.finder.levels):
            raise ValueError("there must be as many levels as the view names")

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.finder.name

    @property
    def level_sizes(self) -> np.ndarray:
        return np.array([len(level) for level in self.known], dtype=np.int64)

    @property
    def level_depths(self) -> np.ndarray:
        return np.zeros(self.n_levels, dtype=np.int64)

    @property
    def level_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}, {level}" for level in self.finder.levels)

    @cached_property
    def _columns(self) -> tuple[dict[str, int], ...]:
        return tuple({text: k for k, text in enumerate(level)} for level in self.known)

    def extend(self, graphs: GraphCollection, n_jobs: int = 1) -> tuple[OwnPatterns, Places]:
        found = self.transform(graphs, n_jobs)
        columns = tuple(dict(level) for level in self._columns)
        for place in chain.from_iterable(found.of_graphs):
            columns[place.level].setdefault(place.text, len(columns[place.level]))
        return OwnPatterns(self.finder, tuple(tuple(level) for level in columns)), found

    def transform(self, graphs: GraphCollection, n_jobs: int = 1) -> Places:
        levels = {level: k for k, level in enumerate(self.finder.levels)}
        found = [
            [_checked(each, levels, graph, k) for each in self.finder.occurrences(graph)]
            for k, graph in enumerate(graphs)
        ]
        return Places(found, graphs.sizes)

    def count(self, found: Places) -> PatternHistograms:
        graphs, levels, columns, _ = self._numbered(found)
        known = columns >= 0
        unseen = np.zeros((len(found.sizes), self.n_levels), dtype=np.int64)
        np.add.at(unseen, (graphs[~known], levels[~known]), 1)
        places = (self.level_offsets[levels] + columns)[known], graphs[known]
        ones = np.ones(int(known.sum()), dtype=np.int32)
        shape = (self.n_patterns, len(found.sizes))
        lists = SparseRows.of(sparse.csr_array((ones, places), shape=shape))  # adds equal places
        return PatternHistograms(
            lists.offsets,
            lists.indices,
            lists.values,
            self.level_offsets,
            self.level_depths,
            found.sizes,
            unseen,
            self.level_shares,
        )

    def _numbered(self, found: Places) -> tuple[np.ndarray, ...]:
        """Return graph, level, column in the level (-1: unseen) and nodes of every occurrence."""
        rows = [
            (graph, place.level, self._columns[place.level].get(place.text, -1))
            for graph, places in enumerate(found.of_graphs)
            for place in places
        ]
        nodes = [place.nodes for place in chain.from_iterable(found.of_graphs)]
        graphs, levels, columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return graphs, levels, columns, nodes  # type: ignore[return-value]

    def texts(self, patterns: ArrayLike) -> list[str]:
        texts = list(chain.from_iterable(self.known))
        return [texts[pattern] for pattern in np.asarray(patterns).tolist()]

    def sites(self, found: Places) -> Sites:
        """The nodes that the finder gave."""
        graphs, levels, columns, nodes = self._numbered(found)
        numbers = np.where(columns >= 0, self.level_offsets[levels] + columns, -1)
        offsets, n_nodes = offsets_of(found.sizes), [len(each) for each in nodes]
        own = np.fromiter(chain.from_iterable(nodes), np.int64, sum(n_nodes))
        own += np.repeat(offsets[:-1][graphs], n_nodes)
        return Sites(offsets, np.repeat(numbers, n_nodes), own)


def _checked(
    each: tuple[str, str, Sequence[int]], levels: dict[str, int], graph: Graph, k: int
) -> Place:
    """Return an occurrence as a view gave it; an error says what is wrong, of which graph."""
    try:
        level, text, nodes = each
        nodes = tuple(int(node) for node in nodes)
        inside = nodes and min(nodes) >= 0 and max(nodes) < graph.n_nodes
    except (TypeError, ValueError):
        raise GraphDataError(
            f"occurrences() of graph {k} gave {each!r:.60}: give (level, text, nodes) each."
        ) from None
    if level not in levels or not isinstance(text, str) or not inside:
        raise GraphDataError(
            f"occurrences() of graph {k} gave {each!r:.60}: the level must be one of "
            f"{', '.join(levels)}, the pattern a text, and nodes numbers from 0 to "
            f"{graph.n_nodes - 1}, one or more."
        )
    return Place(levels[level], text, nodes)
