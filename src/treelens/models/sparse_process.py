"""What a Gaussian process believes that has seen all graphs, but through landmarks.

The process is replaced by its best guess from m of the training graphs (the deterministic training
conditional; Quiñonero-Candela and Rasmussen 2005), which takes time ``n m²`` and memory ``m²``:
graphs come in blocks, and only sums over landmarks are kept of them
(:class:`treelens.learning.sparse_evidence.LandmarkSums`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from treelens.kernels.mixture import MixtureKernel
from treelens.learning.factor import solve_in_tiles
from treelens.learning.sparse_evidence import LandmarkSums, block_slices
from treelens.models.posterior import LeaveOneOut
from treelens.patterns.features import Features, select_features

# Some graphs, and the kernel between them and the landmarks, shape (b, m).
KernelBlock = tuple[slice, np.ndarray]


@dataclass(frozen=True, eq=False)
class LandmarkPosterior:
    """Means and variances through landmarks: ``kernel`` is always between graphs and landmarks.

    Attributes
    ----------
    coefficients : ndarray, shape (m, n_columns)
    precision_gain : ndarray, shape (m, m)
        ``inv(K_mm) - inv(K_mm + K_mn inv(noise) K_nm)``.
    """

    coefficients: np.ndarray
    precision_gain: np.ndarray

    @classmethod
    def fit(
        cls,
        among: np.ndarray,
        blocks: Callable[[], Iterable[KernelBlock]],
        noise: np.ndarray,
        targets: np.ndarray,
        n_jobs: int = 1,
    ) -> tuple[LandmarkPosterior, LeaveOneOut]:
        """Condition on targets, and say each of them from all others.

        Parameters
        ----------
        among : ndarray, shape (m, m)
            The kernel among landmarks; overwritten.
        blocks : callable
            Gives all training graphs, block by block, each time it is called.
        noise : ndarray, shape (n,)
            Variances.
        targets : ndarray, shape (n, n_columns)
        n_jobs : int
        """
        amplitude = float(among[0, 0])  # of every graph with itself
        sums = LandmarkSums.gather(among, blocks(), noise, targets, n_jobs)
        gain = sums.outside(np.eye(len(among)) - sums.inner_inverse(n_jobs), n_jobs)
        fitted = cls(sums.coefficients(), 0.5 * (gain + gain.T))
        left_out = _leave_one_out(sums, blocks(), amplitude, noise, targets, n_jobs)
        return fitted, left_out

    def reduction(self, kernel: np.ndarray) -> np.ndarray:
        """How much the training graphs take off the variance, from ``kernel`` (n_new, m)."""
        return np.maximum(((kernel @ self.precision_gain) * kernel).sum(axis=1), 0.0)


def _leave_one_out(
    sums: LandmarkSums,
    blocks: Iterable[KernelBlock],
    amplitude: float,
    noise: np.ndarray,
    targets: np.ndarray,
    n_jobs: int,
) -> LeaveOneOut:
    """In closed form, the landmarks staying where they are."""
    mean, variance = np.empty_like(targets), np.empty(len(targets))
    for where, kernel in blocks:
        half = solve_in_tiles(sums.factor, kernel.T, transposed=True, n_jobs=n_jobs)  # (m, b)
        inner = solve_in_tiles(sums.inner_factor, half, transposed=True, n_jobs=n_jobs)
        # Of the inverse of Q + N: its diagonal, and its product with the targets.
        diagonal = 1.0 / noise[where] - (inner**2).sum(axis=0) / noise[where] ** 2
        alpha = (targets[where] - half.T @ sums.inner_solution) / noise[where, None]
        mean[where] = targets[where] - alpha / diagonal[:, None]
        # What landmarks cannot tell of a graph is left in its variance, as it is in predictions.
        untold = np.maximum(amplitude - (half**2).sum(axis=0), 0.0)
        variance[where] = 1.0 / diagonal + untold
    return LeaveOneOut(mean, variance)


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """Training graphs under a kernel, ready to be looked at through any landmarks.

    Attributes
    ----------
    kernel : MixtureKernel
    graphs : Features
        Of all training graphs.
    noise : ndarray, shape (n,)
        Variances.
    targets : ndarray, shape (n, n_columns)
    n_jobs : int
    """

    kernel: MixtureKernel
    graphs: Features
    noise: np.ndarray
    targets: np.ndarray
    n_jobs: int = 1

    def through(self, landmarks: np.ndarray) -> tuple[LandmarkPosterior, LeaveOneOut]:
        """The posterior through the graphs at some positions."""
        anchors = select_features(self.graphs, landmarks)
        among = self.kernel.matrix(anchors, anchors, self.n_jobs)
        return LandmarkPosterior.fit(
            among, lambda: self._rows(anchors), self.noise, self.targets, self.n_jobs
        )

    def _rows(self, anchors: Features) -> Iterable[KernelBlock]:
        for where in block_slices(len(self.targets)):
            block = select_features(self.graphs, np.arange(where.start, where.stop))
            yield where, self.kernel.matrix(block, anchors, self.n_jobs)


def hard_to_say(fit: LandmarkFit, first: np.ndarray, n_landmarks: int) -> np.ndarray:
    """Landmarks, ascending: ``first``, and the graphs that are hardest to say through those.

    Landmarks spread evenly (a pivoted factor, leverage) are no better than any where nearly every
    graph adds a direction of its own, as under these kernels; what the mean lacks is where its
    errors are. ``first`` are to be half of them, drawn by chance.

    Parameters
    ----------
    fit : LandmarkFit
    first : ndarray of int
    n_landmarks : int
        How many in all.
    """
    _, left_out = fit.through(first)
    error = ((fit.targets - left_out.mean) ** 2).sum(axis=1)
    error[first] = -1.0
    hardest = np.argsort(-error, kind="stable")[: max(n_landmarks - len(first), 0)]
    return np.sort(np.concatenate([first, hardest]))
