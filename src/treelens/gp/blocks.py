"""Gaussian processes on more graphs than fit into memory: a sample, and sums over all blocks.

Patterns, weights and landmarks come from a sample; the posterior is that of all graphs, through
sums over landmarks (:class:`treelens.gp.landmarks.LandmarkSums`), whose size does not depend on
how many graphs there are. The sample is drawn by a hash of each graph's number, so it does not
depend on how blocks are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from treelens.gp.executors import SerialExecutor
from treelens.gp.landmarks import (
    BLOCK,
    BlockSums,
    LandmarkPosterior,
    LandmarkSums,
    block_slices,
    factor_landmarks,
    sums_of_block,
)
from treelens.gp.model import FittedGP, WeightedForest
from treelens.gp.posterior import LeaveOneOut
from treelens.gp.targets import Targets
from treelens.graphs.blocks import (
    Block,
    GraphPart,
    Part,
    block_name,
    graph_name,
    parts_of,
    repeat_messages,
)
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.convert import as_graph_collection
from treelens.graphs.errors import GraphDataError
from treelens.kernels.mixture import MixtureKernel
from treelens.patterns.features import Features, select_features

_TASK_SIZE = 8 * BLOCK  # graphs that a task sent to a worker holds at least
# The position of the first target that cannot be learned from, and words about it; None: all can.
FirstWrong = Callable[[np.ndarray], tuple[int, str] | None]


class BlockSample(NamedTuple):
    """Some graphs of the blocks, and the targets of all."""

    graphs: GraphCollection
    y: np.ndarray
    all_targets: np.ndarray  # (n_graphs in all,)
    part_sizes: list[int]  # how many graphs each part held


def sample_of_blocks(
    blocks: Any,
    size: int,
    seed: int,
    first_wrong: FirstWrong = lambda y: None,
    executor: Any = None,
) -> BlockSample:
    """``size`` graphs, or all, drawn evenly; the same ones however the blocks are cut.

    Parameters
    ----------
    blocks : iterable of parts, or of pairs ``(graphs, y)``
    size : int
    seed : int
    first_wrong : callable
        Of the targets of a block, the first that cannot be learned from, with words about it.
    executor : executor, optional
        Where blocks are read; by default here. All graphs come by here once, some at a time: which
        of them are drawn depends on how many came before.
    """
    kept: dict[int, tuple[int, Graph]] = {}  # by number: its key, and the graph
    targets: list[np.ndarray] = []
    sizes: list[int] = []
    first, limit = 0, 2**64
    for number, block in enumerate(_read(blocks, executor)):
        repeat_messages(block.messages)
        sizes.append(0 if block.graphs is None else len(block.graphs))
        if block.graphs is None or not len(block.graphs):
            continue
        if block.y is None:
            raise GraphDataError(
                f"{block_name(number)} holds no targets: give every block its y (SmilesBlocks: "
                "target=..., CollectionBlocks: y=..., else pairs (graphs, y))."
            )
        _check_targets(number, block, first, first_wrong)
        numbers = np.arange(first, first + len(block.graphs))
        keys = _mixed(numbers, seed)
        for row in np.flatnonzero(keys < limit) if limit < 2**64 else range(len(numbers)):
            kept[int(numbers[row])] = (int(keys[row]), block.graphs[int(row)])
        kept, limit = _smallest(kept, size, limit)
        targets.append(np.asarray(block.y))
        first += len(block.graphs)
    if first < 2:
        raise GraphDataError(f"The blocks hold {first} graphs: at least two are needed.")
    _check_kinds(targets)
    y = np.concatenate(targets)
    drawn = sorted(kept)
    graphs = as_graph_collection([kept[number][1] for number in drawn])
    return BlockSample(graphs, y[drawn], y, sizes)


def _read(blocks: Any, executor: Any) -> Iterator[Block]:
    """Blocks in their order, read by the executor unless they are in memory here."""
    parts = parts_of(blocks)
    first = next(parts, None)
    if first is None:
        return iter(())
    if isinstance(first, GraphPart):
        executor = None
    together = ((part,) for part in chain([first], parts))
    return iter((executor or SerialExecutor()).map(_load, together))


def _load(part: Part) -> Block:
    return part.load()


def _check_kinds(targets: list[np.ndarray]) -> None:
    """Texts and numbers would silently become texts."""
    kinds = {("numbers" if y.dtype.kind in "biuf" else "texts") for y in targets}
    if len(kinds) > 1:
        raise GraphDataError(
            "Some blocks hold numbers as targets, others texts: give all of them one kind."
        )


def _check_targets(number: int, block: Block, n_before: int, first_wrong: FirstWrong) -> None:
    """An error that names the first wrong target by where it stands in the user's data."""
    assert block.y is not None
    wrong = first_wrong(np.asarray(block.y))
    if wrong is not None:
        graph, what = wrong
        raise GraphDataError(
            f"{graph_name(number, graph, block, n_before)}: {what}. Drop the graph or give it a "
            "target."
        )


def _smallest(
    kept: dict[int, tuple[int, Graph]], size: int, limit: int
) -> tuple[dict[int, tuple[int, Graph]], int]:
    """The graphs with the smallest keys, and the key that a further one must be below."""
    if len(kept) <= size:
        return kept, limit
    chosen = sorted(kept, key=lambda number: kept[number][0])[:size]
    return {number: kept[number] for number in chosen}, kept[chosen[-1]][0]


def _mixed(numbers: np.ndarray, seed: int) -> np.ndarray:
    """A hash of each number under a seed, as uint64.

    Seeds are mixed by themselves first: a seed that is only added shifts the keys of all graphs,
    and samples of neighbouring seeds would be shifted copies of each other.
    """
    own = _scattered(np.array([seed], dtype=np.uint64))
    return _scattered(_scattered(numbers.astype(np.uint64)) ^ own)


def _scattered(words: np.ndarray) -> np.ndarray:
    """Splitmix64 of whole numbers."""
    words = (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


class LandmarkView(NamedTuple):
    """All that a worker needs to compare graphs with the landmarks."""

    weighted: WeightedForest
    kernel: MixtureKernel
    landmarks: Features
    factor: np.ndarray  # (m, m) of the kernel among landmarks
    noise: float

    def sums(self, graphs: GraphCollection, targets: Targets, n_jobs: int = 1) -> BlockSums:
        """Return what some graphs add to the sums over landmarks."""
        total: BlockSums | None = None
        for where in block_slices(len(graphs)):
            some, own = graphs[where], targets.select(where)
            features = self.weighted.refine(some, n_jobs).features
            rows = self.kernel.matrix(features, self.landmarks, n_jobs)
            noise = self.noise / own.weights
            found = sums_of_block(self.factor, rows, noise, own.values, n_jobs)
            total = found if total is None else BlockSums(*map(np.add, total, found))
        assert total is not None
        return total


def posterior_of_blocks(
    model: FittedGP,
    blocks: Any,
    sample: BlockSample,
    targets: Targets,
    sample_targets: Targets,
    n_jobs: int = 1,
    executor: Any = None,
) -> tuple[LandmarkPosterior, LeaveOneOut]:
    """Return the posterior given all graphs, and leave-one-out predictions of the sample.

    Parameters
    ----------
    model : FittedGP
        Of the sample; its basis graphs are the landmarks.
    blocks : as in :func:`sample_of_blocks`
    sample : BlockSample
    targets, sample_targets : Targets
        Of all graphs and of the sample's, standardised as the model's.
    n_jobs : int
    executor : executor, optional
        Where blocks are worked on (:mod:`treelens.gp.executors`), one thread each; by default
        one after the other, here.
    """
    among = model.kernel_rows(model.basis_graphs, n_jobs)
    factor = factor_landmarks(among.copy(), n_jobs)
    view = LandmarkView(model.weighted, model.kernel, model.basis_graphs, factor, model.noise)
    alone = executor is None
    runs = _runs(parts_of(blocks, model.recipe), sample.part_sizes, targets, not alone)
    found = (executor or SerialExecutor()).map(_sums_of_run, runs, view, n_jobs if alone else 1)
    sums = LandmarkSums.added(factor, found, targets.values.shape[1])
    assert model.training is not None
    everything = model.weighted.weighed(model.training.histograms)
    own = (
        (s, model.kernel_rows(select_features(everything, np.arange(s.start, s.stop)), n_jobs))
        for s in block_slices(len(sample_targets.values))
    )
    noise = model.noise / sample_targets.weights
    return LandmarkPosterior.of_sums(
        sums, model.basis_indices, among, own, noise, sample_targets.values, n_jobs
    )


class Run(NamedTuple):
    """Neighbouring parts, which are one task of a worker."""

    parts: tuple[Part, ...]
    first: int  # number of the first graph
    targets: Targets


def _runs(
    parts: Iterable[Part], sizes: Sequence[int], targets: Targets, together: bool
) -> Iterator[Run]:
    """Parts with their targets: one at a time, or ``together`` until a task is worth sending.

    ``sizes`` are the numbers of graphs that the parts held when they were read before.
    """
    least = _TASK_SIZE if together else 1
    waiting: list[Part] = []
    first = last = n_parts = 0
    for n_parts, part in enumerate(parts, start=1):
        if n_parts > len(sizes):
            raise _changed(f"There were {len(sizes)} blocks at first, and more")
        waiting.append(part)
        last += sizes[n_parts - 1]
        if last - first >= least:
            yield Run(tuple(waiting), first, targets.select(slice(first, last)))
            waiting, first = [], last
    if n_parts < len(sizes):
        raise _changed(f"There were {len(sizes)} blocks at first, and {n_parts}")
    if last > first:
        yield Run(tuple(waiting), first, targets.select(slice(first, last)))


def _changed(what: str) -> GraphDataError:
    return GraphDataError(
        f"{what} when they were read again: blocks are read twice, and must hold the same graphs "
        "in the same order each time."
    )


def _sums_of_run(
    parts: tuple[Part, ...], first: int, targets: Targets, view: LandmarkView, n_jobs: int = 1
) -> BlockSums:
    """The task of one worker."""
    total: BlockSums | None = None
    start = 0
    for part in parts:
        graphs = part.load().graphs
        if graphs is None or not len(graphs):
            continue
        stop = start + len(graphs)
        if stop <= len(targets.values):
            found = view.sums(graphs, targets.select(slice(start, stop)), n_jobs)
            total = found if total is None else BlockSums(*map(np.add, total, found))
        start = stop
    if total is None or start != len(targets.values):
        raise _changed(
            f"From graph {first} on, blocks held {len(targets.values)} graphs at first, and {start}"
        )
    return total
