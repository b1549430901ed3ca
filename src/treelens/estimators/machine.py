"""A C-SVC on a ready kernel matrix, kept as plain coefficients so that it can be explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC


@dataclass(frozen=True)
class KernelMachine:
    """Decision values ``kernel @ coefficients.T + intercepts``, one column per output.

    Two classes have one output, positive for the second class; more classes have one output
    each (one against the rest), so that every decision value is linear in the kernel.
    """

    coefficients: np.ndarray  # (n_outputs, n_train)
    intercepts: np.ndarray  # (n_outputs,)

    def decide(self, kernel: np.ndarray) -> np.ndarray:
        """Decision values of new graphs from ``kernel`` (n_new, n_train): (n_new, n_outputs)."""
        return kernel @ self.coefficients.T + self.intercepts

    @property
    def support(self) -> np.ndarray:
        """Training graphs with a coefficient that is not zero in some output."""
        return np.flatnonzero((self.coefficients != 0).any(axis=0))


def fit_machine(
    kernel: np.ndarray, codes: np.ndarray, n_classes: int, C: float, sample_weight: np.ndarray
) -> KernelMachine:
    """Fit one C-SVC per output.

    Parameters
    ----------
    kernel : ndarray, shape (n_train, n_train)
    codes : ndarray of int, shape (n_train,)
        Classes 0, 1, ...
    n_classes : int
    C : float
    sample_weight : ndarray, shape (n_train,)
    """
    targets = [1] if n_classes == 2 else range(n_classes)
    coefficients = np.zeros((len(targets), len(codes)))
    intercepts = np.empty(len(targets))
    for row, target in enumerate(targets):
        svc = SVC(kernel="precomputed", C=C, cache_size=500)
        svc.fit(kernel, codes == target, sample_weight=sample_weight)
        coefficients[row, svc.support_] = svc.dual_coef_[0]
        intercepts[row] = svc.intercept_[0]
    return KernelMachine(coefficients, intercepts)


def predicted_codes(decisions: np.ndarray) -> np.ndarray:
    """Class codes from decision values, shape (n,)."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(int)
    return decisions.argmax(axis=1)


def class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """One weight per training graph from ``None``, ``"balanced"`` or a dict by class."""
    if class_weight is None:
        return np.ones(len(codes))
    if isinstance(class_weight, str):
        counts = np.bincount(codes, minlength=len(classes))
        return (len(codes) / (len(classes) * counts.clip(1)))[codes]
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise ValueError(f"class_weight names classes that y does not hold: {sorted(unknown)}.")
    return np.array([float(class_weight.get(c, 1.0)) for c in classes.tolist()])[codes]


def fit_calibration(decisions: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logistic map from held-out decision values to class probabilities (Platt 1999).

    Returns
    -------
    coefficients : ndarray, shape (n_outputs, n_outputs)
    intercepts : ndarray, shape (n_outputs,)
    """
    model = LogisticRegression(C=1e4, max_iter=1000).fit(decisions, codes)
    return model.coef_, model.intercept_


def calibrated_probabilities(
    decisions: np.ndarray, coefficients: np.ndarray, intercepts: np.ndarray
) -> np.ndarray:
    """Class probabilities, shape (n, n_classes)."""
    logits = decisions @ coefficients.T + intercepts
    if logits.shape[1] == 1:
        logits = np.hstack([np.zeros_like(logits), logits])
    logits -= logits.max(axis=1, keepdims=True)
    likelihood = np.exp(logits)
    return likelihood / likelihood.sum(axis=1, keepdims=True)
