"""How much two kernel matrices differ, and how well one agrees with the classes."""

from __future__ import annotations

import numpy as np


def centred(kernel: np.ndarray) -> np.ndarray:
    """The kernel of the same points with their mean at the origin.

    An SVM with an intercept does not see where the origin is, so matrices are compared like this.
    """
    rows = kernel.mean(axis=1, keepdims=True)
    return kernel - rows - kernel.mean(axis=0, keepdims=True) + kernel.mean()


def alignment(first: np.ndarray, second: np.ndarray) -> float:
    """Cosine of the angle between two centred matrices, 1 if one is a multiple of the other.

    Examples
    --------
    >>> kernel = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
    >>> round(alignment(kernel, 5 * kernel + 1), 12)
    1.0
    """
    first, second = centred(first), centred(second)
    norms = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float((first * second).sum() / norms) if norms > 0 else 0.0


def change_up_to_scale(first: np.ndarray, second: np.ndarray) -> float:
    """``min_s ||first - s second|| / ||first||`` of centred matrices: what a free ``C`` leaves.

    Examples
    --------
    >>> kernel = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
    >>> change_up_to_scale(kernel, 2 * kernel) < 1e-6
    True
    """
    return float(np.sqrt(max(0.0, 1.0 - alignment(first, second) ** 2)))


def label_kernel(codes: np.ndarray) -> np.ndarray:
    """1 for graphs of one class, 0 for graphs of different ones."""
    return (codes[:, None] == codes[None, :]).astype(float)
