"""Plain twins of the fragments' compiled loops: slow, obvious, and written from the definitions."""

import math

import numpy as np

N_STEPS = 4000


def mixture_path(shared, whole, other, gamma, rho, amplitude, share):
    """Start, end, and the integrals of dk/dS and dk/dA on the way, by the midpoint rule."""

    def kernel(t):
        own = t * whole
        union = own + other - t * shared
        tanimoto = t * shared / union if union > 0 else float(whole + other == 0)
        near = math.exp(-gamma * (1.0 - tanimoto))
        far = math.exp(-rho * (own + other - 2.0 * t * shared))
        return amplitude * share * near, amplitude * (1.0 - share) * far

    by_shared = by_own = 0.0
    for k in range(N_STEPS):
        t = (k + 0.5) / N_STEPS
        near, far = kernel(t)
        own = t * whole
        union = own + other - t * shared
        if union > 0:
            by_shared += near * gamma * (own + other) / union**2 / N_STEPS
            by_own -= near * gamma * t * shared / union**2 / N_STEPS
        by_shared += far * 2.0 * rho / N_STEPS
        by_own -= far * rho / N_STEPS
    return sum(kernel(0.0)), sum(kernel(1.0)), by_shared, by_own


def pattern_sums(held, basis, factors, minimum):
    """``held`` and ``basis``: a dict from pattern to count per graph; factors (n, m)."""

    def combine(x, y):
        return min(x, y) if minimum else x * y

    return [
        {
            v: sum(factors[g][i] * combine(x, other.get(v, 0)) for i, other in enumerate(basis))
            for v, x in patterns.items()
        }
        for g, patterns in enumerate(held)
    ]


def ball(neighbors, root, depth):
    """Nodes within ``depth`` steps; ``neighbors`` is a list of lists."""
    reached = {root}
    for _ in range(depth):
        reached |= {other for node in reached for other in neighbors[node]}
    return reached


def effect(graphs, phi, carriers, depth):
    """Mean over graphs of the mean over carriers of the sum of phi around them, and its error.

    ``graphs``: one list of neighbour lists per graph; ``phi`` and ``carriers`` one list per graph.
    """
    means = []
    for neighbors, values, roots in zip(graphs, phi, carriers, strict=True):
        if roots:
            sums = [sum(values[n] for n in ball(neighbors, root, depth)) for root in roots]
            means.append(sum(sums) / len(sums))
    error = np.std(means, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else float("nan")
    return float(np.mean(means)), float(error)
