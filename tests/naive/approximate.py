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


# --- random bins ------------------------------------------------------------------------------


def grid_of(rank: int, n_grids: int, key: int) -> int:
    """The grid of a rank, by the same rounds of odd multiples and shifts."""
    bits = (n_grids - 1).bit_length()
    mask, x = 2**bits - 1, rank
    while True:
        for part in (0, 20, 40):
            x = (x * ((key >> part) | 1) + (key >> (part + 7))) & mask
            x ^= x >> ((bits + 1) // 2)
        if x < n_grids:
            return x


def boundaries(seed: int, pattern: int, n_grids: int) -> dict[int, tuple[float, float, int]]:
    """By grid: a pattern's first boundary, the width of its intervals and the word for names."""
    key, result = mix(seed ^ mix(pattern)), {}
    for rank in range(n_grids):
        word = mix(key ^ rank)
        first = -math.log1p(-(rank + ((word >> 11) + 0.5) / 2.0**53) / n_grids)
        more = -math.log(((mix(word) >> 11) + 0.5) / 2.0**53)
        result[grid_of(rank, n_grids, key)] = (first, first + more, word)
    return result


def bin_names(amounts: dict[int, float], n_grids: int, seed: int) -> list[int]:
    """The name of a graph's bin on every grid."""
    names = [0] * n_grids
    for pattern, amount in amounts.items():
        for grid, (first, width, word) in boundaries(seed, pattern, n_grids).items():
            if amount >= first:
                names[grid] += mix(word ^ (int((amount - first) / width) + 1))
    return [name & _WORD for name in names]


def bin_columns(amounts: dict[int, float], n_grids: int, seed: int, n_buckets: int) -> list[int]:
    names = bin_names(amounts, n_grids, seed)
    return [grid * n_buckets + name % n_buckets for grid, name in enumerate(names)]


def bin_crossings(
    amounts: dict[int, float], n_grids: int, seed: int
) -> list[tuple[int, float, int, int]]:
    """(grid, time, pattern, change of name) of all crossings, by grid, then time."""
    crossings = []
    for pattern, amount in amounts.items():
        for grid, (first, width, word) in boundaries(seed, pattern, n_grids).items():
            number, below = 0, 0
            while first + number * width <= amount:
                name = mix(word ^ (number + 1))
                time = (first + number * width) / amount
                crossings.append((grid, time, pattern, (name - below) & _WORD))
                number, below = number + 1, name
    return sorted(crossings)


def bin_path_terms(
    crossings: list[tuple[int, float, int, int]],
    growth: float,
    n_buckets: int,
    coefficients: list[float],
) -> tuple[dict[int, float], float]:
    """Jumps by pattern, and what the growing factor adds."""
    jumps: dict[int, float] = {}
    grown = 0.0
    for grid in range(len(coefficients) // n_buckets):
        name, before, now = 0, 0.0, coefficients[grid * n_buckets]
        for _, time, pattern, change in (c for c in crossings if c[0] == grid):
            grown += now * (math.exp(growth * time) - math.exp(growth * before))
            name = (name + change) & _WORD
            new = coefficients[grid * n_buckets + name % n_buckets]
            jumps[pattern] = jumps.get(pattern, 0.0) + math.exp(growth * time) * (new - now)
            before, now = time, new
        grown += now * (math.exp(growth) - math.exp(growth * before))
    return jumps, grown
