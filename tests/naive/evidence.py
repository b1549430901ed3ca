"""Plain-Python twins of the mixture kernel, the evidence and the Gaussian process."""

import math

import numpy as np


def sum_of_minima(weights, counts, i, j):
    return sum(w * min(a, b) for w, a, b in zip(weights, counts[i], counts[j], strict=True))


def mixture(scales, shared, own, other):
    """One kernel value from three sums."""
    union = own + other - shared
    tanimoto = shared / union if union > 0 else 1.0
    distance = max(own + other - 2 * shared, 0.0)
    near = math.exp(-scales.gamma * (1 - tanimoto))
    far = math.exp(-scales.rho * distance)
    return scales.amplitude * (scales.share * near + (1 - scales.share) * far)


def kernel_matrix(scales, weights, counts):
    n = len(counts)
    own = [sum_of_minima(weights, counts, i, i) for i in range(n)]
    return np.array(
        [
            [
                mixture(scales, sum_of_minima(weights, counts, i, j), own[i], own[j])
                for j in range(n)
            ]
            for i in range(n)
        ]
    )


def weights_of(hierarchy, level_logits, deviations):
    """``beta * exp(theta)``, every ancestor followed one by one."""
    exponents = [math.exp(b) for b in level_logits]
    weights = []
    for pattern in range(hierarchy.n_patterns):
        level = next(
            k for k in range(len(hierarchy.groups)) if pattern < hierarchy.level_offsets[k + 1]
        )
        beta = len(exponents) * exponents[hierarchy.groups[level]] / sum(exponents)
        beta *= hierarchy.shares[level]
        theta, ancestor = 0.0, pattern
        while ancestor >= 0:
            theta += deviations[ancestor]
            ancestor = hierarchy.parents[ancestor]
        weights.append(beta * math.exp(theta))
    return np.array(weights)


def gaussian_matrix(amplitude, length, table):
    """The kernel of covariates, value by value."""
    return np.array(
        [
            [
                amplitude
                * math.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / (2 * length**2))
                for y in table
            ]
            for x in table
        ]
    )


def objective(problem, parameters, counts, logit_spread, scale_spread, jitter, table=None):
    """The objective by NumPy's own determinant and solver."""
    deviations = parameters.deviations / math.sqrt(problem.strength)
    weights = weights_of(problem.hierarchy, parameters.level_logits, deviations)
    scales = parameters.kernel_scales()
    matrix = kernel_matrix(scales, weights, counts)
    matrix += np.diag(parameters.noise * problem.noise_factors + jitter * scales.amplitude)
    if table is not None:
        matrix += gaussian_matrix(*np.exp(parameters.scales[5:]), table)
    fit = np.mean([y @ np.linalg.solve(matrix, y) for y in problem.targets.T])
    prior = problem.strength * (deviations**2).sum()
    prior += ((parameters.level_logits / logit_spread) ** 2).sum()
    prior += (((parameters.scales - problem.usual_scales) / scale_spread) ** 2).sum()
    return 0.5 * (fit + np.linalg.slogdet(matrix)[1] + prior)
