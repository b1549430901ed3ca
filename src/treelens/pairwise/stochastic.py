"""Stochastic projected gradient: single pairs, each step as cheap as what the pair shares.

The paper's Algorithm 1, with its branches the right way round: V1, which pushes apart, for
*different* labels, V2 for the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from treelens.pairwise import _compiled_pairs
from treelens.pairwise._compiled_pairs import StepRules, StepState
from treelens.pairwise.certificate import Certificate
from treelens.pairwise.constraints import CENTER, BallConstraint, Constraint
from treelens.pairwise.objective import AllPairsObjective, ListedPairsObjective

Draw = tuple[np.ndarray, np.ndarray, np.ndarray]  # first graphs, second graphs, factors
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Schedule:
    """How long to step, and over which pairs.

    Attributes
    ----------
    n_steps : int
        Single pairs drawn with replacement; used if ``n_epochs`` is None.
    n_epochs : int or None
        Passes over a random cut of the graphs into disjoint pairs.
    step_size : float
    halvings : int
        How often the step is halved. Every stage has twice as many steps as the one before, so
        that the noise of the steps dies out while the weights can still get everywhere.
    average : bool
        Return the mean of the last stage's iterates instead of the last one.
    n_checks : int
        How often the full objective is evaluated, the end included; 0 never.
    """

    n_steps: int
    n_epochs: int | None
    step_size: float
    halvings: int
    average: bool
    n_checks: int

    def total_steps(self, n_graphs: int) -> int:
        """Number of single-pair steps."""
        return self.n_steps if self.n_epochs is None else self.n_epochs * (n_graphs // 2)

    def stage_ends(self, n_graphs: int) -> list[int]:
        """After how many steps each stage ends."""
        n_total = self.total_steps(n_graphs)
        return [n_total * (2**k - 1) // (2 ** (self.halvings + 1) - 1)
                for k in range(1, self.halvings + 2)]  # fmt: skip


def stochastic_gradient(
    objective: AllPairsObjective | ListedPairsObjective,
    constraint: Constraint,
    schedule: Schedule,
    *,
    tol: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, Certificate, int]:
    """Single-pair projected steps from uniform weights.

    Returns
    -------
    weights : ndarray, shape (n_patterns,)
    certificate : Certificate
        With one entry per check; empty if there was none.
    n_done : int
        Steps taken: fewer than planned if a check found the tolerance reached.
    """
    certificate = Certificate(constraint, tol)
    state = _fresh_state(objective.n_patterns, len(constraint.radii))
    n_graphs = len(objective.codes)
    ends = schedule.stage_ends(n_graphs)
    checks = np.linspace(0, ends[-1], schedule.n_checks + 1).astype(int)[1:]
    n_done, n_averaged, stage, stage_start = 0, 0, 0, 0
    rules = _rules(objective, constraint, schedule.step_size)
    if schedule.n_checks:
        _check(objective, certificate, np.full(objective.n_patterns, CENTER))
    for first, second, factors in draw_pairs(objective, schedule, rng, {*ends, *checks.tolist()}):
        while stage < schedule.halvings and n_done >= ends[stage]:
            stage, stage_start = stage + 1, n_done
            rules = rules._replace(step_size=0.5 * rules.step_size)
            state.total[:] = 0.0
        _compiled_pairs.run_steps(
            objective.pairs, objective.codes, rules, state, first, second, factors
        )
        _rescale(state, constraint.level_offsets)
        n_done += len(first)
        n_averaged = n_done - stage_start if schedule.average else 0
        if n_done in checks:
            _check(objective, certificate, _weights(state, constraint, n_averaged))
            if certificate.converged:
                break
    return _weights(state, constraint, n_averaged), certificate, n_done


def draw_pairs(
    objective: AllPairsObjective | ListedPairsObjective,
    schedule: Schedule,
    rng: np.random.Generator,
    stops: set[int],
) -> Iterator[Draw]:
    """The drawn pairs in chunks; no chunk runs over one of the ``stops``."""
    n_graphs = len(objective.codes)
    n_total = schedule.total_steps(n_graphs)
    if schedule.n_epochs is None:
        chunks = _independent_pairs(objective, n_total, rng)
    else:
        chunks = _disjoint_pairs(objective, schedule.n_epochs, rng)
    done = 0
    for chunk in chunks:
        size = len(chunk[0])
        inside = sorted(stop - done for stop in stops if 0 < stop - done < size)
        for start, stop in zip([0, *inside], [*inside, size], strict=True):
            yield chunk[0][start:stop], chunk[1][start:stop], chunk[2][start:stop]
        done += size


def _independent_pairs(
    objective: AllPairsObjective | ListedPairsObjective, n_total: int, rng: np.random.Generator
) -> Iterator[Draw]:
    """Ordered pairs with replacement, a graph with itself included."""
    for start in range(0, n_total, _CHUNK):
        size = min(_CHUNK, n_total - start)
        if isinstance(objective, ListedPairsObjective):
            drawn = rng.integers(len(objective.first), size=size)
            factors = objective.pair_weights[drawn] * len(objective.first)
            yield objective.first[drawn], objective.second[drawn], factors
        else:
            first, second = rng.integers(len(objective.codes), size=(2, size), dtype=np.int32)
            yield first, second, _factors(objective, first, second)


def _disjoint_pairs(
    objective: AllPairsObjective | ListedPairsObjective, n_epochs: int, rng: np.random.Generator
) -> Iterator[Draw]:
    """Every graph once an epoch, paired at random; with an odd number one sits out."""
    if isinstance(objective, ListedPairsObjective):
        raise ValueError("Epochs over disjoint pairs need pairs='all'; use n_steps instead.")
    n_graphs = len(objective.codes)
    per_chunk = max(1, _CHUNK // max(1, n_graphs // 2))
    for start in range(0, n_epochs, per_chunk):
        orders = np.array(
            [rng.permutation(n_graphs) for _ in range(min(per_chunk, n_epochs - start))]
        ).astype(np.int32)
        half = n_graphs // 2
        first, second = orders[:, :half].ravel(), orders[:, half : 2 * half].ravel()
        yield first, second, _factors(objective, first, second)


def _factors(objective: AllPairsObjective, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """What makes the mean over drawn ordered pairs the weighted objective."""
    same = objective.codes[first] == objective.codes[second]
    loss = objective.loss
    ordered = 0.5 * float(len(objective.codes)) ** 2
    return np.where(same, loss.weight_same * ordered, loss.weight_different * ordered)


def _fresh_state(n_patterns: int, n_depths: int) -> StepState:
    return StepState(
        np.zeros(n_patterns), np.ones(n_depths), np.zeros(n_depths),
        np.zeros(n_patterns), np.zeros(n_depths), np.zeros(n_patterns),
    )  # fmt: skip


def _rules(
    objective: AllPairsObjective | ListedPairsObjective,
    constraint: Constraint,
    step_size: float,
) -> StepRules:
    loss = objective.loss
    ball = isinstance(constraint, BallConstraint)
    return StepRules(
        constraint.level_offsets, constraint.radii, objective.movable, ball,
        loss.b, loss.alpha1, loss.alpha2, loss.sigma, step_size,
    )  # fmt: skip


def _rescale(state: StepState, level_offsets: np.ndarray) -> None:
    """Clear the rounding of the running sums: afterwards every scale is 1."""
    for level in range(len(state.scale)):
        start, stop = level_offsets[level], level_offsets[level + 1]
        _compiled_pairs.rescale_level(state, level, start, stop)


def _weights(state: StepState, constraint: Constraint, n_averaged: int) -> np.ndarray:
    """Mean of the last iterates, or for 0 the last one, of a rescaled state.

    Projecting again only removes rounding.
    """
    shift = state.total / n_averaged if n_averaged else state.u
    return constraint.project(CENTER + shift)


def _check(
    objective: AllPairsObjective | ListedPairsObjective,
    certificate: Certificate,
    weights: np.ndarray,
) -> None:
    value, gradient = objective.value_and_gradient(weights)
    certificate.observe(weights, value, gradient)
    certificate.record(value)
