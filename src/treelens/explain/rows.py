"""The rows of an explanation's tables: patterns of the graph, and training graphs that spoke."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from treelens.explain.expansion import FoundPatterns, KernelExpansion

if TYPE_CHECKING:
    import pandas as pd


class PatternRows(NamedTuple):
    """Known patterns of a graph, the largest contribution (in absolute value) first."""

    decision: KernelExpansion
    patterns: np.ndarray  # (n_found,), numbered from the first level in use on
    depths: np.ndarray
    counts: np.ndarray  # nodes that carry each
    contributions: np.ndarray

    @classmethod
    def sorted(
        cls,
        decision: KernelExpansion,
        found: FoundPatterns,
        counts: np.ndarray,
        contributions: np.ndarray,
    ) -> PatternRows:
        order = np.lexsort((found.patterns, -np.abs(contributions)))
        patterns = found.patterns[order]
        level = np.searchsorted(found.level_offsets, patterns, side="right") - 1
        depths = decision.level_depths[level]
        return cls(decision, patterns, depths, counts[order], contributions[order])

    @property
    def ids(self) -> np.ndarray:
        """Ids in the vocabulary."""
        return self.decision.pattern_ids(self.patterns)

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        ids = self.ids
        return pd.DataFrame(
            {
                "pattern": self.decision.vocabulary.texts(ids),
                **self.decision.facts_of_patterns(ids),
                "depth": self.depths,
                "weight": self.decision.weights[self.patterns],
                "count": self.counts,
                "contribution": self.contributions,
            },
            index=pd.Index(ids, name="pattern_id"),
        )


class Voices(NamedTuple):
    """The strongest voices for a class, strongest first, then those against, strongest last."""

    decision: KernelExpansion
    picked: np.ndarray  # positions among the training graphs that have a coefficient
    similarities: np.ndarray
    coefficients: np.ndarray

    @classmethod
    def strongest(
        cls, decision: KernelExpansion, coefficients: np.ndarray, kernel: np.ndarray, n: int
    ) -> Voices:
        """Up to ``n`` on either side; what stands for no single training graph has no voice."""
        votes = coefficients * kernel
        order = np.lexsort((decision.training_indices, -votes))
        order = order[decision.training_indices[order] >= 0]
        most_for = order[:n][votes[order[:n]] > 0]
        last = order[len(order) - min(n, len(order)) :]
        picked = np.concatenate([most_for, last[votes[last] < 0]])
        return cls(decision, picked, kernel[picked], coefficients[picked])

    @property
    def training_graphs(self) -> np.ndarray:
        """Where these stood in the training set."""
        return self.decision.training_indices[self.picked]

    @property
    def contributions(self) -> np.ndarray:
        return self.coefficients * self.similarities

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(
            {
                **self.decision.facts_of_training(self.picked),
                "similarity": self.similarities,
                "coefficient": self.coefficients,
                "contribution": self.contributions,
            },
            index=pd.Index(self.training_graphs, name="training_graph"),
        )
