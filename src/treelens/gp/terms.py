"""Terms of the covariance while their parameters are searched: values and slopes on one problem.

A term is a kernel on one view of the training graphs, times an amplitude. Where the view counts
patterns, their weights are searched, too: ``w_v = beta_level(v) * exp(theta_v)``, with one ``beta``
per group of levels, a softmax of logits times their number, and ``theta_v`` the sum of the
deviations of ``v`` and all its ancestors, so that a deviation moves a whole branch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import scipy

from treelens.gp.levels import LevelSums, PatternHierarchy, SplitSums
from treelens.kernels.base import Kernel, Parameter, Term
from treelens.kernels.mixture import MixtureBlock, TanimotoL1, row_blocks
from treelens.kernels.rbf import Rbf
from treelens.parallel import in_threads
from treelens.patterns.histograms import Features, PairFeatures

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# Of the prior on the deviations of patterns: their variance is one over it.
PRIOR_STRENGTH = 30.0
# Standard deviation of the prior on the levels' logits. With 2, 100 to 600 graphs were fitted too
# well, most of all those with classes, whose likelihood is that of numbers.
LOGIT_SPREAD = 0.5
# Graphs of which slopes use again what the kernel values were made of: six numbers a pair.
_KEPT_UP_TO = 1024


class TermParameters(NamedTuple):
    """What is searched of one term, in the coordinates in which it is searched."""

    scales: np.ndarray  # (n_scales,) of the kernel's parameters, then of the amplitude
    level_logits: np.ndarray  # (n_groups,) b; empty where nothing is counted
    deviations: np.ndarray  # (n_patterns,) delta times the root of the prior's strength

    def widened(self, kept: np.ndarray) -> TermParameters:
        """Return these parameters of some patterns as those of all: the others do not deviate."""
        deviations = np.zeros(len(kept))
        deviations[kept] = self.deviations
        return self._replace(deviations=deviations)


class TermSlopes(NamedTuple):
    """Slopes of the objective in the parameters of a term, priors left out."""

    scales: np.ndarray
    level_logits: np.ndarray  # empty where they are not learned
    deviations: np.ndarray  # of the patterns that may deviate; empty where they are not learned


@dataclass(frozen=True, eq=False)
class SearchedTerm(ABC):
    """A term as a search sees it: the training graphs in one view, and what is usual."""

    KERNEL: ClassVar[type[Kernel]]
    AMPLITUDE: ClassVar[Parameter]
    USUAL_AMPLITUDE: ClassVar[float]

    n_groups: ClassVar[Any] = 0  # of levels of patterns that share a weight
    n_patterns: ClassVar[Any] = 0
    n_free: ClassVar[Any] = 0  # patterns, the first, that may deviate

    @property
    @abstractmethod
    def usual_kernel(self) -> Kernel:
        """The kernel that a search begins with."""

    @abstractmethod
    def pairs(self, n_jobs: int, dtype: DTypeLike = np.float64) -> TermPairs:
        """Return what computes values and slopes, again and again, in numbers of ``dtype``."""

    def added_to(
        self, matrix: np.ndarray | None, parameters: TermParameters, n_jobs: int, dtype: DTypeLike
    ) -> np.ndarray:
        """Add covariances to the upper triangle of a matrix, once; None stands for zeros."""
        pairs = self.pairs(n_jobs, dtype)
        if matrix is None:
            matrix = np.zeros((self.n_graphs, self.n_graphs), dtype)
        pairs.add_to(matrix, parameters, "uniform")
        return matrix

    @property
    @abstractmethod
    def n_graphs(self) -> int:
        """How many graphs there are."""

    @property
    def scale_parameters(self) -> tuple[Parameter, ...]:
        return (*self.KERNEL.PARAMETERS, self.AMPLITUDE)

    @cached_property
    def usual_scales(self) -> np.ndarray:
        """Where a search begins, and the middle of the prior, shape (n_scales,)."""
        amplitude = self.AMPLITUDE.coordinate(self.USUAL_AMPLITUDE)
        return np.append(self.usual_kernel.coordinates, amplitude)

    @property
    def start(self) -> TermParameters:
        """Usual scales and uniform weights."""
        return TermParameters(
            self.usual_scales.copy(), np.zeros(self.n_groups), np.zeros(self.n_patterns)
        )

    def term(self, parameters: TermParameters) -> Term:
        """Return the term at some parameters."""
        return term_at(self.KERNEL, self.AMPLITUDE, parameters)

    def prior_value(self, parameters: TermParameters) -> float:
        """Minus the log of the Gaussian priors, up to a constant."""
        logits, deviations = parameters.level_logits / LOGIT_SPREAD, parameters.deviations
        off = (parameters.scales - self.usual_scales) / self._spreads
        return 0.5 * float(deviations @ deviations + logits @ logits + off @ off)

    def with_prior(self, slopes: TermSlopes, parameters: TermParameters) -> TermSlopes:
        """Add the slopes of the priors."""
        scales = slopes.scales + (parameters.scales - self.usual_scales) / self._spreads**2
        logits, deviations = slopes.level_logits, slopes.deviations
        if len(logits):
            logits = logits + parameters.level_logits / LOGIT_SPREAD**2
        if len(deviations):
            deviations = deviations + parameters.deviations[: self.n_free]
        return TermSlopes(scales, logits, deviations)

    @cached_property
    def _spreads(self) -> np.ndarray:
        return np.array([each.spread for each in self.scale_parameters])


def term_at(kernel: type[Kernel], amplitude: Parameter, parameters: TermParameters) -> Term:
    """Return a kernel with its amplitude at some parameters."""
    found = kernel.at(parameters.scales[:-1])
    return Term(found, amplitude.value(float(parameters.scales[-1])))


class TermPairs(ABC):
    """Covariances of one term among the training graphs, with room to compute them in."""

    @abstractmethod
    def add_to(self, matrix: np.ndarray, parameters: TermParameters, learned: str) -> None:
        """Add covariances to the upper triangle of ``matrix``, (n_graphs, n_graphs)."""

    @abstractmethod
    def slopes(
        self, parameters: TermParameters, pull: np.ndarray, learned: str, overwrite: bool
    ) -> TermSlopes:
        """Return slopes, those in the amplitude from pairs of different graphs alone.

        ``pull`` (n_graphs, n_graphs) are the slopes in the covariances of pairs, above the
        diagonal, both places in the matrix counted; zero elsewhere in the blocks of
        :func:`row_blocks`. With ``overwrite`` nobody needs it afterwards. The parameters are
        those of the last call of :meth:`add_to`.
        """


# --- patterns that are counted -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountedTerm(SearchedTerm):
    """Weighted counts of patterns, under the mixture of Tanimoto similarity and L1 distance."""

    features: PairFeatures  # of counts; with `levels` only those of patterns that may deviate
    hierarchy: PatternHierarchy
    strength: float = PRIOR_STRENGTH
    levels: LevelSums | None = None  # of all groups, where they are known already

    KERNEL: ClassVar = TanimotoL1
    AMPLITUDE: ClassVar = Parameter("amplitude", 1e-3, 1e3)
    USUAL_AMPLITUDE: ClassVar = 1.0

    @property
    def n_graphs(self) -> int:
        return self.features.n_graphs

    @property
    def n_groups(self) -> int:
        return self.hierarchy.n_groups

    @property
    def n_patterns(self) -> int:
        return self.hierarchy.n_patterns

    @property
    def n_free(self) -> int:
        return self.hierarchy.n_free

    @property
    def usual_kernel(self) -> Kernel:
        counted = self.features.diagonal()
        if self.levels is not None:
            counted = (self.hierarchy.group_shares > 0)[self.levels.groups] @ self.levels.diagonals
        return TanimotoL1.usual(Features(self.features, counted))

    def weights(self, parameters: TermParameters) -> np.ndarray:
        """Return the weight of every pattern, shape (n_patterns,)."""
        deviations = parameters.deviations / np.sqrt(self.strength)
        level = self.hierarchy.level_weights(parameters.level_logits)[self.hierarchy.level_of]
        return level * np.exp(self.hierarchy.sum_down(deviations))

    def pairs(self, n_jobs: int, dtype: DTypeLike = np.float64) -> CountedPairs:
        return CountedPairs(self, n_jobs, dtype)

    def added_to(
        self, matrix: np.ndarray | None, parameters: TermParameters, n_jobs: int, dtype: DTypeLike
    ) -> np.ndarray:
        pairs = CountedPairs(self, n_jobs, dtype, keep=False)
        matrix = pairs.sums if matrix is None else matrix
        pairs.add_to(matrix, parameters, "uniform")
        return matrix


class AddedTerm(CountedTerm):
    """Patterns next to those of the first view, which the prior prefers where data are few."""

    AMPLITUDE: ClassVar = Parameter("amplitude", 1e-6, 1e3, spread=1.0)
    USUAL_AMPLITUDE: ClassVar = 0.1


class CountedPairs(TermPairs):
    """Sums of minima among the training graphs, summed again where weights change."""

    def __init__(self, term: CountedTerm, n_jobs: int, dtype: DTypeLike, keep: bool = True) -> None:
        n = term.features.n_graphs
        self.term, self.n_jobs = term, n_jobs
        self.sums = np.zeros((n, n), dtype)  # upper triangle
        self.diagonal = np.zeros(n, dtype)
        self._weights = np.empty(0)  # that sums and diagonal are made with
        self._layouts: dict[tuple[bool, bool], SplitSums] = {}
        self._kept: dict[int, MixtureBlock] | None = {} if keep and n <= _KEPT_UP_TO else None
        self._slopes: np.ndarray | None = None  # in the sums, where `pull` must be left as it is

    def add_to(self, matrix: np.ndarray, parameters: TermParameters, learned: str) -> None:
        self.sum_for(parameters, learned)
        kernel, amplitude = self._kernel(parameters)

        def add(rows: slice) -> None:
            values = self._block(kernel, rows).values(kernel, amplitude)
            if matrix is self.sums:  # in the place of the sums, which nobody needs afterwards
                matrix[rows, rows.start :] = values
            else:
                matrix[rows, rows.start :] += values

        in_threads(add, row_blocks(*matrix.shape), self.n_jobs)

    def sum_for(self, parameters: TermParameters, learned: str) -> None:
        """Compute the sums of minima, unless they are those of the same weights."""
        weights = self.term.weights(parameters)
        if not np.array_equal(weights, self._weights):
            layout = self._layout(learned, parameters)
            layout.sum_into(self.sums, weights, parameters.level_logits)
            self._weights, self.diagonal = weights, np.diagonal(self.sums).copy()

    def _layout(self, learned: str, parameters: TermParameters) -> SplitSums:
        deviating = learned == "branches" or bool(parameters.deviations.any())
        key = deviating, learned != "uniform"
        if key not in self._layouts:
            term = self.term
            self._layouts[key] = SplitSums.of(
                term.features, term.hierarchy, term.levels, *key, self.n_jobs
            )
        return self._layouts[key]

    def _kernel(self, parameters: TermParameters) -> tuple[TanimotoL1, float]:
        amplitude = self.term.AMPLITUDE.value(float(parameters.scales[-1]))
        return TanimotoL1.at(parameters.scales[:-1]), amplitude

    def _block(self, kernel: TanimotoL1, rows: slice) -> MixtureBlock:
        """Return the parts of some rows, kept where there is room."""
        sums, right = self.sums[rows, rows.start :], self.diagonal[rows.start :]
        before = None if self._kept is None else self._kept.get(rows.start)
        block = MixtureBlock.of(kernel, sums, self.diagonal[rows], right, before)
        if self._kept is not None:
            self._kept[rows.start] = block
        return block

    def slopes(
        self, parameters: TermParameters, pull: np.ndarray, learned: str, overwrite: bool
    ) -> TermSlopes:
        (kernel, amplitude), own = self._kernel(parameters), np.zeros(len(pull))
        out = pull if overwrite or learned == "uniform" else self._room()

        def slopes_of(rows: slice) -> Any:
            block = None if self._kept is None else self._kept.get(rows.start)
            block = self._block(kernel, rows) if block is None else block
            here = rows, slice(rows.start, None)
            found = block.slopes(kernel, amplitude, pull[here])
            if learned == "uniform":
                return found, None
            return found, block.sum_slopes(kernel, amplitude, out[here])

        blocks, scales = row_blocks(*pull.shape), np.zeros(4)
        for rows, (found, in_own) in zip(
            blocks, in_threads(slopes_of, blocks, self.n_jobs), strict=True
        ):
            scales += np.append(found.parameters, found.log_amplitude)
            if in_own is not None:
                own[rows] += in_own[0]
                own[rows.start :] += in_own[1]
        if learned == "uniform":
            return TermSlopes(scales, np.empty(0), np.empty(0))
        by_weight, by_group = self._layout(learned, parameters).slopes(
            out, own, self._weights, parameters.level_logits
        )
        return TermSlopes(
            scales, *weight_slopes(self.term, parameters, by_weight, learned, by_group)
        )

    def _room(self) -> np.ndarray:
        if self._slopes is None:
            self._slopes = np.zeros_like(self.sums)
        return self._slopes


def weight_slopes(
    term: CountedTerm,
    parameters: TermParameters,
    by_log_weight: np.ndarray,
    learned: str,
    by_group: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes in the groups' logits and, for branches, in the deviations.

    ``by_log_weight`` are those in the logarithms of the weights of the first patterns,
    ``by_group`` (n_groups,) those in the weights of groups through all other patterns.
    """
    hierarchy, n = term.hierarchy, len(by_log_weight)
    by_group = by_group + np.bincount(hierarchy.group_of[:n], by_log_weight, hierarchy.n_groups)
    by_logit = by_group - scipy.special.softmax(parameters.level_logits) * by_group.sum()
    if learned == "depths":
        return by_logit, np.empty(0)
    by_pattern = np.zeros(hierarchy.n_patterns)
    by_pattern[: hierarchy.n_free] = by_log_weight[: hierarchy.n_free]
    by_deviation = hierarchy.sum_up(by_pattern) / np.sqrt(term.strength)
    return by_logit, by_deviation[: hierarchy.n_free]


# --- numbers -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NumbersTerm(SearchedTerm):
    """Rows of standardised numbers under an RBF kernel."""

    numbers: np.ndarray  # (n_graphs, n_numbers)

    KERNEL: ClassVar = Rbf
    # The prior prefers patterns where data are few: numbers say nothing of where an effect is.
    AMPLITUDE: ClassVar = Parameter("amplitude", 1e-6, 1e3, spread=1.0)
    USUAL_AMPLITUDE: ClassVar = 0.1

    @property
    def usual_kernel(self) -> Kernel:
        return Rbf.usual(self.numbers)

    @property
    def n_graphs(self) -> int:
        return len(self.numbers)

    def pairs(self, n_jobs: int, dtype: DTypeLike = np.float64) -> NumbersPairs:
        return NumbersPairs(self, n_jobs, dtype)

    def added_to(
        self, matrix: np.ndarray | None, parameters: TermParameters, n_jobs: int, dtype: DTypeLike
    ) -> np.ndarray:
        kernel, n = Rbf.at(parameters.scales[:-1]), self.n_graphs
        amplitude = self.AMPLITUDE.value(float(parameters.scales[-1]))
        found = np.zeros((n, n), dtype) if matrix is None else matrix

        def add(rows: slice) -> None:
            squares = self.squares(rows)
            found[rows, rows.start :] += amplitude * kernel.of_squares(squares, out=squares)

        in_threads(add, row_blocks(n, n), n_jobs)
        return found

    def squares(self, rows: slice) -> np.ndarray:
        """Return squared distances of some rows from these and all later ones."""
        left, right = self.numbers[rows], self.numbers[rows.start :]
        found = left @ (-2.0 * right.T)
        found += self._norms[rows, None]
        found += self._norms[rows.start :]
        return np.maximum(found, 0.0, out=found)

    @cached_property
    def _norms(self) -> np.ndarray:
        return np.einsum("ij,ij->i", self.numbers, self.numbers)


class NumbersPairs(TermPairs):
    """Squared distances among the training graphs, and the kernel values they become."""

    def __init__(self, term: NumbersTerm, n_jobs: int, dtype: DTypeLike) -> None:
        self.term, self.n_jobs = term, n_jobs
        self.squares = np.zeros((term.n_graphs, term.n_graphs), dtype)  # in the same blocks
        for rows in row_blocks(*self.squares.shape):
            self.squares[rows, rows.start :] = term.squares(rows)
        self._covariances = np.zeros_like(self.squares)  # above the diagonal, in blocks of rows

    def add_to(self, matrix: np.ndarray, parameters: TermParameters, learned: str) -> None:
        kernel = Rbf.at(parameters.scales[:-1])
        amplitude = self.term.AMPLITUDE.value(float(parameters.scales[-1]))

        def add(rows: slice) -> None:
            here = rows, slice(rows.start, None)
            own = kernel.of_squares(self.squares[here], out=self._covariances[here])
            own *= amplitude
            matrix[here] += own

        in_threads(add, row_blocks(*matrix.shape), self.n_jobs)

    def slopes(
        self, parameters: TermParameters, pull: np.ndarray, learned: str, overwrite: bool
    ) -> TermSlopes:
        length = Rbf.at(parameters.scales[:-1]).length

        def slopes_of(rows: slice) -> np.ndarray:
            here = rows, slice(rows.start, None)
            own = self._covariances[here] * pull[here]
            return np.array([float(np.vdot(own, self.squares[here])) / length**2, own.sum()])

        found = in_threads(slopes_of, row_blocks(*pull.shape), self.n_jobs)
        return TermSlopes(np.sum(found, axis=0), np.empty(0), np.empty(0))
