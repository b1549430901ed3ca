"""C-SVC on a precomputed kernel matrix, kept as plain coefficients so that it can be explained.

It solves the problem that LIBSVM solves, by the same method, but on the matrix as it stands (no
copy), without the interpreter lock, and along a path of costs with warm starts.

Several classes are decided one against one, as in LIBSVM: there is one *output* for every two
classes ``i < j``, in the order (0, 1), (0, 2), ..., (1, 2), ..., positive where ``j`` is preferred,
and the class with most votes wins. Two classes have a single output.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from treelens.svm import _compiled

# LIBSVM's stopping tolerance, and a bound on the steps that no sane problem reaches.
_TOLERANCE = 1e-3
_MOST_STEPS = 10_000_000


@dataclass(frozen=True)
class SVM:
    """Coefficients and intercepts of the outputs ``kernel @ coefficients.T + intercepts``."""

    coefficients: np.ndarray  # (n_outputs, n_train)
    intercepts: np.ndarray  # (n_outputs,)

    def outputs(self, kernel: np.ndarray) -> np.ndarray:
        """Outputs of test graphs from ``kernel`` (n_test, n_train): (n_test, n_outputs)."""
        return kernel @ self.coefficients.T + self.intercepts

    def decide(self, kernel: np.ndarray) -> np.ndarray:
        """Decision values: (n_test, 1) for two classes, else (n_test, n_classes)."""
        return decisions_of(self.outputs(kernel))

    @property
    def per_class(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts of the margins, see :func:`margins_of`."""
        return margins_of(self.coefficients.T).T, margins_of(self.intercepts[None])[0]

    @property
    def support(self) -> np.ndarray:
        """Positions of the training graphs with a coefficient that is not zero in some output."""
        return np.flatnonzero((self.coefficients != 0).any(axis=0))


def fit_svm_path(
    kernel: np.ndarray,  # (n_train, n_train)
    codes: np.ndarray,  # (n_train,) classes 0, 1, ...
    n_classes: int,
    Cs: Sequence[float],
    sample_weight: np.ndarray,
) -> list[SVM]:
    """Fit SVMs for ascending values of ``C``, each starting at the solution of the last.

    The cost is ``C / mean K(G, G)``: one grid serves counts and relative frequencies alike.
    """
    scale = float(np.mean(np.diagonal(kernel))) or 1.0  # a kernel of zeros: any C will do
    bounds = [C / scale * sample_weight for C in Cs]  # (n_train,) each
    pairs = list(zip(*np.triu_indices(n_classes, k=1), strict=True))
    coefficients = np.zeros((len(Cs), len(pairs), len(codes)))
    intercepts = np.zeros((len(Cs), len(pairs)))
    for pair, (first, second) in enumerate(pairs):
        rows = np.flatnonzero((codes == first) | (codes == second))
        if not len(rows):  # neither class is in this split: neither wins
            continue
        part = kernel if len(rows) == len(codes) else kernel[np.ix_(rows, rows)]
        y = np.where(codes[rows] == second, 1.0, -1.0)
        beta, f = np.zeros(len(rows)), -y
        for step, bound in enumerate(bounds):
            intercepts[step, pair] = _solve_output(part, y, bound[rows], beta, f)
            coefficients[step, pair, rows] = beta
    return [SVM(*fitted) for fitted in zip(coefficients, intercepts, strict=True)]


def _solve_output(
    kernel: np.ndarray, y: np.ndarray, bound: np.ndarray, beta: np.ndarray, f: np.ndarray
) -> float:
    """Move ``beta`` and ``f = kernel @ beta - y`` to the optimum; returns the intercept."""
    low, high = np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0)
    steps = _compiled.solve_svm(kernel, low, high, _TOLERANCE, _MOST_STEPS, beta, f)
    if steps == _MOST_STEPS:
        warnings.warn(
            f"The support vector machine did not converge in {steps} iterations. A smaller C "
            "usually helps.",
            ConvergenceWarning,
            stacklevel=2,
        )
    free = (beta > low) & (beta < high)
    if free.any():
        return -float(f[free].mean())
    # Any value between the two ends is optimal; with one class only there is one end.
    ends = [f[beta < high].min(initial=np.inf), f[beta > low].max(initial=-np.inf)]
    return -float(np.mean([end for end in ends if np.isfinite(end)]))


# --- from outputs to classes ------------------------------------------------------------------


def margin_signs(n_pairs: int) -> np.ndarray:
    """1 where a positive output is for a class, -1 against it, else 0: (n_pairs, n_classes)."""
    n_classes = (1 + int(np.sqrt(1 + 8 * n_pairs))) // 2
    signs = np.zeros((n_pairs, n_classes))
    first, second = np.triu_indices(n_classes, k=1)
    signs[np.arange(n_pairs), first], signs[np.arange(n_pairs), second] = -1.0, 1.0
    return signs


def margins_of(outputs: np.ndarray) -> np.ndarray:
    """Values that are linear in the kernel: the outputs of two classes, else mean margins.

    The mean margin of a class is its mean output against the others, (n_graphs, n_classes).
    """
    if outputs.shape[1] == 1:
        return outputs
    signs = margin_signs(outputs.shape[1])
    return outputs @ signs / (signs.shape[1] - 1)


def decisions_of(outputs: np.ndarray) -> np.ndarray:
    """Decision values: the outputs of two classes, else votes, (n_graphs, n_classes).

    A number between -1/3 and 1/3 that grows with the sum of the margins of a class is added to its
    votes and breaks ties, as in scikit-learn's ``SVC`` with ``decision_function_shape="ovr"``.
    """
    if outputs.shape[1] == 1:
        return outputs
    signs = margin_signs(outputs.shape[1])
    sums = outputs @ signs
    preferred = np.where(outputs > 0, 1.0, -1.0)
    # A vote won adds 1 and a vote lost 0, where the product has 1 and -1.
    votes = (preferred @ signs + signs.shape[1] - 1) / 2
    return votes + sums / (3.0 * (np.abs(sums) + 1.0))


def pairwise_hinge_loss(codes: np.ndarray, outputs: np.ndarray) -> float:
    """Mean hinge loss of the outputs that involve a graph's class: the loss of the SVM itself."""
    signs = margin_signs(outputs.shape[1]).T[codes]  # (n_graphs, n_pairs)
    return float(np.maximum(0.0, 1.0 - signs * outputs)[signs != 0].mean())


# --- calibration ------------------------------------------------------------------------------


def fit_calibration(decisions: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and intercepts of a logistic map from held-out margins to probabilities."""
    model = LogisticRegression(C=1e4, max_iter=1000).fit(decisions, codes)
    return model.coef_, model.intercept_


def calibrated_probabilities(
    decisions: np.ndarray, coefficients: np.ndarray, intercepts: np.ndarray
) -> np.ndarray:
    """Class probabilities, shape (n, n_classes)."""
    logits = decisions @ coefficients.T + intercepts
    if logits.shape[1] == 1:
        logits = np.hstack([np.zeros_like(logits), logits])
    return softmax(logits, axis=1)
