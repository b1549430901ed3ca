"""The forms a weighted kernel can take, from sums ``<W, Z>`` to the matrix an SVM is given.

One table drives the classifier's search, its predictions and the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelens.kernels.normalize import normalize_kernel
from treelens.kernels.weisfeiler_lehman import exponential


@dataclass(frozen=True)
class KernelForm:
    """A form: which pair feature it sums, whether it has a scale, and its formula in words."""

    kind: str
    has_gamma: bool
    formula: str


FORMS = {
    "exponential": KernelForm("wasserstein", True, "exp(-gamma (b - <W, Z>))"),
    "metric": KernelForm("wasserstein", True, "exp(-gamma d), d the weighted L1 metric"),
    "tanimoto": KernelForm("optimal-assignment", False, "k(x,y) / (k(x,x) + k(y,y) - k(x,y))"),
    "tanimoto-exponential": KernelForm(
        "optimal-assignment", True, "exp(-gamma (1 - t)), t the tanimoto form"
    ),
    "assignment": KernelForm("optimal-assignment", False, "sum of weighted minima of counts"),
    "subtree": KernelForm("subtree", False, "sum of weighted products of counts"),
    "linear": KernelForm("wasserstein", False, "sum of weighted minima of masses"),
    "subtree-cosine": KernelForm("subtree", False, "k(x,y) / sqrt(k(x,x) k(y,y)) of the above"),
}


def form_kernel(
    form: str,
    sums: np.ndarray,
    left_self: np.ndarray,
    right_self: np.ndarray,
    offset: float,
    gamma: float | None = None,
) -> np.ndarray:
    """A kernel matrix from weighted sums; ``sums`` is left as it is.

    Parameters
    ----------
    form : str
        A key of ``FORMS``.
    sums : ndarray, shape (n_left, n_right)
        ``<W, Z>`` of every pair.
    left_self, right_self : ndarray
        ``<W, Z(G, G)>`` of every graph.
    offset : float
        The constant ``b``: the largest ``<W, Z(G, G)>`` of the training graphs.
    gamma : float, optional
    """
    if form == "exponential":
        assert gamma is not None
        return exponential(offset - sums, gamma)
    if form == "metric":
        assert gamma is not None
        distance = 0.5 * (left_self[:, None] + right_self[None, :]) - sums
        return exponential(np.maximum(distance, 0.0, out=distance), gamma)
    if form == "tanimoto":
        return normalize_kernel(sums.copy(), left_self, right_self, "tanimoto")
    if form == "tanimoto-exponential":
        assert gamma is not None
        similarity = normalize_kernel(sums.copy(), left_self, right_self, "tanimoto")
        return exponential(np.subtract(1.0, similarity, out=similarity), gamma)
    if form == "subtree-cosine":
        return normalize_kernel(sums.copy(), left_self, right_self, "cosine")
    if form in FORMS:
        return sums
    raise ValueError(f"form must be one of {sorted(FORMS)}, got {form!r}.")
