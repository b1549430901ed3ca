"""Linear models of scikit-learn on explicit features, as plain coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from treelens.parallel import one_blas_thread

_TOLERANCE = 1e-5
# Of the hinge loss's dual, in units of the margin; tighter ones change no prediction to speak of.
_HINGE_TOLERANCE = 0.1
_MOST_ITERATIONS = 1000
# The logistic loss is flatter than the hinge loss, the squared hinge steeper: this much of it makes
# C mean the same.
_LOGISTIC_COST = 3.0
_SQUARED_COST = 0.1

LinearModel = tuple[np.ndarray, np.ndarray]  # (n_outputs, n_features), (n_outputs,)


def fit_linear(
    approximation: str,
    mapped: Any,
    codes: np.ndarray,
    Cs: Sequence[float],
    sample_weight: np.ndarray,
    most_iterations: int = _MOST_ITERATIONS,
) -> list[LinearModel]:
    """Linear models on features for ascending ``C``.

    ``C`` is relative to the mean squared length of the rows, as the kernel machine's is to the
    kernel's mean diagonal.
    """
    dense = isinstance(mapped, np.ndarray)
    lengths = np.einsum("ij,ij->i", mapped, mapped) if dense else mapped.power(2).sum(axis=1)
    scale = max(float(np.mean(lengths)), np.finfo(float).tiny)
    several = len(np.unique(codes)) > 2
    model, cost = _linear_model(approximation, scale, most_iterations, several)
    models = []
    with one_blas_thread():
        for C in Cs:
            model.set_params(C=cost * C / scale).fit(mapped, codes, sample_weight)
            models.append((model.coef_.astype(np.float64), model.intercept_.astype(np.float64)))
    return models


def _linear_model(
    approximation: str, scale: float, most_iterations: int, several: bool
) -> tuple[Any, float]:
    """What is fitted to features of a mean squared length of ``scale``, and what C is times.

    With two classes it is the hinge loss, which makes the model the kernel machine on the features'
    kernel, but for a small penalty on the intercept.

    With several classes the hinge loss of each class against the rest breaks down: where none has
    the majority among look-alikes, every machine answers "no". Nyström features, which are dense,
    get a multinomial regression; the many columns of sparse ones the squared hinge, whose values
    still follow the share of each class.
    """
    if approximation == "nystroem" and several:
        model = LogisticRegression(tol=_TOLERANCE, max_iter=most_iterations, warm_start=True)
        return model, _LOGISTIC_COST
    model = LinearSVC(
        loss="squared_hinge" if several else "hinge", dual=True, tol=_HINGE_TOLERANCE,
        max_iter=most_iterations, random_state=0, intercept_scaling=np.sqrt(scale),
    )  # fmt: skip
    return model, _SQUARED_COST if several else 1.0
