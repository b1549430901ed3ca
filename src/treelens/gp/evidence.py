"""The marginal likelihood of a Gaussian process and its gradient.

With ``K`` the sum of the terms of the covariance (:mod:`treelens.gp.terms`), ``A`` the same plus
noise on the diagonal, and P columns of targets, the objective to minimise is

    J = mean over p of [ y_p' inv(A) y_p / 2 + log|A| / 2 ] + strength |delta|² / 2 + ...

that is, up to a constant, minus the log of the marginal likelihood ("evidence") times Gaussian
priors on the deviations, on the levels' logits and, wide ones, on the coordinates of the kernels'
parameters. The gradient needs one inverse, and one pass over the lists of the patterns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treelens.gp.posterior import (
    JITTER,
    NotPositiveDefiniteError,
    cholesky_in_place,
    inverse_in_place,
    solve_factored,
)
from treelens.gp.terms import SearchedTerm, TermParameters, TermSlopes
from treelens.kernels.base import Parameter, SumKernel
from treelens.kernels.gram import mirrored
from treelens.kernels.mixture import row_blocks
from treelens.parallel import in_threads

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

NOISE = Parameter("noise", 1e-5, 1e1)  # of targets that have about unit size
USUAL_NOISE = 0.1
# Of the variance of the process: with less noise, rounding to float32 would change what is found.
LEAST_ROUNDED = 1e-4
FEWEST_ROUNDED = 200  # graphs; with fewer it gains nothing


class EvidenceParameters(NamedTuple):
    """Everything that evidence decides, in the coordinates in which it is searched."""

    terms: tuple[TermParameters, ...]
    log_noise: float

    @property
    def noise(self) -> float:
        """The variance of the noise."""
        return NOISE.value(self.log_noise)

    def widened(self, kept: list[np.ndarray]) -> EvidenceParameters:
        """Return these parameters of some patterns, by masks for each term, as those of all."""
        terms = (each.widened(mask) for each, mask in zip(self.terms, kept, strict=True))
        return self._replace(terms=tuple(terms))

    def restricted(self, kept: list[np.ndarray]) -> EvidenceParameters:
        """Return the parameters of the patterns of masks, the opposite of :meth:`widened`."""
        terms = (
            each._replace(deviations=each.deviations[mask])
            for each, mask in zip(self.terms, kept, strict=True)
        )
        return self._replace(terms=tuple(terms))

    def with_scales_of(self, other: EvidenceParameters) -> EvidenceParameters:
        """Return these weights with the scales and the noise of other parameters."""
        terms = (
            own._replace(scales=its.scales)
            for own, its in zip(self.terms, other.terms, strict=True)
        )
        return EvidenceParameters(tuple(terms), other.log_noise)

    def rescaled(self, of_amplitude: float, of_noise: float) -> EvidenceParameters:
        """Return these parameters with amplitudes and noise variance times two factors."""
        terms = []
        for own in self.terms:
            scales = own.scales.copy()
            scales[-1] += np.log(of_amplitude)
            terms.append(own._replace(scales=scales))
        log_noise = float(np.clip(self.log_noise + np.log(of_noise), *NOISE.bounds))
        return EvidenceParameters(tuple(terms), log_noise)

    @classmethod
    def mean(cls, several: list[EvidenceParameters]) -> EvidenceParameters:
        """Return the mean, coordinate by coordinate."""
        terms = (
            TermParameters(*(np.mean(arrays, axis=0) for arrays in zip(*each, strict=True)))
            for each in zip(*(found.terms for found in several), strict=True)
        )
        return cls(tuple(terms), float(np.mean([found.log_noise for found in several])))


@dataclass(frozen=True, eq=False)
class EvidenceProblem:
    """Training graphs, targets and priors."""

    terms: tuple[SearchedTerm, ...]
    targets: np.ndarray  # (n_graphs, n_columns) centred, and of about unit size
    noise_factors: np.ndarray  # (n_graphs,) relative to the common one: 1 / sample weight
    n_jobs: int = 1
    limits: np.ndarray | None = None  # (n_graphs,) as in ScaledTargets

    @property
    def n_graphs(self) -> int:
        return len(self.targets)

    @property
    def start(self) -> EvidenceParameters:
        """Uniform weights, and scales at which no part of the kernels is flat."""
        terms = tuple(term.start for term in self.terms)
        return EvidenceParameters(terms, NOISE.coordinate(USUAL_NOISE))

    @property
    def n_scales(self) -> int:
        """How many coordinates the kernels and the noise have; the noise is the last."""
        return sum(len(term.scale_parameters) for term in self.terms) + 1

    @property
    def scale_bounds(self) -> np.ndarray:
        """The lowest and the highest of these, shape (n_scales, 2)."""
        every = [each for term in self.terms for each in term.scale_parameters]
        return np.array([each.bounds for each in (*every, NOISE)])

    def dtype_for(self, parameters: EvidenceParameters) -> type:
        """float32 where its rounding changes no result, else float64.

        It changes the covariance by some 1e-7 of the variance, and the objective by half of
        ``alpha' change alpha``. As ``|alpha|²`` is about ``n / noise``, this is far less than what
        ends a search, but where the noise is tiny.
        """
        noise = parameters.noise * float(self.noise_factors.min())
        enough = noise >= LEAST_ROUNDED * self.kernel(parameters).variance
        return np.float32 if enough and self.n_graphs >= FEWEST_ROUNDED else np.float64

    def kernel(self, parameters: EvidenceParameters) -> SumKernel:
        """Return the covariance at some parameters."""
        pairs = zip(self.terms, parameters.terms, strict=True)
        return SumKernel(tuple(term.term(own) for term, own in pairs))

    def vector(self, parameters: EvidenceParameters, learned: str) -> np.ndarray:
        """Return the numbers that are searched: scales, with the levels', with all weights."""
        parts = [*(own.scales for own in parameters.terms), np.array([parameters.log_noise])]
        if learned != "uniform":
            parts += [own.level_logits for own in parameters.terms]
        if learned == "branches":
            pairs = zip(self.terms, parameters.terms, strict=True)
            parts += [own.deviations[: term.n_free] for term, own in pairs]
        return np.concatenate(parts)

    def replaced(
        self, parameters: EvidenceParameters, vector: np.ndarray, learned: str
    ) -> EvidenceParameters:
        """Return parameters with the numbers that are searched taken from ``vector``."""
        sizes = [len(term.scale_parameters) for term in self.terms] + [1]
        sizes += [term.n_groups for term in self.terms] if learned != "uniform" else []
        sizes += [term.n_free for term in self.terms] if learned == "branches" else []
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        n, terms = len(self.terms), []
        for k, (term, own) in enumerate(zip(self.terms, parameters.terms, strict=True)):
            new = own._replace(scales=parts[k])
            if learned != "uniform":
                new = new._replace(level_logits=parts[n + 1 + k])
            if learned == "branches":
                fixed = own.deviations[term.n_free :]
                new = new._replace(deviations=np.concatenate([parts[2 * n + 1 + k], fixed]))
            terms.append(new)
        return EvidenceParameters(tuple(terms), float(parts[n][0]))

    def gradient(
        self, slopes: list[TermSlopes], parameters: EvidenceParameters, by_log_noise: float
    ) -> np.ndarray:
        """Return slopes in the order of :meth:`vector`, those of the priors added."""
        triples = zip(self.terms, slopes, parameters.terms, strict=True)
        found = [term.with_prior(own, at) for term, own, at in triples]
        by_log_noise += (parameters.log_noise - NOISE.coordinate(USUAL_NOISE)) / NOISE.spread**2
        return np.concatenate(
            [
                *(each.scales for each in found),
                [by_log_noise],
                *(each.level_logits for each in found),
                *(each.deviations for each in found),
            ]
        )

    def prior_value(self, parameters: EvidenceParameters) -> float:
        """Minus the log of the priors, up to a constant."""
        pairs = zip(self.terms, parameters.terms, strict=True)
        off = (parameters.log_noise - NOISE.coordinate(USUAL_NOISE)) / NOISE.spread
        return 0.5 * off**2 + sum(term.prior_value(own) for term, own in pairs)

    def upper_kernel(
        self, parameters: EvidenceParameters, dtype: DTypeLike = np.float64
    ) -> np.ndarray:
        """The upper triangle of covariances among the graphs, without noise: (n_graphs, n_graphs).

        What lies below the diagonal has no meaning.
        """
        matrix = None
        for term, own in zip(self.terms, parameters.terms, strict=True):
            matrix = term.added_to(matrix, own, self.n_jobs, dtype)
        assert matrix is not None
        return matrix

    def kernel_matrix(
        self, parameters: EvidenceParameters, dtype: DTypeLike = np.float64
    ) -> np.ndarray:
        """Return covariances among the graphs, without noise, shape (n_graphs, n_graphs)."""
        return mirrored(self.upper_kernel(parameters, dtype), self.n_jobs)


class Evidence:
    """Objective and gradient of one problem, as a function of parameters and of what is learned."""

    def __init__(self, problem: EvidenceProblem, dtype: DTypeLike = np.float64) -> None:
        self.problem = problem
        self._pairs = [term.pairs(problem.n_jobs, dtype) for term in problem.terms]
        self._matrix = np.zeros((problem.n_graphs, problem.n_graphs), dtype)

    def __call__(self, parameters: EvidenceParameters, learned: str) -> tuple[float, np.ndarray]:
        """Return the objective ``J`` and its gradient in the parameters that are learned."""
        problem = self.problem
        value, factor, alpha = self._factored(parameters, learned)
        inverse = inverse_in_place(factor, problem.n_jobs)
        on_diagonal = 0.5 * (np.diagonal(inverse).astype(float) - (alpha**2).mean(axis=1))  # (n,)
        pull, slopes = pull_of(inverse, alpha, problem.n_jobs), []
        kernel, last = problem.kernel(parameters), len(self._pairs) - 1
        for k, (pairs, own) in enumerate(zip(self._pairs, parameters.terms, strict=True)):
            found = pairs.slopes(own, pull, learned, overwrite=k == last)
            amplitude = kernel.terms[k].amplitude
            found.scales[-1] += amplitude * (1.0 + JITTER) * float(on_diagonal.sum())
            slopes.append(found)
        by_log_noise = parameters.noise * float(on_diagonal @ problem.noise_factors)
        return value, problem.gradient(slopes, parameters, by_log_noise)

    def value(self, parameters: EvidenceParameters) -> float:
        """Return the objective alone, for a third of the work."""
        return self._factored(parameters, "uniform")[0]

    def _factored(
        self, parameters: EvidenceParameters, learned: str
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """The objective, the Cholesky factor of the covariance, and ``inv(A) y``."""
        problem = self.problem
        factor = cholesky_in_place(self._covariance(parameters, learned), problem.n_jobs)
        log_determinant = 2.0 * np.log(np.diagonal(factor).astype(float)).sum()
        alpha = solve_factored(factor, problem.targets).astype(float)  # (n, n_columns)
        fit = float((problem.targets * alpha).sum()) / problem.targets.shape[1]
        return 0.5 * (fit + log_determinant) + problem.prior_value(parameters), factor, alpha

    def _covariance(self, parameters: EvidenceParameters, learned: str) -> np.ndarray:
        """The upper triangle of the kernel matrix with noise on its diagonal."""
        problem, matrix = self.problem, self._matrix
        matrix.fill(0.0)
        for pairs, own in zip(self._pairs, parameters.terms, strict=True):
            pairs.add_to(matrix, own, learned)
        variance = problem.kernel(parameters).variance * (1.0 + JITTER)
        np.fill_diagonal(matrix, variance + parameters.noise * problem.noise_factors)
        return matrix


class RoundedEvidence:
    """As :class:`Evidence`, in float32 where that is good enough: twice as fast.

    ``kind`` makes the evidence of a problem in a type of numbers.
    """

    def __init__(self, problem: Any, kind: Callable[[Any, Any], Any] = Evidence) -> None:
        self.problem, self._kind = problem, kind
        self._by_dtype: dict[Any, Any] = {}

    def __call__(self, parameters: Any, learned: str) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient in the parameters that are learned."""
        return with_enough_digits(
            lambda dtype: self._in(dtype)(parameters, learned), self.problem.dtype_for(parameters)
        )

    def value(self, parameters: Any) -> float:
        """Return the objective alone."""
        return with_enough_digits(
            lambda dtype: self._in(dtype).value(parameters), self.problem.dtype_for(parameters)
        )

    def _in(self, dtype: type) -> Any:
        if dtype not in self._by_dtype:
            self._by_dtype[dtype] = self._kind(self.problem, dtype)
        return self._by_dtype[dtype]


def with_enough_digits(work: Callable[[type], Any], dtype: type) -> Any:
    """Return ``work(dtype)``, in float64 where rounding leaves no positive definite matrix."""
    try:
        return work(dtype)
    except NotPositiveDefiniteError:
        if dtype is np.float64:
            raise
        return work(np.float64)


def pull_of(inverse: np.ndarray, alpha: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Overwrite the upper triangle of an inverse covariance with slopes in the covariances.

    For a pair ``i < j`` the slope of the objective, both places in the matrix counted, is
    ``inverse_ij - mean over columns of alpha_i alpha_j``; ``alpha`` (n, n_columns) is
    ``inverse @ targets``. Blocks of rows are zero at and below the diagonal.
    """

    scaled = alpha.astype(inverse.dtype)

    def pull(rows: slice) -> None:
        block = inverse[rows, rows.start :]
        block -= (scaled[rows] / alpha.shape[1]) @ scaled[rows.start :].T
        n_rows = rows.stop - rows.start
        np.copyto(block[:, :n_rows], 0.0, where=np.tri(n_rows, dtype=bool))

    in_threads(pull, row_blocks(*inverse.shape), n_jobs)
    return inverse
