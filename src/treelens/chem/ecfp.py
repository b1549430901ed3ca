"""Circular fingerprints (ECFP) of the molecules behind graphs: folded, or as levels of patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from treelens.array_checks import check_array
from treelens.chem.parsing import molecules_behind
from treelens.graphs.collection import GraphCollection
from treelens.patterns.histograms import PatternHistograms, SparseRows
from treelens.patterns.source import PatternSource, Sites, balls_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_FOLDED_SIZE = 2048


def fingerprint_counts(molecules: Sequence[Any], radius: int = 2) -> sparse.csr_array:
    """Unfolded counts of circular environments, shape (n_molecules, n_environments)."""
    # Radius 2 is ECFP4, 3 is ECFP6. The columns are in the order in which environments are met.
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    from sklearn.feature_extraction import DictVectorizer

    make = GetMorganGenerator(radius=radius)
    found = [make.GetSparseCountFingerprint(m).GetNonzeroElements() for m in molecules]
    return sparse.csr_array(DictVectorizer(sort=False).fit_transform(found))


class Environments(NamedTuple):
    """The circular environments of molecules."""

    of_graphs: list[list[tuple[int, int, list[int]]]]  # bit, radius and centres, graph by graph
    graphs: GraphCollection

    def select_graphs(self, positions: np.ndarray) -> Environments:
        """Return those of some molecules."""
        return Environments([self.of_graphs[k] for k in positions], self.graphs[positions])


@dataclass(frozen=True, eq=False)
class FingerprintForest(PatternSource):
    """Unfolded ECFP counts as levels of patterns, in place of a Weisfeiler-Lehman forest."""

    # A level is a radius: a Gaussian process can weigh radii as it weighs depths.

    environments: tuple[np.ndarray, ...]  # by radius: hashes in the training set, in its order

    name = "ecfp"

    def validate(self) -> None:
        """Raise ``ValueError`` where an environment stands twice."""
        for level in self.environments:
            check_array(level, "environments", np.int64, (len(level),))
        if not self.environments or any(len(set(x.tolist())) < len(x) for x in self.environments):
            raise ValueError("there must be different environments of each radius")

    @classmethod
    def fit(cls, graphs: GraphCollection, depth: int) -> tuple[FingerprintForest, Environments]:
        return cls((np.empty(0, dtype=np.int64),) * (depth + 1)).extend(graphs)

    @cached_property
    def columns(self) -> tuple[dict[int, int], ...]:
        """By radius, the position of each environment in its level."""
        return tuple(
            {bit: k for k, bit in enumerate(level.tolist())} for level in self.environments
        )

    def extend(
        self, graphs: GraphCollection, n_jobs: int = 1
    ) -> tuple[FingerprintForest, Environments]:
        """Return the forest with the environments of these graphs added, and their counts."""
        found = self.transform(graphs)
        columns = tuple(dict(level) for level in self.columns)
        for bit, radius, _ in chain.from_iterable(found.of_graphs):
            columns[radius].setdefault(bit, len(columns[radius]))
        levels = tuple(np.fromiter(level, np.int64, len(level)) for level in columns)
        return FingerprintForest(levels), found

    def transform(self, graphs: GraphCollection, n_jobs: int = 1) -> Environments:
        """Return bit, radius and count of the environments of each molecule."""
        from rdkit.Chem.rdFingerprintGenerator import AdditionalOutput, GetMorganGenerator

        make, output, found = GetMorganGenerator(radius=self.depth), AdditionalOutput(), []
        output.CollectBitInfoMap()
        for molecule in molecules_behind(graphs):
            make.GetSparseCountFingerprint(molecule, additionalOutput=output)
            centres = output.GetBitInfoMap()
            found.append(
                [(bit, atoms[0][1], [atom for atom, _ in atoms]) for bit, atoms in centres.items()]
            )
        return Environments(found, graphs)

    def truncated(self, depth: int) -> FingerprintForest:
        return FingerprintForest(self.environments[: depth + 1])

    @property
    def level_sizes(self) -> np.ndarray:
        return np.array([len(level) for level in self.environments], dtype=np.int64)

    @property
    def n_deviating(self) -> int:
        return self.n_patterns

    def sites(self, found: Environments) -> Sites:
        """The atoms within the radius of the centres of an environment."""
        offsets, numbers, nodes = found.graphs.node_offsets, [], []
        centred = [
            (radius, self.columns[radius].get(bit, -1), offsets[graph] + centre)
            for graph, environments in enumerate(found.of_graphs)
            for bit, radius, centres in environments
            for centre in centres
        ]
        radii, columns, centres = np.array(centred, dtype=np.int64).reshape(-1, 3).T
        for radius, near in enumerate(balls_of(found.graphs, self.depth)):
            around = near[centres[radii == radius]]
            own = columns[radii == radius]
            own = np.where(own < 0, -1, own + self.level_offsets[radius])
            numbers.append(np.repeat(own, np.diff(around.indptr)))
            nodes.append(around.indices)
        return Sites(offsets, np.concatenate(numbers), np.concatenate(nodes))

    def texts(self, patterns: ArrayLike) -> list[str]:
        """Return the radius and the hash of environments: RDKit gives them no other name."""
        names = [
            f"{k}:{bit}" for k, level in enumerate(self.environments) for bit in level.tolist()
        ]
        return [names[pattern] for pattern in np.asarray(patterns).tolist()]

    def count(self, found: Environments) -> PatternHistograms:
        """Return how often each molecule has each environment."""
        entries = [
            (graph, radius, self.columns[radius].get(bit, -1), len(centres))
            for graph, environments in enumerate(found.of_graphs)
            for bit, radius, centres in environments
        ]
        graph, level, column, times = np.array(entries, dtype=np.int64).reshape(-1, 4).T
        new, known = column < 0, column >= 0
        unseen = np.zeros((len(found.graphs), self.n_levels), dtype=np.int64)
        np.add.at(unseen, (graph[new], level[new]), times[new])
        places = ((self.level_offsets[level] + column)[known], graph[known])
        shape = (self.n_patterns, len(found.graphs))
        table = sparse.csr_array((times[known].astype(np.int32), places), shape=shape)
        lists = SparseRows.of(table)
        return PatternHistograms(
            lists.offsets,
            lists.indices,
            lists.values,
            self.level_offsets,
            self.level_depths,
            found.graphs.sizes,
            unseen,
            self.level_shares,
        )


def folded_counts(molecules: Sequence[Any]) -> np.ndarray:
    """ECFP4 counts folded to a fixed length, shape (n_molecules, 2048)."""
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    make = GetMorganGenerator(radius=2, fpSize=_FOLDED_SIZE)
    rows = [make.GetCountFingerprintAsNumPy(molecule) for molecule in molecules]
    return np.array(rows, dtype=np.int64).reshape(-1, _FOLDED_SIZE)
