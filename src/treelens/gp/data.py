"""Views and targets of the training graphs, as the choice and the fit of a model take them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from treelens.gp.evidence import EvidenceParameters, EvidenceProblem, with_enough_digits
from treelens.gp.levels import LevelSums, PatternHierarchy, fit_in_memory
from treelens.gp.own_kernels import OwnKernelTerm
from treelens.gp.posterior import Conditioned, LeaveOneOut, ScaledTargets
from treelens.gp.search import Tick
from treelens.gp.terms import (
    PRIOR_STRENGTH,
    AddedTerm,
    CountedTerm,
    NumbersTerm,
    SearchedTerm,
    TermParameters,
    term_at,
)
from treelens.gp.views import CovariateTable, FittedView, NumbersTable, StoredView, WeightedPatterns
from treelens.graphs.collection import GraphCollection
from treelens.kernels.base import Kernel, SumKernel, Term
from treelens.kernels.rbf import Rbf
from treelens.patterns.histograms import (
    Features,
    PairFeatures,
    PatternHistograms,
    ViewData,
    replicate_numbers,
)
from treelens.patterns.source import PatternSource

_NOISE_FACTOR = 3.0  # between noise variances that are tried


class TrainingView(ABC):
    """One view of the training graphs."""

    @abstractmethod
    def covariance(self, parameters: TermParameters) -> Term:
        """Return the kernel of the view, with its amplitude, at some parameters."""

    @abstractmethod
    def term(self, positions: np.ndarray, depth: int | None) -> tuple[SearchedTerm, np.ndarray]:
        """Return the term of some graphs, and the mask of the patterns it is about.

        Patterns that these graphs lack do not change their marginal likelihood; those beyond
        ``depth`` have no weight.
        """

    @property
    @abstractmethod
    def stored(self) -> StoredView:
        """What a model keeps of the training graphs."""

    @property
    @abstractmethod
    def data(self) -> ViewData:
        """What the view shows of all training graphs; of patterns their counts, without weights."""

    @property
    def depth(self) -> int:
        """The largest depth of a pattern; 0 where nothing has a depth."""
        return 0

    def truncated(self, depth: int) -> TrainingView:
        """Return the view without patterns beyond a depth."""
        return self

    def sharing(self, positions: np.ndarray) -> TrainingView:
        """Return the view with what fits to some of its graphs have in common."""
        return self

    @abstractmethod
    def fitted(self, parameters: TermParameters) -> FittedView:
        """Return the view of a model with these parameters."""


@dataclass(frozen=True, eq=False)
class CountedView(TrainingView):
    """Patterns of a source, and how often each training graph has them."""

    source: PatternSource
    histograms: PatternHistograms
    strength: float = PRIOR_STRENGTH
    n_jobs: int = 1
    shared: LevelSums | None = None  # of graphs that candidates are fitted to and compared on
    added: bool = False  # whether the prior prefers another view

    def covariance(self, parameters: TermParameters) -> Term:
        return term_at(CountedTerm.KERNEL, CountedTerm.AMPLITUDE, parameters)

    @cached_property
    def hierarchy(self) -> PatternHierarchy:
        return PatternHierarchy.of(self.source)

    @property
    def stored(self) -> PatternHistograms:
        return self.histograms

    @property
    def depth(self) -> int:
        return int(self.source.level_depths.max(initial=0)) if self.source.has_depths else 0

    @cached_property
    def data(self) -> Features:
        return Features.of(PairFeatures.of_counts(self.histograms))

    def fitted(self, parameters: TermParameters) -> WeightedPatterns:
        level_weights = self.hierarchy.level_weights(parameters.level_logits)
        log_weights = self.hierarchy.sum_down(parameters.deviations / np.sqrt(self.strength))
        return WeightedPatterns(self.source, log_weights, level_weights)

    @cached_property
    def _deviating(self) -> PatternHistograms:
        """Counts of the patterns that may deviate from the weight of their level."""
        source = self.source
        return self.histograms.select_levels(source.level_offsets[:-1] < source.n_deviating)

    def term(self, positions: np.ndarray, depth: int | None) -> tuple[CountedTerm, np.ndarray]:
        levels = None if self.shared is None else self.shared.among(positions)
        histograms = self.histograms if levels is None else self._deviating
        histograms = histograms.select_graphs(positions)
        present = np.ones(self.source.n_patterns, dtype=bool)
        present[: histograms.n_patterns] = histograms.support > 0
        if depth is not None and self.source.has_depths:
            present &= self.source.pattern_depths <= depth
        chosen = histograms.select_patterns(present[: histograms.n_patterns])
        features, hierarchy = PairFeatures.of_counts(chosen), self.hierarchy.restricted(present)
        kind = AddedTerm if self.added else CountedTerm
        return kind(features, hierarchy, self.strength, levels), present

    def sharing(self, positions: np.ndarray) -> CountedView:
        """Return the view with sums by groups of some graphs, where memory has room for them."""
        if not fit_in_memory(self.hierarchy.n_groups, len(positions)):
            return self
        features = PairFeatures.of_counts(self.histograms.select_graphs(positions))
        sums = LevelSums.of(features, self.hierarchy.group_of, self.n_jobs, positions)
        return replace(self, shared=sums)

    def truncated(self, depth: int) -> CountedView:
        """Return the view without patterns beyond a depth."""
        if not self.source.has_depths:
            return self
        kept, shared = self.source.level_depths <= depth, self.shared
        histograms, source = self.histograms.select_levels(kept), self.source.truncated(depth)
        if shared is not None:
            shared = shared.of_groups(np.unique(self.source.level_groups[kept]))
        return replace(self, source=source, histograms=histograms, shared=shared)


@dataclass(frozen=True, eq=False)
class NumbersView(TrainingView):
    """A table of numbers."""

    name: str
    table: CovariateTable
    numbers: np.ndarray  # (n_graphs, n_numbers), standardised
    on: str | None = None  # of what ids the rows of a table are found by

    kernel: type[Kernel] = Rbf

    @classmethod
    def of_columns(
        cls,
        name: str,
        graphs: GraphCollection,
        columns: Sequence[str],
        on: str | None = None,
        kernel: type[Kernel] = Rbf,
    ) -> NumbersView:
        """Return columns that training graphs hold, or that are computed from them, as a view."""
        table = CovariateTable.fit(graphs, columns)
        return cls(name, table, table.encode(graphs), on, kernel)

    def covariance(self, parameters: TermParameters) -> Term:
        return term_at(self.kernel, NumbersTerm.AMPLITUDE, parameters)

    @property
    def stored(self) -> np.ndarray:
        return self.numbers

    @property
    def data(self) -> np.ndarray:
        return self.numbers

    def fitted(self, parameters: TermParameters) -> NumbersTable:
        return NumbersTable(self.name, self.table, self.on)

    def term(self, positions: np.ndarray, depth: int | None) -> tuple[SearchedTerm, np.ndarray]:
        numbers, none = self.numbers[positions], np.empty(0, dtype=bool)
        if self.kernel is Rbf:
            return NumbersTerm(numbers), none
        return OwnKernelTerm(numbers, self.kernel), none


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Views and targets of the training graphs."""

    views: tuple[TrainingView, ...]
    targets: ScaledTargets
    codes: np.ndarray | None = None  # (n_graphs,) classes; None where numbers are predicted
    n_jobs: int = 1
    device: str = "cpu"
    max_steps: int = 100  # of each stage of the search
    tick: Tick = lambda what: None

    @property
    def depth(self) -> int:
        """The largest depth of a pattern."""
        return max(view.depth for view in self.views)

    @property
    def stored(self) -> tuple[StoredView, ...]:
        """What a model keeps of the training graphs, view by view."""
        return tuple(view.stored for view in self.views)

    @cached_property
    def copies(self) -> np.ndarray | None:
        """A number per graph that replicates share; None where no graph stands twice."""
        return replicate_numbers(view.data for view in self.views)

    def sharing(self, positions: np.ndarray) -> TrainingData:
        """Return the same with what fits to some of the graphs have in common."""
        found = replace(self, views=tuple(view.sharing(positions) for view in self.views))
        vars(found)["copies"] = self.copies  # of the same graphs
        return found

    def truncated(self, depth: int) -> TrainingData:
        """Return the same without patterns beyond a depth."""
        if depth >= self.depth:
            return self
        return replace(self, views=tuple(view.truncated(depth) for view in self.views))

    @property
    def left_out_together(self) -> np.ndarray | None:
        """Numbers that replicates of a measurement share.

        Copies of a graph with a class are observations, drawn as new graphs will be: left out
        together, they would say that the model knows nothing of graphs that it has seen.
        """
        return self.copies if self.codes is None else None

    def problem(
        self, positions: np.ndarray, depth: int | None = None
    ) -> tuple[EvidenceProblem, list[np.ndarray]]:
        """Return the problem of some graphs, and masks of the patterns it is about."""
        found = [view.term(positions, depth) for view in self.views]
        some = self.targets.select(positions)
        terms = tuple(term for term, _ in found)
        problem = EvidenceProblem(terms, some.values, 1.0 / some.weights, self.n_jobs, some.limits)
        return problem, [present for _, present in found]

    def kernel(self, parameters: EvidenceParameters) -> SumKernel:
        """Return the covariance at some parameters."""
        pairs = zip(self.views, parameters.terms, strict=True)
        return SumKernel(tuple(view.covariance(own) for view, own in pairs))

    def leave_one_out(
        self,
        parameters: EvidenceParameters,
        depth: int | None,
        graphs: np.ndarray,
        others: np.ndarray | None = None,
    ) -> LeaveOneOut:
        """Return predictions of some graphs, each from all others among these and ``others``.

        The noise variance is the most likely of those from the one in the parameters upwards:
        found on part of the data, it is too small where graphs outside contradict those inside.
        Copies of one of the graphs are none of the others.
        """
        others = graphs[:0] if others is None else others
        positions = np.concatenate([others, graphs])  # the compared last: see `ExactPosterior`
        order = np.argsort(positions)
        where = np.argsort(order)
        problem, present = self.problem(positions[order], depth)
        parameters, targets = parameters.restricted(present), self.targets.select(positions)

        def most_likely(dtype: type) -> Conditioned:
            among = problem.kernel_matrix(parameters, dtype)[where[:, None], where]
            noise, kept = parameters.noise, None
            while kept is None or noise < 1.0:
                found = Conditioned.fit(targets, among.copy(), noise, self.n_jobs)
                if kept is not None and found.log_evidence <= kept.log_evidence:
                    break
                noise, kept = _NOISE_FACTOR * noise, found
            return kept

        dtype = np.float64 if targets.limits is not None else problem.dtype_for(parameters)
        copies = None if self.copies is None else self.copies[positions]
        found: Conditioned = with_enough_digits(most_likely, dtype)
        return found.leave_one_out(self.n_jobs, copies, len(others))
