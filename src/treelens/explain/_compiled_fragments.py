"""Compiled loops over all graphs at once. Plain-Python twins: ``tests/naive/fragments.py``.

What :mod:`treelens.explain.paths` and ``_compiled`` do for one graph, for the rows ``first,
first + step, ...`` of many: results do not depend on how rows are dealt out to threads.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def mixture_path_rows(first, step, sums, known, unseen, others, coefficients, gamma, rho,
                      amplitude, share, nodes, weights, factors, ends):  # fmt: skip
    """Follow the mixture kernel of every pair from no known pattern to the whole graph.

    Parameters: ``sums`` (n, m) what each graph shares with each basis graph, ``known`` and
    ``unseen`` (n,) its own sum in two parts, ``others`` (m,) the basis graphs' own sums,
    ``coefficients`` (n, m), a rule of quadrature on [0, 1].

    Written are ``factors`` (n, m), coefficients times the slope in the shared sum, and ``ends``
    (n, 3): the decision without and with the known patterns, and the slope in the own sum.
    """
    for g in range(first, sums.shape[0], step):
        base, decision, own_slope = 0.0, 0.0, 0.0
        for i in range(sums.shape[1]):
            shared, a = sums[g, i], coefficients[g, i]
            p = unseen[g] + others[i]
            # The L1 part: its logarithm moves linearly.
            log_start = -rho * p
            log_end = log_start + rho * (2.0 * shared - known[g])
            gap = abs(log_end - log_start)
            fall = -np.expm1(-gap) / gap if gap > 0.0 else 1.0
            mean = np.exp(max(log_start, log_end)) * fall
            far = (1.0 - share) * amplitude * a
            by_shared = far * 2.0 * rho * mean
            own_slope -= far * rho * mean
            base += far * np.exp(log_start)
            decision += far * np.exp(log_end)
            # The Tanimoto part, by quadrature in s with 1 + r t = exp(s log(1 + r)).
            near = share * amplitude * a
            if p <= 0.0:
                p = 1.0
            ratio = max(known[g] - shared, 0.0) / p
            base += near * np.exp(-gamma)
            decision += near * np.exp(-gamma * (1.0 - shared / (p * (1.0 + ratio))))
            if shared > 0.0:
                stretch = np.log1p(ratio)
                slope_shared, slope_own = 0.0, 0.0
                for k in range(len(nodes)):
                    if ratio < 1e-12:
                        t, growth, dt = nodes[k], 1.0, 1.0
                    else:
                        rise = np.expm1(stretch * nodes[k])
                        t, growth = rise / ratio, 1.0 + rise
                        dt = stretch / ratio * growth
                    kernel = np.exp(-gamma * (1.0 - shared * t / (p * growth)))
                    factor = gamma * weights[k] * dt * kernel / (p * growth) ** 2
                    slope_shared += factor * (p + known[g] * t)
                    slope_own -= factor * shared * t
                by_shared += near * slope_shared
                own_slope += near * slope_own
            factors[g, i] = by_shared
        ends[g, 0] = base
        ends[g, 1] = decision
        ends[g, 2] = own_slope


@njit(cache=True, nogil=True)
def pattern_sums_of_rows(first, step, row_offsets, row_patterns, row_counts, list_offsets,
                         list_graphs, list_counts, factors, out):  # fmt: skip
    """``sum over i of factors[g, i] min(x_gv, y_iv)`` for every pattern ``v`` of every graph.

    ``out`` is aligned with ``row_patterns``.
    """
    for g in range(first, len(row_offsets) - 1, step):
        row = factors[g]
        for a in range(row_offsets[g], row_offsets[g + 1]):
            v, x, total = row_patterns[a], row_counts[a], 0.0
            for b in range(list_offsets[v], list_offsets[v + 1]):
                total += row[list_graphs[b]] * min(x, list_counts[b])
            out[a] = total
