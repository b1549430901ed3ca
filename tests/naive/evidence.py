"""Plain-Python twins of the mixture kernel, the evidence and the Gaussian process."""

import math

import numpy as np

SCALE_SPREAD = 2.0  # of the priors on noise and scales


def sum_of_minima(weights, counts, i, j):
    return sum(w * min(a, b) for w, a, b in zip(weights, counts[i], counts[j], strict=True))


def mixture(term, shared, own, other):
    """One covariance from three sums."""
    kernel = term.kernel
    union = own + other - shared
    tanimoto = shared / union if union > 0 else 1.0
    distance = max(own + other - 2 * shared, 0.0)
    near = math.exp(-kernel.gamma * (1 - tanimoto))
    far = math.exp(-kernel.rho * distance)
    return term.amplitude * (kernel.share * near + (1 - kernel.share) * far)


def kernel_matrix(term, weights, counts):
    n = len(counts)
    own = [sum_of_minima(weights, counts, i, i) for i in range(n)]
    return np.array(
        [
            [mixture(term, sum_of_minima(weights, counts, i, j), own[i], own[j]) for j in range(n)]
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


def objective(problem, parameters, counts, spread, usual_noise, jitter):
    """The objective by NumPy's own determinant and solver; ``spread`` is that of the logits."""
    patterns, own = problem.terms[0], parameters.terms[0]
    deviations = own.deviations / math.sqrt(patterns.strength)
    weights = weights_of(patterns.hierarchy, own.level_logits, deviations)
    term = patterns.term(own)
    matrix, variance = kernel_matrix(term, weights, counts), term.amplitude
    prior = patterns.strength * (deviations**2).sum()
    prior += ((own.level_logits / spread) ** 2).sum()
    prior += ((parameters.log_noise - math.log(usual_noise)) / SCALE_SPREAD) ** 2
    for numbers, found in zip(problem.terms[1:], parameters.terms[1:], strict=True):
        length, amplitude = np.exp(found.scales)
        matrix += gaussian_matrix(amplitude, length, numbers.numbers)
        variance += amplitude
    for each, found in zip(problem.terms, parameters.terms, strict=True):
        spreads = np.full(len(found.scales), SCALE_SPREAD)
        if each is not patterns:  # the share of numbers is held to its usual size
            spreads[-1] = 1.0
        prior += (((found.scales - each.usual_scales) / spreads) ** 2).sum()
    matrix += np.diag(parameters.noise * problem.noise_factors + jitter * variance)
    fit = np.mean([y @ np.linalg.solve(matrix, y) for y in problem.targets.T])
    return 0.5 * (fit + np.linalg.slogdet(matrix)[1] + prior)
