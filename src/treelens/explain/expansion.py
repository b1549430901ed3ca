"""What can be explained: kernel expansions, and the patterns that they find in a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from treelens.explain.paths import KernelSums, PathSlopes, path_slopes
from treelens.graphs.collection import GraphCollection
from treelens.kernels.table import KERNELS
from treelens.patterns.features import PatternExtractor, SeenGraphs
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary


class FoundPatterns(NamedTuple):
    """The known patterns of one graph, numbered from the first level in use on."""

    colors: np.ndarray  # (n_levels, n_nodes), numbered per level, -1 where unseen
    patterns: np.ndarray  # (n_found,), ascending
    values: np.ndarray  # (n_found,), what the pair feature combines
    level_offsets: np.ndarray
    minimum: bool  # whether it combines by minima, else by products
    scale: float
    own_unseen: float  # what patterns outside the vocabulary add to the graph's own sum
    out_of_vocabulary: float
    covariates: np.ndarray | None = None  # (1, n_covariates) of the graph, where a model has any

    @classmethod
    def of(
        cls, seen: SeenGraphs, index: int, weights: np.ndarray, first_level: int = 0
    ) -> FoundPatterns:
        """Of one graph among those that were refined together."""
        pairs, offsets = seen.features.pairs, seen.colors.node_offsets
        row = slice(pairs.rows.offsets[index], pairs.rows.offsets[index + 1])
        colors = seen.colors.colors[first_level:, offsets[index] : offsets[index + 1]]
        found = cls(
            colors, pairs.rows.indices[row], pairs.rows.values[row], pairs.level_offsets,
            pairs.minimum, float(pairs.scale[index]), 0.0,
            np.count_nonzero(colors < 0) / max(colors.size, 1),
        )  # fmt: skip
        known = float(found.own_terms(weights).sum())
        unseen = max(float(seen.features.diagonal[index]) - known, 0.0)
        table = seen.features.covariates
        return found._replace(
            own_unseen=unseen if found.out_of_vocabulary else 0.0,
            covariates=None if table is None else table[index : index + 1],
        )

    @property
    def counts(self) -> np.ndarray:
        """How many nodes carry each pattern, shape (n_found,)."""
        ids = (self.colors + self.level_offsets[:-1, None])[self.colors >= 0]
        return np.bincount(np.searchsorted(self.patterns, ids), minlength=len(self.patterns))

    def own_terms(self, weights: np.ndarray) -> np.ndarray:
        """Each pattern's term in ``<W, Z(G, G)>``, shape (n_found,)."""
        values = self.values if self.minimum else self.values**2
        return weights[self.patterns] * values * self.scale**2


class KernelExpansion(Protocol):
    """What can be explained: a sum over training graphs of coefficients times kernel values.

    :class:`KernelDecision` is one, :class:`treelens.explain.gaussian.GaussianDecision` another.
    ``classes`` is None where numbers are predicted.
    """

    @property
    def vocabulary(self) -> Any: ...
    @property
    def level_depths(self) -> np.ndarray: ...
    @property
    def weights(self) -> np.ndarray: ...
    @property
    def offset(self) -> float: ...
    @property
    def gamma(self) -> float | None: ...
    @property
    def pairs(self) -> PairFeatures: ...
    @property
    def diagonal(self) -> np.ndarray: ...
    @property
    def coefficients(self) -> np.ndarray: ...
    @property
    def intercepts(self) -> np.ndarray: ...
    @property
    def classes(self) -> np.ndarray | None: ...
    @property
    def votes(self) -> tuple[np.ndarray, np.ndarray] | None: ...
    @property
    def training_indices(self) -> np.ndarray: ...
    @property
    def out_of_vocabulary_limit(self) -> float: ...

    def pattern_ids(self, patterns: np.ndarray) -> np.ndarray: ...
    def find(self, graph: GraphCollection) -> FoundPatterns: ...
    def found_in(self, seen: SeenGraphs, index: int) -> FoundPatterns: ...
    def slopes(self, sums: KernelSums) -> PathSlopes: ...
    def beside(self, found: FoundPatterns) -> np.ndarray: ...
    def facts_of_training(self, picked: np.ndarray) -> dict[str, np.ndarray]: ...
    def facts_of_patterns(self, ids: np.ndarray) -> dict[str, np.ndarray]: ...


@dataclass(frozen=True)
class KernelDecision:
    """A fitted decision function as plain data.

    Attributes
    ----------
    vocabulary : PatternVocabulary
    first_depth : int
        The shallowest depth in use; the deepest is that of the vocabulary.
    kernel : str
        A key of ``treelens.kernels.table.KERNELS``.
    weights : ndarray, shape (n_patterns,)
        Of the patterns from ``first_depth`` on.
    offset : float
    gamma : float or None
        None where the kernel has no scale.
    pairs : PairFeatures
        Of the n training graphs that have a coefficient.
    diagonal : ndarray, shape (n,)
        ``<W, Z(G_i, G_i)>`` of these.
    coefficients : ndarray, shape (n_outputs, n)
    intercepts : ndarray, shape (n_outputs,)
    classes : ndarray, shape (n_classes,)
        Two classes share one output, positive for the second; more have one output each.
    training_indices : ndarray, shape (n,)
        Where these graphs stood in the training set; -1 for what stands for no single graph of
        it, and is never named as a neighbour.
    training_codes : ndarray, shape (n,)
        Their classes, as positions in ``classes``.
    out_of_vocabulary_limit : float
        The unseen share above which an explanation warns; see
        :func:`treelens.patterns.histograms.usual_out_of_vocabulary`.
    votes : (coefficients, intercepts), optional
        Several classes that are decided one against one: a row for every two classes, in the order
        of :mod:`treelens.kernels.voting`. The class is predicted by these; ``coefficients`` has
        the mean of the rows of each class against the others.
    """

    vocabulary: PatternVocabulary
    first_depth: int
    kernel: str
    weights: np.ndarray
    offset: float
    gamma: float | None
    pairs: PairFeatures
    diagonal: np.ndarray
    coefficients: np.ndarray
    intercepts: np.ndarray
    classes: np.ndarray
    training_indices: np.ndarray
    training_codes: np.ndarray
    out_of_vocabulary_limit: float = 0.3
    votes: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def depths(self) -> range:
        return range(self.first_depth, self.vocabulary.depth + 1)

    @property
    def extractor(self) -> PatternExtractor:
        return PatternExtractor(
            self.vocabulary, self.first_depth, KERNELS[self.kernel].pair_feature
        )

    # --- what explaining asks of any kernel expansion -------------------------------------------

    @property
    def level_depths(self) -> np.ndarray:
        return np.array(self.depths)

    def pattern_ids(self, patterns: np.ndarray) -> np.ndarray:
        """Ids in the vocabulary of patterns numbered from ``first_depth`` on."""
        return patterns + int(self.vocabulary.level_offsets[self.first_depth])

    def find(self, graph: GraphCollection) -> FoundPatterns:
        """The known patterns of one graph, and what the others add to its own sum."""
        return self.found_in(self.extractor.look_at(graph, self.weights), 0)

    def found_in(self, seen: SeenGraphs, index: int) -> FoundPatterns:
        """The same of one of several graphs that were refined before."""
        return FoundPatterns.of(seen, index, self.weights, self.first_depth)

    def slopes(self, sums: KernelSums) -> PathSlopes:
        return path_slopes(self.kernel, sums)

    def beside(self, found: FoundPatterns) -> np.ndarray:
        """What is added to the outputs beside patterns: nothing."""
        return np.zeros(len(self.intercepts))

    def facts_of_training(self, picked: np.ndarray) -> dict[str, np.ndarray]:
        return {"class_label": self.classes[self.training_codes[picked]]}

    def facts_of_patterns(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        return {}  # there is one tree only
