"""Draws of training graphs, for weights and landmarks, and the memory that a fit takes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from treelens.gp.landmarks import BLOCK, MOST_KEPT

_FEWEST = 200  # fewer graphs than this tell too little about the scales of a kernel
_RATIO = 3  # of a commoner class, at most so many graphs for one of the rarest
# One landmark of so many is drawn by chance; the others are chosen by what those leave open. Where
# a class is rare, most of the chosen are of it, and chance has to speak for the others.
_BY_CHANCE, _BY_CHANCE_IF_RARE = 4, 2
_BYTES = 8  # of a number in double precision
# Limit and use of the control group of this process, of versions 2 and 1.
_CGROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def draw_by_group(groups: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return ``size`` positions, or all, in proportion to the groups' sizes, ascending."""
    n = len(groups)
    if size >= n:
        return np.arange(n)
    shuffled = np.random.default_rng(seed).permutation(n)
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    # Every n / size-th position of the list sorted by group, so that each has its share.
    picks = (np.arange(size) * n) // size
    return np.sort(by_group[picks])


def tenths_by_rank(values: np.ndarray) -> np.ndarray:
    """Groups of values: a sample drawn from each tenth keeps the spread of the whole."""
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return rank * 10 // len(values)


def draw_rare(codes: np.ndarray, size: int, seed: int) -> np.ndarray:
    """The rarest class whole, and at most three times as many graphs of each other one, ascending.

    Where most targets are the same number, a Gaussian process can say them without any noise and
    at any weights, and evidence rewards weights that do: they rank worse than uniform ones. So the
    weights of rare classes are learned from classes of nearer sizes, 200 graphs in all or more; if
    there are more than ``size`` of them, from an even share of that.
    """
    counts = np.bincount(codes)
    share = size // len(counts)
    rarest = max(1, min(int(counts.min()), share))
    others = max(_RATIO * rarest, _FEWEST - rarest)
    others = max(1, min(others, (size - rarest) // max(1, len(counts) - 1)))
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    by_class = [
        shuffled[codes[shuffled] == code][: rarest if code == counts.argmin() else others]
        for code in range(len(counts))
    ]
    return np.sort(np.concatenate(by_class))


class LearningSample(NamedTuple):
    """Which graphs weights are learned on, and which ones scales are then fitted to again."""

    weights: np.ndarray
    scales: np.ndarray | None = None  # None: those that were found with the weights stay

    @property
    def positions(self) -> np.ndarray:
        """All graphs that are used, ascending."""
        return self.weights if self.scales is None else np.union1d(self.weights, self.scales)

    @property
    def largest(self) -> int:
        return max(len(part) for part in self if part is not None)


def sample_for(groups: np.ndarray, rare: bool, size: int, seed: int) -> LearningSample:
    """Graphs in proportion or, where a class is ``rare``, more of it than its share.

    Noise and amplitude that suit one proportion do not suit another: those of the rare are fitted
    again to graphs in the proportions that predictions will meet.
    """
    in_proportion = draw_by_group(groups, size, seed)
    if not rare:
        return LearningSample(in_proportion)
    return LearningSample(draw_rare(groups, size, seed), in_proportion)


class LandmarkPlan(NamedTuple):
    """How many landmarks there shall be, and those of them that are drawn by chance."""

    n_landmarks: int
    first: np.ndarray


def landmarks_for(
    groups: np.ndarray, exact_size: int, n_landmarks: int, seed: int, rare: bool = False
) -> LandmarkPlan | None:
    """Landmarks where there are too many graphs for all of them to be used, else None."""
    if len(groups) <= exact_size:
        return None
    total = min(n_landmarks, len(groups))
    by_chance = total // (_BY_CHANCE_IF_RARE if rare else _BY_CHANCE)
    return LandmarkPlan(total, draw_by_group(groups, max(1, by_chance), seed + 1))


def check_memory(n_graphs: int, n_learning: int, n_landmarks: int | None) -> None:
    """Refuse, before any work, what the available memory cannot hold.

    Learning takes two matrices of the graphs that weights are learned from; the exact posterior
    three of all graphs; landmarks eight matrices of landmarks and four of a block by landmarks, or
    two of graphs by landmarks while they are chosen.
    """
    conditioning = 3 * n_graphs**2
    if n_landmarks is not None:
        kept = 2 * min(MOST_KEPT, n_graphs * n_landmarks)
        conditioning = 8 * n_landmarks**2 + max(kept, 4 * min(BLOCK, n_graphs) * n_landmarks)
    needed, available = _BYTES * max(2 * n_learning**2, conditioning), available_bytes()
    if needed > available:
        raise MemoryError(
            f"Fitting {n_graphs} graphs would take about {needed / 2**30:.1f} GiB, and "
            f"{available / 2**30:.1f} GiB are free. Lower exact_size (beyond it predictions go "
            "through landmarks), n_landmarks or learning_size."
        )


def available_bytes(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the memory that is free, within the limit of a container where there is one."""
    import psutil

    available = int(psutil.virtual_memory().available)
    for limit_file, use_file in _CGROUPS:
        try:
            limit = int((cgroups / limit_file).read_text())
            available = min(available, max(limit - int((cgroups / use_file).read_text()), 0))
        except (OSError, ValueError):  # no such group, or no limit ("max")
            continue
    return available
