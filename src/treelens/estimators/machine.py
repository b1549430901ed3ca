"""A C-SVC on a ready kernel matrix, kept as plain coefficients so that it can be explained.

It solves the problem that LIBSVM solves, by the same method, but on the matrix as it stands (no
copy), without the interpreter lock, and along a path of costs with warm starts: several times
faster than ``SVC(kernel="precomputed")`` where many machines share one matrix
(``benchmarks/bench_classifier.py`` measures it).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from treelens.estimators import _compiled

# LIBSVM's stopping tolerance, and a bound on the steps that no sane problem reaches.
_TOLERANCE = 1e-3
_MOST_STEPS = 10_000_000


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
    """Fit one C-SVC per output; see :func:`fit_machine_path`."""
    return fit_machine_path(kernel, codes, n_classes, [C], sample_weight)[0]


def fit_machine_path(
    kernel: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    Cs: Sequence[float],
    sample_weight: np.ndarray,
) -> list[KernelMachine]:
    """Fit machines for ascending values of ``C``, each starting where the last one ended.

    Parameters
    ----------
    kernel : ndarray, shape (n_train, n_train)
    codes : ndarray of int, shape (n_train,)
        Classes 0, 1, ...
    n_classes : int
    Cs : sequence of float, ascending
        Relative to the scale of the kernel: the machine's cost is ``C / mean K(G, G)``, so that
        one grid serves kernels of counts and of masses alike.
    sample_weight : ndarray, shape (n_train,)
    """
    scale = float(np.mean(np.diagonal(kernel))) or 1.0  # of a kernel of zeros any C will do
    targets = [1] if n_classes == 2 else range(n_classes)
    signs = [np.where(codes == target, 1.0, -1.0) for target in targets]
    states = [(np.zeros(len(codes)), -y) for y in signs]  # coefficients and gradient
    machines = []
    for C in Cs:
        bound = C / scale * sample_weight  # (n_train,)
        intercepts = [
            _solve_output(kernel, y, bound, beta, f)
            for y, (beta, f) in zip(signs, states, strict=True)
        ]
        coefficients = np.array([beta for beta, _ in states])
        machines.append(KernelMachine(coefficients, np.array(intercepts)))
    return machines


def _solve_output(
    kernel: np.ndarray, y: np.ndarray, bound: np.ndarray, beta: np.ndarray, f: np.ndarray
) -> float:
    """Move ``beta`` and ``f = kernel @ beta - y`` to the optimum; returns the intercept."""
    low, high = np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0)
    steps = _compiled.solve_machine(kernel, low, high, _TOLERANCE, _MOST_STEPS, beta, f)
    if steps == _MOST_STEPS:
        warnings.warn(
            f"The support vector machine stopped after {steps} steps short of its tolerance. "
            "A smaller C usually helps.",
            ConvergenceWarning,
            stacklevel=2,
        )
    free = (beta > low) & (beta < high)
    if free.any():
        return -float(f[free].mean())
    # Any value between the two ends is optimal; with one class only there is one end.
    ends = [f[beta < high].min(initial=np.inf), f[beta > low].max(initial=-np.inf)]
    return -float(np.mean([end for end in ends if np.isfinite(end)]))


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
        names = ", ".join(sorted(map(repr, unknown)))
        raise ValueError(f"class_weight names classes that y does not hold: {names}.")
    weights = np.array([float(class_weight.get(c, 1.0)) for c in classes.tolist()])
    if not ((weights > 0) & np.isfinite(weights)).all():
        raise ValueError(f"class_weight must be finite numbers above 0, got {class_weight!r}.")
    return weights[codes]


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
