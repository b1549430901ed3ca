"""Plain-Python twin of the support vector machine's loop, and its problem by definition."""

import numpy as np

LEAST_CURVATURE = 1e-12


def violating_pair(
    kernel: list, low: list, high: list, beta: list, f: list
) -> tuple[int, int, float]:
    """The pair to move and by how much its gradients disagree; ``j = -1`` if none can move."""
    growing = [t for t in range(len(f)) if beta[t] < high[t]]
    if not growing:
        return -1, -1, 0.0
    i = min(growing, key=lambda t: f[t])  # of equals the first
    shrinking = [t for t in range(len(f)) if beta[t] > low[t] and f[t] > f[i]]
    if not shrinking:
        return i, -1, 0.0
    j, gain = -1, 0.0
    for t in shrinking:
        square, bend = (f[t] - f[i]) * (f[t] - f[i]), curvature(kernel, i, t)
        if square > gain * bend:  # the gain is square / bend; ties fall as in the compiled loop
            j, gain = t, square / bend
    return i, j, max(f[t] for t in shrinking) - f[i]


def curvature(kernel: list, i: int, j: int) -> float:
    mean = sum(row[t] for t, row in enumerate(kernel)) / len(kernel)
    least = LEAST_CURVATURE * (mean or 1.0)
    return max(kernel[i][i] + kernel[j][j] - 2.0 * kernel[i][j], least)


def solve_svm(
    kernel: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    tolerance: float,
    most_steps: int,
    beta: np.ndarray,
    f: np.ndarray,
) -> tuple[int, np.ndarray, np.ndarray]:
    """Steps taken, coefficients and gradient; unlike the compiled one it leaves its input alone."""
    rows, lower, upper = kernel.tolist(), low.tolist(), high.tolist()
    b, g = beta.tolist(), f.tolist()
    for step in range(most_steps):
        i, j, violation = violating_pair(rows, lower, upper, b, g)
        if j < 0 or violation < tolerance:
            return step, np.array(b), np.array(g)
        move = min((g[j] - g[i]) / curvature(rows, i, j), upper[i] - b[i], b[j] - lower[j])
        b[i] = upper[i] if move == upper[i] - b[i] else b[i] + move
        b[j] = lower[j] if move == b[j] - lower[j] else b[j] - move
        g = [g[t] + move * (rows[i][t] - rows[j][t]) for t in range(len(g))]
    return most_steps, np.array(b), np.array(g)


def dual_objective(kernel: np.ndarray, y: np.ndarray, beta: np.ndarray) -> float:
    """What a C-SVC minimises, in terms of the signed coefficients ``beta = y alpha``."""
    return 0.5 * float(beta @ kernel @ beta) - float(y @ beta)


def duality_gap(
    kernel: np.ndarray, y: np.ndarray, bound: np.ndarray, beta: np.ndarray, intercept: float
) -> float:
    """Primal minus dual value: how far from the optimum the machine can be at most."""
    slack = np.maximum(0.0, 1.0 - y * (kernel @ beta + intercept))
    primal = 0.5 * float(beta @ kernel @ beta) + float(bound @ slack)
    return primal + dual_objective(kernel, y, beta)
