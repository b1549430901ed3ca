"""Plain-Python twins of ``treelens/kernels/_compiled_approximate.py``."""

from __future__ import annotations

import math

_WORD = 2**64 - 1


def mix(value: int) -> int:
    """The finaliser of splitmix64 on Python's integers."""
    x = (value + 0x9E3779B97F4A7C15) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


def cauchy(seed: int, pattern: int, frequency: int) -> float:
    """The slope of the first hashed point that falls into the disc."""
    word = mix(mix(seed ^ mix(pattern)) ^ mix(frequency))
    while True:
        x, y = (word & 0xFFFFFFFF) + 0.5 - 2.0**31, (word >> 32) + 0.5 - 2.0**31
        if x * x + y * y <= 2.0**62:
            return x / y
        word = mix(word)


def cauchy_sums(rows: list[dict[int, float]], n_frequencies: int, seed: int) -> list[list[float]]:
    """``sum over v of a_v draw(v, j)``, patterns in ascending order."""
    result = []
    for row in rows:
        sums = [0.0] * n_frequencies
        for pattern in sorted(row):
            for j in range(n_frequencies):
                sums[j] += row[pattern] * cauchy(seed, pattern, j)
        result.append(sums)
    return result


def cauchy_projections(patterns: list[int], seed: int, factors: list[float]) -> list[float]:
    result = []
    for pattern in patterns:
        total = 0.0
        for j, factor in enumerate(factors):
            total += factor * cauchy(seed, pattern, j)
        result.append(total)
    return result


def unary(value: float, thresholds: list[float]) -> list[tuple[int, float]]:
    """(place of the threshold, feature) of one entry."""
    features, below = [], 0.0
    for place, threshold in enumerate(thresholds):
        if value <= below:
            break
        gap = threshold - below
        features.append((place, min(gap, value - below) / math.sqrt(gap)))
        below = threshold
    return features
