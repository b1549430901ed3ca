"""Compiled losses of pairs, and stochastic steps. Plain-Python twins: ``tests/naive/learning.py``.

The cost of a step is the number of patterns that two graphs share, not the size of the vocabulary:
the weights of one depth are ``w = 1 + scale * u`` with one number ``scale`` for all, and a running
``||u||²`` shows whether they left their ball. Then projecting is one multiplication.

Cutting at zero stays exact that way: a projection only shrinks ``w - 1``, so a weight that the step
did not touch and that was not negative before is not negative after.

The mean of all iterates is kept lazily too. With ``elapsed`` the sum of ``scale`` over the steps so
far, a weight that never changed adds ``u * elapsed``; when ``u`` changes by ``delta``, ``late``
grows by ``delta * elapsed``, which is subtracted at the end.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

_SMALLEST_SCALE = 1e-6  # below it the scale is multiplied into u, and starts again from 1


class PairRows(NamedTuple):
    """The patterns of each graph, and their values."""

    row_offsets: np.ndarray  # (n_graphs + 1,)
    row_patterns: np.ndarray  # ascending within a graph
    row_values: np.ndarray
    scale: np.ndarray  # (n_graphs,)
    minimum: bool

    @classmethod
    def of(cls, features):
        rows = features.rows
        return cls(rows.offsets, rows.indices, rows.values, features.scale, bool(features.minimum))


class StepState(NamedTuple):
    """Current weights, and what their running mean needs."""

    u: np.ndarray  # (n_patterns,)
    scale: np.ndarray  # (n_depths,)
    squares: np.ndarray  # (n_depths,) sums of u²
    late: np.ndarray  # (n_patterns,)
    elapsed: np.ndarray  # (n_depths,)
    total: np.ndarray  # (n_patterns,) sum of w - 1 over the steps before the last rescaling

    @classmethod
    def fresh(cls, n_patterns, n_depths):
        u, late, total = np.zeros((3, n_patterns))
        squares, elapsed = np.zeros((2, n_depths))
        return cls(u, np.ones(n_depths), squares, late, elapsed, total)


class StepRules(NamedTuple):
    """Constraint, loss and step size."""

    level_offsets: np.ndarray  # (n_depths + 1,)
    radii: np.ndarray  # (n_depths,)
    b: float
    alpha1: float
    alpha2: float
    sigma: float
    step_size: float


@njit(cache=True, nogil=True)
def slopes_of_rows(
    first, sums, scale, codes, b, alpha1, alpha2, sigma, different_weight, same_weight, losses
):
    """Overwrite the sums of rows ``first, first + 1, ...`` by slopes, from the diagonal on.

    A slope is ``d loss / d <W, Z>``, times the scales of the pair and its weight; a graph with
    itself counts half. ``losses`` (n_graphs,) are added to, column by column. The hinge is written
    without branches (see ``objective.py``), so that the loop vectorises.
    """
    for k in range(len(sums)):
        i = first + k
        row, row_scale, row_codes, row_losses = sums[k, i:], scale[i:], codes[i:], losses[i:]
        before = row_losses[0]
        for j in range(len(row)):
            distance = b - row[j]
            same = row_codes[j] == codes[i]
            inside = distance - alpha2 if same else alpha1 - distance
            weight = same_weight if same else different_weight
            cut = min(max(inside, 0.0), sigma)
            row_losses[j] += weight * (cut * (inside - 0.5 * cut) / sigma)
            slope = weight * (cut / sigma)
            row[j] = (-slope if same else slope) * (scale[i] * row_scale[j])
        row_losses[0] = 0.5 * (before + row_losses[0])
        row[0] *= 0.5


@njit(cache=True, nogil=True)
def _shared_patterns(pairs, i, j, entry_of_pattern, patterns, products):
    """The patterns that two graphs share and ``Z(i, j)`` there; returns their number."""
    # Graph `i` leaves the places of its entries in a table over all patterns, graph `j` looks
    # them up. What earlier graphs left there needs no clearing: their places are not among `i`'s.
    row_patterns, row_values = pairs.row_patterns, pairs.row_values
    start, stop = pairs.row_offsets[i], pairs.row_offsets[i + 1]
    for a in range(start, stop):
        entry_of_pattern[row_patterns[a]] = a
    used = 0
    for c in range(pairs.row_offsets[j], pairs.row_offsets[j + 1]):
        a = entry_of_pattern[row_patterns[c]]
        patterns[used] = c  # written in any case, kept if shared: no branch to mispredict
        used += (a >= start) & (a < stop)
    both = pairs.scale[i] * pairs.scale[j]
    for k in range(used):
        c = patterns[k]
        patterns[k] = row_patterns[c]
        x, y = row_values[entry_of_pattern[patterns[k]]], row_values[c]
        products[k] = both * (min(x, y) if pairs.minimum else x * y)
    return used


@njit(cache=True, nogil=True)
def _set(state, level, pattern, value):
    """Give one ``u`` a new value, and update the running sums."""
    old = state.u[pattern]
    state.squares[level] += (value - old) * (value + old)
    state.late[pattern] += (value - old) * state.elapsed[level]
    state.u[pattern] = value


@njit(cache=True, nogil=True)
def rescale_level(state, level, start, stop):
    """Multiply the scale of one depth into ``u`` and sum the squares afresh."""
    squares = 0.0
    for v in range(start, stop):
        state.total[v] += state.u[v] * state.elapsed[level] - state.late[v]
        state.late[v] = 0.0
        state.u[v] *= state.scale[level]
        squares += state.u[v] * state.u[v]
    state.squares[level] = squares
    state.elapsed[level] = 0.0
    state.scale[level] = 1.0


@njit(cache=True, nogil=True)
def _project_touched(state, level, radius, patterns, start, stop, low, low_patterns):
    """Project on the ball cut by the orthant: shrink by one divisor, zero what stays below."""
    # The divisor is found as in `treelens.pairwise.objective.project_ball`, by trying how
    # many weights end at zero: `low` is how far below 1 those are that may, farthest first.
    n_low = 0
    for a in range(start, stop if radius > 1.0 else start):
        below = -state.scale[level] * state.u[patterns[a]]
        if below <= 1.0:
            continue
        place = n_low
        while place > 0 and low[place - 1] < below:
            low[place], low_patterns[place] = low[place - 1], low_patterns[place - 1]
            place -= 1
        low[place], low_patterns[place] = below, patterns[a]
        n_low += 1
    square = state.scale[level] ** 2 * state.squares[level]
    cut_square = square
    for k in range(n_low):
        cut_square += 1.0 - low[k] ** 2
    zeroed = n_low
    if cut_square > radius * radius:
        rest, zeroed, divisor = square, 0, np.sqrt(square) / radius
        while zeroed < n_low and low[zeroed] > divisor:
            rest -= low[zeroed] ** 2
            zeroed += 1
            divisor = np.sqrt(max(rest, 0.0) / (radius * radius - zeroed))
        state.scale[level] /= divisor
    for k in range(zeroed):
        _set(state, level, low_patterns[k], -1.0 / state.scale[level])


@njit(cache=True, nogil=True)
def run_steps(pairs, codes, rules, state, first, second, factors):
    """One projected step for each drawn pair ``(first[t], second[t])``, its loss times a factor."""
    offsets, radii = rules.level_offsets, rules.radii
    n_levels = len(radii)
    room = np.diff(pairs.row_offsets).max() + 1
    patterns, products = np.zeros(room, np.int64), np.zeros(room)
    low, low_patterns = np.zeros(room), np.zeros(room, np.int64)
    ends = np.zeros(n_levels + 1, np.int64)  # where the shared patterns of each depth end
    entry_of_pattern = np.full(len(state.u), -1, np.int64)
    u, scale, elapsed = state.u, state.scale, state.elapsed
    for t in range(len(first)):
        i, j = first[t], second[t]
        used = _shared_patterns(pairs, i, j, entry_of_pattern, patterns, products)
        distance, a = rules.b, 0
        for level in range(n_levels):
            shift, plain = 0.0, 0.0
            while a < used and patterns[a] < offsets[level + 1]:
                plain += products[a]
                shift += u[patterns[a]] * products[a]
                a += 1
            distance -= plain + scale[level] * shift
            ends[level + 1] = a
        # V1 (different labels) pushes the weights of shared patterns down, V2 (same label) up.
        same = codes[i] == codes[j]
        inside = distance - rules.alpha2 if same else rules.alpha1 - distance
        slope = min(max(inside, 0.0), rules.sigma) / rules.sigma * factors[t]
        slope = -slope if same else slope
        for level in range(n_levels):
            start, stop = ends[level], ends[level + 1]
            if slope != 0.0 and stop > start and radii[level] > 0:
                move = -rules.step_size * slope / scale[level]
                for a in range(start, stop):
                    _set(state, level, patterns[a], u[patterns[a]] + move * products[a])
                _project_touched(
                    state, level, radii[level], patterns, start, stop, low, low_patterns
                )
                if scale[level] < _SMALLEST_SCALE:
                    rescale_level(state, level, offsets[level], offsets[level + 1])
            elapsed[level] += scale[level]
