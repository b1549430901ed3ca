"""How a kernel value divides among the patterns that make it up.

Every kernel of the table is a function of two weighted sums over patterns,

- ``S = sum_v w_v z_v``, what the graph and a training graph share, and
- ``A = sum_v w_v a_v``, what the graph shares with itself,

and of constants of the training graph. Let every known pattern ``v`` of the graph take part to a
degree ``t_v`` between 0 and 1, which scales its terms in both sums. The share of a pattern in
``k(1) - k(0)`` is the *Aumann-Shapley value* (also known as integrated gradients): its slope,
gathered while all patterns enter together,

    share_v = integral over t from 0 to 1 of  dk/dt_v (t, ..., t)
            = w_v z_v * integral of dk/dS  +  w_v a_v * integral of dk/dA,

so one pair of integrals serves all patterns of a pair of graphs. By the chain rule the shares add
up to the integral of the derivative along the path, which is ``k(1) - k(0)`` exactly. Where the
kernel is linear in the sums, the share is simply the pattern's term.

Patterns never seen in training match nothing, so they are no part of ``S``. They do belong to the
graph, hence to ``A``, and there they stay for all ``t``: what they do to the kernel is in
``k(0)``, and no pattern or node is charged for it.

The integrals have closed forms, written so that nothing cancels; where there is none, for
``tanimoto-rbf``, Gauss-Legendre quadrature of an entire function gives all digits for any
``gamma`` of use (up to about 100).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from treelens.kernels.mixture import MixtureScales
from treelens.kernels.table import check_kernel


@dataclass(frozen=True)
class KernelSums:
    """The sums behind one row of a kernel matrix: one graph against n training graphs.

    Attributes
    ----------
    shared : ndarray, shape (n,)
        ``<W, Z(G, G_i)>``.
    own_known : float
        ``<W, Z(G, G)>``, the part of patterns known from training.
    own_unseen : float
        The rest of it.
    others : ndarray, shape (n,)
        ``<W, Z(G_i, G_i)>``.
    offset : float
        The constant ``b`` of the kernel wwl.
    gamma : float
    """

    shared: np.ndarray
    own_known: float
    own_unseen: float
    others: np.ndarray
    offset: float
    gamma: float


class PathSlopes(NamedTuple):
    """A kernel row before and after the patterns enter, and its mean slopes on the way."""

    start: np.ndarray  # (n,) kernel values without any known pattern
    end: np.ndarray  # (n,) kernel values of the graph
    per_shared: np.ndarray  # (n,) integral of dk/dS
    per_own: np.ndarray  # (n,) integral of dk/dA


def path_slopes(kernel: str, sums: KernelSums) -> PathSlopes:
    """Follow one kernel from no known pattern to the whole graph.

    For every entry, ``end - start == per_shared * shared + per_own * own_known`` up to rounding.

    Examples
    --------
    >>> sums = KernelSums(np.array([0.5]), 1.0, 0.0, np.array([1.0]), offset=1.0, gamma=2.0)
    >>> path = path_slopes("wwl", sums)
    >>> bool(np.isclose(path.end - path.start, path.per_shared * sums.shared)[0])
    True
    """
    check_kernel(kernel)
    return PATHS[kernel](sums)


def mixture_slopes(scales: MixtureScales, sums: KernelSums) -> PathSlopes:
    """The same for the kernel of Gaussian processes: two kernels, each with its share.

    Its L1 distance ``A + B - 2 S`` is twice that of the kernel laplacian.
    """
    near = _tanimoto_exponential(replace(sums, gamma=scales.gamma))
    far = _metric(replace(sums, gamma=2.0 * scales.rho))
    parts = [
        scales.amplitude * (scales.share * a + (1.0 - scales.share) * b)
        for a, b in zip(near, far, strict=True)
    ]
    return PathSlopes(*parts)


def _linear(sums: KernelSums) -> PathSlopes:
    """``k = S``."""
    zeros = np.zeros_like(sums.shared)
    return PathSlopes(zeros, sums.shared, np.ones_like(zeros), zeros)


def _exponential(sums: KernelSums) -> PathSlopes:
    """``k = exp(-gamma (b - S))``: along the path ``log k`` is linear in t."""
    log_start = np.full_like(sums.shared, -sums.gamma * sums.offset)
    log_end = log_start + sums.gamma * sums.shared
    mean = _mean_exponential(log_start, log_end)
    return PathSlopes(np.exp(log_start), np.exp(log_end), sums.gamma * mean, np.zeros_like(mean))


def _metric(sums: KernelSums) -> PathSlopes:
    """``k = exp(-gamma ((A + B) / 2 - S))``, whose logarithm is linear in t as well."""
    log_start = -0.5 * sums.gamma * (sums.own_unseen + sums.others)
    log_end = log_start + sums.gamma * (sums.shared - 0.5 * sums.own_known)
    mean = _mean_exponential(log_start, log_end)
    return PathSlopes(
        np.exp(log_start), np.exp(log_end), sums.gamma * mean, -0.5 * sums.gamma * mean
    )


def _tanimoto(sums: KernelSums) -> PathSlopes:
    """``k = S / (A + B - S)``, where ``dk/dS = (A + B) / (...)^2`` and ``dk/dA = -S / (...)^2``.

    Along the path the denominator is ``p + q t`` and the numerators are linear in t, so with
    ``r = q / p`` the integrals are those of ``1 / (1 + r t)^2`` and ``t / (1 + r t)^2``.
    """
    # A training graph without patterns shares nothing: any positive p will do for it.
    p = sums.own_unseen + sums.others  # (n,)
    p = np.where(p > 0, p, 1.0)
    ratio = np.maximum(sums.own_known - sums.shared, 0.0) / p
    constant_part = 1.0 / (p * (1.0 + ratio))
    linear_part = _mean_tilted(ratio) / p**2
    end = sums.shared / (p * (1.0 + ratio))
    return PathSlopes(
        np.zeros_like(end),
        end,
        constant_part + sums.own_known * linear_part,
        -sums.shared * linear_part,
    )


def _tanimoto_exponential(sums: KernelSums) -> PathSlopes:
    """``k = exp(-gamma (1 - T))`` with ``T`` as above: ``k`` times ``gamma`` times T's slopes.

    The denominator ``p (1 + r t)`` of T grows like an exponential in the variable of integration
    ``s``: ``1 + r t = exp(s log(1 + r))``, so no pole comes near, however large ``r``.
    """
    p = sums.own_unseen + sums.others  # (n,)
    p = np.where(p > 0, p, 1.0)[:, None]
    shared = sums.shared[:, None]
    ratio = np.maximum(sums.own_known - shared, 0.0) / p
    stretch = np.log1p(ratio)
    nodes, weights = unit_interval_rule()  # (n_nodes,)
    growth = np.exp(stretch * nodes)  # (n, n_nodes), 1 + r t
    flat = ratio < _FLAT_RATIO
    safe = np.where(flat, 1.0, ratio)
    t = np.where(flat, nodes, np.expm1(stretch * nodes) / safe)
    dt_ds = np.where(flat, 1.0, stretch / safe) * growth
    kernel = np.exp(-sums.gamma * (1.0 - shared * t / (p * growth)))
    factor = sums.gamma * weights * dt_ds * kernel / (p * growth) ** 2
    start = np.full_like(sums.shared, np.exp(-sums.gamma))
    end = np.exp(-sums.gamma * (1.0 - shared / (p * (1.0 + ratio))))[:, 0]
    by_shared = (factor * (p + sums.own_known * t)).sum(axis=1)
    return PathSlopes(start, end, by_shared, -(factor * shared * t).sum(axis=1))


def _cosine(sums: KernelSums) -> PathSlopes:
    """``k = S / sqrt(A B)``: powers of ``A(t)``, which is linear in t."""
    root = np.sqrt(sums.own_unseen + sums.own_known)
    if root == 0:
        zeros = np.zeros_like(sums.shared)
        return PathSlopes(zeros, zeros, zeros, zeros)
    both = root + np.sqrt(sums.own_unseen)
    other = np.sqrt(sums.others)
    scale = np.divide(1.0, other, out=np.zeros_like(other), where=other > 0)
    return PathSlopes(
        np.zeros_like(scale),
        sums.shared * scale / root,
        2.0 * scale / both,
        -sums.shared * scale / (root * both**2),
    )


PATHS: Mapping[str, Callable[[KernelSums], PathSlopes]] = MappingProxyType(
    {
        "wwl": _exponential,
        "laplacian": _metric,
        "tanimoto": _tanimoto,
        "tanimoto-rbf": _tanimoto_exponential,
        "wl-oa": _linear,
        "wl-subtree": _linear,
        "wwl-linear": _linear,
        "wl-subtree-cosine": _cosine,
    }
)


def _mean_exponential(log_start: np.ndarray, log_end: np.ndarray) -> np.ndarray:
    """Mean over t from 0 to 1 of a value whose logarithm moves linearly between two ends."""
    gap = np.abs(log_end - log_start)
    safe = np.where(gap == 0, 1.0, gap)
    mean_of_fall = np.where(gap == 0, 1.0, -np.expm1(-safe) / safe)
    return np.exp(np.maximum(log_start, log_end)) * mean_of_fall


# Below this ratio the path's denominator is constant to the last digit.
_FLAT_RATIO = 1e-12
_QUADRATURE_NODES = 32


def unit_interval_rule(n_nodes: int = _QUADRATURE_NODES) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre quadrature from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return 0.5 * (nodes + 1.0), 0.5 * weights


# Below this ratio the closed form loses digits and the series has more than enough of them.
_SMALL_RATIO = 0.05
_SERIES_TERMS = 14


def _mean_tilted(ratio: np.ndarray) -> np.ndarray:
    """Integral of ``t / (1 + ratio t)^2`` over t from 0 to 1, for ``ratio >= 0``."""
    small = np.minimum(ratio, _SMALL_RATIO)
    series = np.zeros_like(ratio)
    for n in reversed(range(_SERIES_TERMS)):
        series = (n + 1) / (n + 2) - small * series
    safe = np.maximum(ratio, _SMALL_RATIO)
    closed = (np.log1p(safe) - safe / (1.0 + safe)) / safe**2
    return np.where(ratio < _SMALL_RATIO, series, closed)
