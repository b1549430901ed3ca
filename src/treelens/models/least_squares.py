"""A linear model from sums of products: they add up over blocks, whatever their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

ALPHAS = tuple(10.0**k for k in range(-7, 0))


class ProductSums(NamedTuple):
    """Sums over graphs of products of features and targets; [0] fitted to, [1] held out.

    A feature that is always 1 stands last. Targets are +1 and -1, one per output.
    """

    features: np.ndarray  # (2, n_features + 1, n_features + 1)
    targets: np.ndarray  # (2, n_features + 1, n_outputs)
    squares: np.ndarray  # (2,), total weight, which is also the sum of squared targets

    @classmethod
    def zeros(cls, n_features: int, n_outputs: int) -> ProductSums:
        n = n_features + 1
        return cls(np.zeros((2, n, n)), np.zeros((2, n, n_outputs)), np.zeros(2))

    @classmethod
    def of(
        cls,
        mapped: np.ndarray,
        codes: np.ndarray,
        n_outputs: int,
        sample_weight: np.ndarray,
        held_out: np.ndarray,
    ) -> ProductSums:
        """Of the features of some graphs, shape (n_graphs, n_features)."""
        sums = cls.zeros(mapped.shape[1], n_outputs)
        outputs = np.array([1]) if n_outputs == 1 else np.arange(n_outputs)
        for part, rows in enumerate((~held_out, held_out)):
            root = np.sqrt(sample_weight[rows])[:, None]
            x = np.hstack([mapped[rows], np.ones((len(root), 1))]) * root
            y = np.where(codes[rows][:, None] == outputs, 1.0, -1.0) * root
            sums.features[part] = x.T @ x
            sums.targets[part] = x.T @ y
            sums.squares[part] = sample_weight[rows].sum()
        return sums

    def plus(self, other: ProductSums) -> ProductSums:
        """The sums over both sets of graphs."""
        return ProductSums(*(mine + others for mine, others in zip(self, other, strict=True)))


def solve(sums: ProductSums, alphas: Sequence[float]) -> tuple[np.ndarray, np.ndarray, float]:
    """Least squares with a penalty ``alpha * total weight * |w|^2``; the intercept is free.

    ``alpha`` is the one with the smallest squared error on what was held out; then all is fitted.

    Returns
    -------
    coefficients : ndarray, shape (n_outputs, n_features)
    intercepts : ndarray, shape (n_outputs,)
    alpha : float
    """
    if len(alphas) > 1 and sums.squares.min() > 0:
        fits = _ridge(sums.features[0], sums.targets[0], alphas)
        errors = [_squared_error(sums.features[1], sums.targets[1], fit) for fit in fits]
        alphas = [alphas[int(np.argmin(errors))]]
    alpha = alphas[len(alphas) // 2]
    (best,) = _ridge(sums.features.sum(axis=0), sums.targets.sum(axis=0), [alpha])
    return best[:-1].T, best[-1], float(alpha)


def _ridge(features: np.ndarray, targets: np.ndarray, alphas: Sequence[float]) -> list[np.ndarray]:
    """Coefficients with the intercept last, shape (n_features + 1, n_outputs), per alpha."""
    weight = features[-1, -1]
    means, target_means = features[-1, :-1] / weight, targets[-1] / weight
    centered = features[:-1, :-1] - weight * np.outer(means, means)
    values, vectors = eigh(centered)
    projected = vectors.T @ (targets[:-1] - weight * np.outer(means, target_means))
    fits = []
    for alpha in alphas:
        slopes = vectors @ (projected / (values.clip(0) + alpha * weight)[:, None])
        fits.append(np.vstack([slopes, target_means - means @ slopes]))
    return fits


def _squared_error(features: np.ndarray, targets: np.ndarray, fit: np.ndarray) -> float:
    """Up to the sum of squared targets, which is the same for all fits."""
    return float(np.sum(fit * (features @ fit)) - 2.0 * np.sum(fit * targets))
