"""What a Gaussian process believes that has seen all graphs, but through landmarks.

The process is replaced by its best guess from m of the training graphs (the deterministic training
conditional; Quiñonero-Candela and Rasmussen 2005), which takes time ``n m²`` and memory ``m²``:
graphs come in blocks, and only sums over landmarks are kept of them
(:class:`treelens.gp.sparse_evidence.LandmarkSums`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from treelens.gp.factor import multiply, quadratic_forms, solve_in_tiles
from treelens.gp.posterior import LeaveOneOut
from treelens.gp.sparse_evidence import LandmarkSums, block_slices
from treelens.kernels.mixture import MixtureKernel
from treelens.patterns.features import Features, select_features

_LEAST_LEFT = 1e-9  # of a graph's target that the others must say: rounding must not turn its sign
_ROUNDS = 3  # in which landmarks are added to those drawn by chance
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
        landmarks: np.ndarray,
        among: np.ndarray,
        blocks: Callable[[], Iterable[KernelBlock]],
        noise: np.ndarray,
        targets: np.ndarray,
        n_jobs: int = 1,
    ) -> tuple[LandmarkPosterior, LeaveOneOut]:
        """Condition on targets, and say each of them from all others.

        Parameters
        ----------
        landmarks : ndarray of int, shape (m,)
            Where they stand among the graphs.
        among : ndarray, shape (m, m)
            The kernel among landmarks.
        blocks : callable
            Gives all training graphs, block by block, each time it is called.
        noise : ndarray, shape (n,)
            Variances.
        targets : ndarray, shape (n, n_columns)
        n_jobs : int
        """
        sums = LandmarkSums.gather(among.copy(), blocks(), noise, targets, n_jobs)
        return cls.of_sums(sums, landmarks, among, blocks(), noise, targets, n_jobs)

    @classmethod
    def of_sums(
        cls,
        sums: LandmarkSums,
        landmarks: np.ndarray,
        among: np.ndarray,
        blocks: Iterable[KernelBlock],
        noise: np.ndarray,
        targets: np.ndarray,
        n_jobs: int = 1,
    ) -> tuple[LandmarkPosterior, LeaveOneOut]:
        """The same from sums that are ready; the rest is that of the graphs to leave out."""
        amplitude = float(among[0, 0])  # of every graph with itself
        unit, inverse = np.eye(len(among)), sums.inner_inverse(n_jobs)
        gain = sums.outside(unit - inverse, n_jobs)
        fitted = cls(sums.coefficients(), 0.5 * (gain + gain.T))
        left_out = _leave_one_out(sums, blocks, amplitude, noise, targets, n_jobs)
        joint = sums.outside(inverse, n_jobs)
        own = _without_landmark(fitted, joint, among, noise[landmarks], targets[landmarks], n_jobs)
        left_out.mean[landmarks], left_out.variance[landmarks] = own
        return fitted, left_out

    def reduction(self, kernel: np.ndarray) -> np.ndarray:
        """How much the training graphs take off the variance, from ``kernel`` (n_new, m)."""
        return np.maximum(quadratic_forms(self.precision_gain, kernel), 0.0)


def _leave_one_out(
    sums: LandmarkSums,
    blocks: Iterable[KernelBlock],
    amplitude: float,
    noise: np.ndarray,
    targets: np.ndarray,
    n_jobs: int,
) -> LeaveOneOut:
    """In closed form, the landmarks staying what they are."""
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


def _without_landmark(
    fitted: LandmarkPosterior,
    joint: np.ndarray,
    among: np.ndarray,
    noise: np.ndarray,
    targets: np.ndarray,
    n_jobs: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The same of every landmark, which is left out as a landmark, too: a new graph is none.

    As a landmark it would still bend the mean towards the graphs around it.

    Parameters
    ----------
    fitted : LandmarkPosterior
    joint : ndarray, shape (m, m)
        ``inv(K_mm + K_mn inv(noise) K_nm)``: without a landmark its row and column go, which is
        what taking off the outer product of its column does.
    among : ndarray, shape (m, m)
    noise : ndarray, shape (m,)
    targets : ndarray, shape (m, n_columns)
    n_jobs : int
    """
    through = multiply(among, joint, n_jobs)  # (m, m)
    own, cross = np.diagonal(joint), np.diagonal(through)
    coefficients = fitted.coefficients
    mean = among @ coefficients - (cross / own)[:, None] * coefficients
    leverage = ((through * among).sum(axis=1) - cross**2 / own) / noise
    left = np.maximum(1.0 - leverage, _LEAST_LEFT)
    untold = 1.0 / (np.diagonal(fitted.precision_gain) + own)  # given the other landmarks
    return (mean - leverage[:, None] * targets) / left[:, None], noise / left + untold


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
            landmarks, among, lambda: self._rows(anchors), self.noise, self.targets, self.n_jobs
        )

    def seen_through(self, landmarks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean at all training graphs, and what landmarks leave open of each.

        Less work than the posterior: shapes (n, n_columns), and (n,) of variances.
        """
        anchors = select_features(self.graphs, landmarks)
        among = self.kernel.matrix(anchors, anchors, self.n_jobs)
        amplitude = float(among[0, 0])  # of every graph with itself
        sums = LandmarkSums.gather(
            among, self._rows(anchors), self.noise, self.targets, self.n_jobs
        )
        mean, untold = np.empty_like(self.targets), np.empty(len(self.targets))
        for where, kernel in self._rows(anchors):
            half = solve_in_tiles(sums.factor, kernel.T, transposed=True, n_jobs=self.n_jobs)
            mean[where] = half.T @ sums.inner_solution
            untold[where] = np.maximum(amplitude - (half**2).sum(axis=0), 0.0)
        return mean, untold

    def _rows(self, anchors: Features) -> Iterable[KernelBlock]:
        for where in block_slices(len(self.targets)):
            block = select_features(self.graphs, np.arange(where.start, where.stop))
            yield where, self.kernel.matrix(block, anchors, self.n_jobs)


def hard_to_say(fit: LandmarkFit, first: np.ndarray, n_landmarks: int) -> np.ndarray:
    """Landmarks, ascending: ``first``, and the graphs that are hardest to say through those.

    They are added in rounds, each time those with the largest product of squared error and squared
    variance that the landmarks so far leave open: where the mean is wrong and no landmark is near.
    By the error alone, landmarks would gather around wrong labels; spread out by the variance alone
    (a pivoted factor, leverage) they gain little, as under these kernels nearly every graph adds a
    direction of its own.

    Parameters
    ----------
    fit : LandmarkFit
    first : ndarray of int
        Drawn by chance.
    n_landmarks : int
        How many in all.
    """
    chosen = first
    for size in np.linspace(len(first), n_landmarks, _ROUNDS + 1).astype(int)[1:]:
        mean, untold = fit.seen_through(chosen)
        doubt = ((fit.targets - mean) ** 2).sum(axis=1) * untold**2
        doubt[chosen] = -1.0
        hardest = np.argsort(-doubt, kind="stable")[: max(size - len(chosen), 0)]
        chosen = np.sort(np.concatenate([chosen, hardest]))
    return chosen
