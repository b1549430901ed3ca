"""A C-SVC on a ready kernel matrix, kept as plain coefficients so that it can be explained.

It solves the problem that LIBSVM solves, by the same method, but on the matrix as it stands (no
copy), without the interpreter lock, and along a path of costs with warm starts: several times
faster than ``SVC(kernel="precomputed")`` where many machines share one matrix
(``benchmarks/bench_classifier.py`` measures it).

Several classes are decided one against one, as LIBSVM does it: a machine for every two classes,
fitted to the graphs of these two, and a vote. One machine per class against all others would be
fewer, but where a graph's look-alikes belong to several classes and none has the majority, each
of them answers "no", and the order of their values is noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from treelens.kernels.voting import class_pairs, class_values, mean_margins
from treelens.svm import _compiled

# LIBSVM's stopping tolerance, and a bound on the steps that no sane problem reaches.
_TOLERANCE = 1e-3
_MOST_STEPS = 10_000_000


@dataclass(frozen=True)
class SVM:
    """Outputs ``kernel @ coefficients.T + intercepts``, and what they say of the classes.

    Two classes have one output, positive for the second class. Several have one for every two
    classes (``pairwise``; see :mod:`treelens.kernels.voting`), or one each, the class against the
    rest: linear models on features do, and so do files of format version 1.
    """

    coefficients: np.ndarray  # (n_outputs, n_train)
    intercepts: np.ndarray  # (n_outputs,)
    pairwise: bool = False

    def outputs(self, kernel: np.ndarray) -> np.ndarray:
        """Outputs for new graphs from ``kernel`` (n_new, n_train): (n_new, n_outputs)."""
        return kernel @ self.coefficients.T + self.intercepts

    def decide(self, kernel: np.ndarray) -> np.ndarray:
        """Decision values: (n_new, 1) for two classes, else (n_new, n_classes)."""
        outputs = self.outputs(kernel)
        return class_values(outputs) if self.pairwise else outputs

    @property
    def per_class(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts of functions linear in the kernel, one for each class.

        Of pairwise outputs the mean of those of the class against the others; else the outputs
        themselves, of which two classes share one.
        """
        if self.pairwise:
            return mean_margins(self.coefficients), mean_margins(self.intercepts)
        return self.coefficients, self.intercepts

    @property
    def support(self) -> np.ndarray:
        """Training graphs with a coefficient that is not zero in some output."""
        return np.flatnonzero((self.coefficients != 0).any(axis=0))

    def on(self, graphs: np.ndarray) -> SVM:
        """The machine without the columns of other training graphs."""
        return SVM(self.coefficients[:, graphs], self.intercepts, self.pairwise)


def fit_svm(
    kernel: np.ndarray, codes: np.ndarray, n_classes: int, C: float, sample_weight: np.ndarray
) -> SVM:
    """Fit a C-SVC, or one for every two classes; see :func:`fit_svm_path`."""
    return fit_svm_path(kernel, codes, n_classes, [C], sample_weight)[0]


def fit_svm_path(
    kernel: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    Cs: Sequence[float],
    sample_weight: np.ndarray,
) -> list[SVM]:
    """Fit machines for ascending values of ``C``, each starting where the last one ended.

    Parameters
    ----------
    kernel : ndarray, shape (n_train, n_train)
    codes : ndarray of int, shape (n_train,)
        Classes 0, 1, ...
    n_classes : int
    Cs : sequence of float, ascending
        Relative to the scale of the kernel: the machine's cost is ``C / mean K(G, G)``, so that
        one grid serves kernels of counts and of relative frequencies alike.
    sample_weight : ndarray, shape (n_train,)
    """
    scale = float(np.mean(np.diagonal(kernel))) or 1.0  # of a kernel of zeros any C will do
    bounds = [C / scale * sample_weight for C in Cs]  # (n_train,) each
    firsts, seconds = class_pairs(n_classes)
    coefficients = np.zeros((len(Cs), len(firsts), len(codes)))
    intercepts = np.zeros((len(Cs), len(firsts)))
    for pair, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        rows = np.flatnonzero((codes == first) | (codes == second))
        if not len(rows):  # two classes that a split left none of: neither wins
            continue
        part = kernel if len(rows) == len(codes) else kernel[np.ix_(rows, rows)]
        y = np.where(codes[rows] == second, 1.0, -1.0)
        beta, f = np.zeros(len(rows)), -y
        for step, bound in enumerate(bounds):
            intercepts[step, pair] = _solve_output(part, y, bound[rows], beta, f)
            coefficients[step, pair, rows] = beta
    return [
        SVM(*fitted, pairwise=n_classes > 2)
        for fitted in zip(coefficients, intercepts, strict=True)
    ]


def _solve_output(
    kernel: np.ndarray, y: np.ndarray, bound: np.ndarray, beta: np.ndarray, f: np.ndarray
) -> float:
    """Move ``beta`` and ``f = kernel @ beta - y`` to the optimum; returns the intercept."""
    low, high = np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0)
    steps = _compiled.solve_svm(kernel, low, high, _TOLERANCE, _MOST_STEPS, beta, f)
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


def own_margins(codes: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """How far each graph is on the right side, shape (n,); below 0 it is put into another class.

    With several classes the value of its class less the largest of the others.
    """
    if decisions.shape[1] == 1:
        return np.where(codes == 1, 1.0, -1.0) * decisions[:, 0]
    everyone, others = np.arange(len(codes)), decisions.astype(np.float64)
    others[everyone, codes] = -np.inf
    return decisions[everyone, codes] - others.max(axis=1)


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
