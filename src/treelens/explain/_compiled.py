"""Compiled loops of the explain room. Plain-Python twins: ``tests/naive/explain.py``.

Training graphs come as inverted lists by pattern, so the work is the number of shared patterns.
Loops over many graphs take the rows ``first, first + step, ...``, one part for each thread.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def mixture_path_rows(
    first,
    step,
    sums,
    own,
    others,
    gamma,
    rho,
    amplitude,
    share,
    nodes,
    weights,
    start,
    end,
    per_shared,
    per_own,
):
    """Follow the mixture kernel of every pair from no pattern to the whole graph.

    The first arguments are those of ``KernelSums``, ``nodes`` and ``weights`` the lower half of a
    symmetric quadrature rule on [0, 1]; the four arrays of ``PathSlopes`` are written. Where
    nothing is shared, the slope of the Tanimoto part in the shared sum has no use and is left out.
    """
    near, far = share * amplitude, (1.0 - share) * amplitude
    for g in range(first, sums.shape[0], step):
        for i in range(sums.shape[1]):
            shared = sums[g, i]
            p = others[i]
            # The logarithm of the L1 part is linear in t.
            log_start = -rho * p
            log_end = log_start + rho * (2.0 * shared - own[g])
            gap = abs(log_end - log_start)
            fall = -np.expm1(-gap) / gap if gap > 0.0 else 1.0
            mean = np.exp(max(log_start, log_end)) * fall
            by_shared = far * 2.0 * rho * mean
            by_own = -far * rho * mean
            if p <= 0.0:
                p = 1.0
            ratio = max(own[g] - shared, 0.0) / p
            tanimoto = shared / (p * (1.0 + ratio))
            if others[i] + own[g] <= 0.0:  # two graphs without patterns are alike
                start[g, i] = end[g, i] = far + near
                per_shared[g, i], per_own[g, i] = by_shared, by_own
                continue
            whole = np.exp(-gamma * (1.0 - tanimoto))
            start[g, i] = far * np.exp(log_start) + near * np.exp(-gamma)
            end[g, i] = far * np.exp(log_end) + near * whole
            if shared > 0.0 and near > 0.0:
                # The slope in the own sum, by quadrature in s with 1 + r t = exp(s log(1 + r)).
                # That in the shared sum follows, since both together make up the rise. The nodes s
                # and 1 - s take one exponential.
                slope, stretch, reach = 0.0, np.log1p(ratio), gamma * shared / p
                for k in range(len(nodes)):
                    if ratio < 1e-12:
                        one, other = nodes[k], 1.0 - nodes[k]
                    else:
                        left = np.expm1(-stretch * nodes[k])
                        one = -left / ratio  # (1 - exp(-s log(1 + r))) / r
                        other = (1.0 + left / ratio + left) / ((1.0 + ratio) * (1.0 + left))
                    slope += weights[k] * (
                        one * np.exp(reach * one - gamma) + other * np.exp(reach * other - gamma)
                    )
                slope *= reach / p * (stretch / ratio if ratio >= 1e-12 else 1.0)
                rise = -whole * np.expm1(-gamma * tanimoto)
                by_shared += near * (rise + own[g] * slope) / shared
                by_own -= near * slope
            per_shared[g, i] = by_shared
            per_own[g, i] = by_own


@njit(cache=True, nogil=True)
def pattern_sums_of_rows(
    first,
    step,
    row_offsets,
    row_patterns,
    row_values,
    list_offsets,
    list_graphs,
    list_values,
    minimum,
    factors,
    out,
):
    """``sum over i of factors[g, i] combine(x_gv, y_iv)`` for every pattern ``v`` of every graph.

    ``out`` is aligned with ``row_patterns``.
    """
    for g in range(first, len(row_offsets) - 1, step):
        row = factors[g]
        for a in range(row_offsets[g], row_offsets[g + 1]):
            v, x, total = row_patterns[a], row_values[a], 0.0
            if minimum:
                for b in range(list_offsets[v], list_offsets[v + 1]):
                    total += row[list_graphs[b]] * min(x, list_values[b])
            else:
                for b in range(list_offsets[v], list_offsets[v + 1]):
                    total += row[list_graphs[b]] * x * list_values[b]
            out[a] = total
