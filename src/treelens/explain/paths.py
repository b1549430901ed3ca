"""How a kernel value divides among patterns.

Every model is ``f(G) = c + sum over i of a_i k(G, G_i)`` over some training graphs ``G_i``, the
*basis*. Every kernel is a function of two weighted sums over patterns,

- ``S = sum_v w_v z_v``, what the graph and a basis graph share, and
- ``A = sum_v w_v a_v``, what the graph shares with itself,

and of constants of the basis graph. Scale the terms of every known pattern ``v`` in both sums by
``t_v`` between 0 and 1. The share of a pattern in ``k(1) - k(0)`` is its *Aumann-Shapley value*
(integrated gradients): its slope, integrated while all patterns enter together,

    share_v = integral over t from 0 to 1 of  dk/dt_v (t, ..., t)
            = w_v z_v * integral of dk/dS  +  w_v a_v * integral of dk/dA,

so one pair of integrals serves all patterns of a pair of graphs. The shares add up to
``k(1) - k(0)`` exactly. Where the kernel is linear in the sums, the share is the pattern's term.

Patterns outside the vocabulary match nothing, so they are no part of ``S``. They do belong to
``A``, and are constant in ``t``: their effect is in ``k(0)``, and no pattern is charged for it.

The integrals have closed forms, written so that nothing cancels, except that of the Tanimoto part
of an exponential kernel: there Gauss-Legendre quadrature of an entire function gives all digits
for any ``gamma`` of use (up to about 100).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from treelens.explain import _compiled
from treelens.kernels.gram import interleaved, pair_sums
from treelens.kernels.mixture import MixtureKernel
from treelens.models.predictions import KernelExpansion
from treelens.patterns.features import Features

# Nodes of quadrature. For many pairs of graphs: up to this gamma twelve give ten digits.
_MANY_NODES, _FEW_NODES, _SMALL_GAMMA = 32, 12, 5.0


class KernelSums(NamedTuple):
    """The weighted sums behind kernel values of m graphs with n basis graphs."""

    shared: np.ndarray  # (m, n) <W, Z(G, G_i)>
    known: np.ndarray  # (m,) <W, Z(G, G)>, the part of patterns in the vocabulary
    unseen: np.ndarray  # (m,) the rest of it
    others: np.ndarray  # (n,) <W, Z(G_i, G_i)>
    offset: float = 0.0  # the constant b of the kernel wwl
    gamma: float = 0.0


class PathSlopes(NamedTuple):
    """Kernel values before and after the patterns enter, and mean slopes on the way: (m, n).

    ``end - start == per_shared * shared + per_own * known`` up to rounding.
    """

    start: np.ndarray  # kernel values without any known pattern
    end: np.ndarray  # kernel values of the graphs
    per_shared: np.ndarray  # integral of dk/dS
    per_own: np.ndarray  # integral of dk/dA


def slopes_of(expansion: KernelExpansion, graphs: Features, n_jobs: int = 1) -> PathSlopes:
    """Kernel values of graphs with the basis and their slopes in the two sums."""
    kernel, basis, rows = expansion.kernel, expansion.basis.pairs, graphs.pairs.rows
    if len(rows) == 1:  # looks at the patterns of this graph only
        shared = _compiled.shared_sums(
            rows.indices, rows.values, expansion.weights[rows.indices], basis.lists.offsets,
            basis.lists.indices, basis.lists.values, basis.minimum, basis.n_graphs,
        )[None, :] * (graphs.pairs.scale[0] * basis.scale)  # fmt: skip
    else:
        shared = pair_sums(graphs.pairs, basis, expansion.weights, n_jobs=n_jobs)
    known = graphs.pairs.diagonal(expansion.weights)
    unseen = np.maximum(graphs.diagonal - known, 0.0)
    sums = KernelSums(shared, known, unseen, expansion.basis.diagonal)
    if isinstance(kernel, MixtureKernel):
        return mixture_slopes(sums, *kernel.scales.as_tuple(), n_jobs=n_jobs)
    return PATHS[kernel.name](sums._replace(offset=kernel.offset, gamma=kernel.gamma or 0.0))


def mixture_slopes(
    sums: KernelSums,
    gamma: float,
    rho: float,
    amplitude: float = 1.0,
    share: float = 1.0,
    n_jobs: int = 1,
) -> PathSlopes:
    """Follow ``amplitude (share exp(-gamma (1 - T)) + (1 - share) exp(-rho (A + B - 2 S)))``.

    ``T = S / (A + B - S)`` is the Tanimoto similarity.
    """
    few = gamma <= _SMALL_GAMMA and len(sums.shared) > 1
    rule = unit_interval_rule(_FEW_NODES if few else _MANY_NODES)
    found = PathSlopes(*(np.empty_like(sums.shared) for _ in range(4)))
    interleaved(
        lambda k, step: _compiled.mixture_path_rows(
            k, step, *sums[:4], gamma, rho, amplitude, share, *rule, *found
        ),
        n_jobs,
    )
    return found


def unit_interval_rule(n_nodes: int = _MANY_NODES) -> tuple[np.ndarray, np.ndarray]:
    """The lower half of the nodes of Gauss-Legendre quadrature from 0 to 1, and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return 0.5 * (nodes[: n_nodes // 2] + 1.0), 0.5 * weights[: n_nodes // 2]


def _linear(sums: KernelSums) -> PathSlopes:
    """``k = S``."""
    zeros = np.zeros_like(sums.shared)
    return PathSlopes(zeros, sums.shared, np.ones_like(zeros), zeros)


def _exponential(sums: KernelSums) -> PathSlopes:
    """``k = exp(-gamma (b - S))``: along the path ``log k`` is linear in t."""
    rise = sums.gamma * sums.shared
    end = np.exp(rise - sums.gamma * sums.offset)
    safe = np.where(rise == 0, 1.0, rise)
    mean = end * np.where(rise == 0, 1.0, -np.expm1(-safe) / safe)
    start = np.full_like(end, np.exp(-sums.gamma * sums.offset))
    return PathSlopes(start, end, sums.gamma * mean, np.zeros_like(mean))


# Below this ratio the closed form loses digits and the series has more than enough of them.
_SMALL_RATIO, _SERIES_TERMS = 0.05, 14


def _tanimoto(sums: KernelSums) -> PathSlopes:
    """``k = S / (A + B - S)``, where ``dk/dS = (A + B) / (...)^2`` and ``dk/dA = -S / (...)^2``.

    Along the path the denominator is ``p (1 + r t)`` and the numerators are linear in t, so the
    integrals are those of ``1 / (1 + r t)^2`` and ``t / (1 + r t)^2``.
    """
    known = sums.known[:, None]
    p = sums.unseen[:, None] + sums.others
    p = np.where(p > 0, p, 1.0)  # a training graph without patterns shares nothing
    ratio = np.maximum(known - sums.shared, 0.0) / p
    small, large = np.minimum(ratio, _SMALL_RATIO), np.maximum(ratio, _SMALL_RATIO)
    series = np.zeros_like(ratio)
    for n in reversed(range(_SERIES_TERMS)):
        series = (n + 1) / (n + 2) - small * series
    closed = (np.log1p(large) - large / (1.0 + large)) / large**2
    tilted = np.where(ratio < _SMALL_RATIO, series, closed) / p**2
    constant = 1.0 / (p * (1.0 + ratio))
    return PathSlopes(
        np.zeros_like(p), sums.shared * constant, constant + known * tilted, -sums.shared * tilted
    )


def _cosine(sums: KernelSums) -> PathSlopes:
    """``k = S / sqrt(A B)``: powers of ``A(t)``, which is linear in t."""
    root = np.sqrt(sums.unseen + sums.known)[:, None]
    both = root + np.sqrt(sums.unseen)[:, None]
    empty = root == 0
    root, both = np.where(empty, 1.0, root), np.where(empty, 1.0, both)
    other = np.sqrt(sums.others)
    scale = np.divide(1.0, other, out=np.zeros_like(other), where=other > 0) * ~empty
    return PathSlopes(
        np.zeros_like(scale),
        sums.shared * scale / root,
        2.0 * scale / both,
        -sums.shared * scale / (root * both**2),
    )


PATHS: Mapping[str, Callable[[KernelSums], PathSlopes]] = MappingProxyType(
    {
        "wwl": _exponential,
        "laplacian": lambda sums: mixture_slopes(sums, 0.0, 0.5 * sums.gamma, share=0.0),
        "tanimoto": _tanimoto,
        "tanimoto-rbf": lambda sums: mixture_slopes(sums, sums.gamma, 0.0),
        "wl-oa": _linear,
        "wl-subtree": _linear,
        "wwl-linear": _linear,
        "wl-subtree-cosine": _cosine,
    }
)
