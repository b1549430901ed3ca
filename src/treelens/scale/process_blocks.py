"""Gaussian processes on more graphs than fit into memory: a sample, and sums over all blocks.

Patterns, weights and landmarks come from a sample; what all graphs say is added up in sums over
landmarks (:class:`treelens.learning.sparse_evidence.LandmarkSums`), whose size does not depend on
how many graphs there are. The sample is drawn by a hash of each graph's number, and the sums are
made over a fixed number of graphs at a time, so the model does not depend on how blocks are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.blocks import Block, block_name, graph_name, parts_of, repeat_messages
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.convert import as_graph_collection
from treelens.graphs.errors import GraphDataError
from treelens.learning import sparse_evidence
from treelens.learning.sparse_evidence import LandmarkSums
from treelens.models.gaussian_process import FittedGaussianProcess
from treelens.models.posterior import LeaveOneOut
from treelens.models.sparse_process import KernelBlock, LandmarkPosterior
from treelens.patterns.features import select_features

# The position of the first target that cannot be learned from, and words about it; None: all can.
FirstWrong = Callable[[np.ndarray], tuple[int, str] | None]


class BlockSample(NamedTuple):
    """Some graphs of the blocks, and the targets of all."""

    graphs: GraphCollection
    y: np.ndarray
    all_targets: np.ndarray  # (n_graphs in all,)


def sample_of_blocks(
    blocks: Any, size: int, seed: int, first_wrong: FirstWrong = lambda y: None
) -> BlockSample:
    """``size`` graphs, or all, drawn evenly; the same ones however the blocks are cut.

    Parameters
    ----------
    blocks : iterable of parts, or of pairs ``(graphs, y)``
    size : int
    seed : int
    first_wrong : callable
        Of the targets of a block, the first that cannot be learned from, with words about it.
    """
    kept: dict[int, tuple[int, Graph]] = {}  # by number: its key, and the graph
    targets: list[np.ndarray] = []
    first, limit = 0, 2**64
    for number, part in enumerate(parts_of(blocks)):
        block = part.load()
        repeat_messages(block.messages)
        if block.graphs is None:
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
    if not targets:
        raise GraphDataError("The blocks hold 0 graphs: at least two are needed.")
    y = np.concatenate(targets)
    drawn = sorted(kept)
    graphs = as_graph_collection([kept[number][1] for number in drawn])
    return BlockSample(graphs, y[drawn], y)


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


def posterior_of_blocks(
    model: FittedGaussianProcess,
    blocks: Any,
    targets: np.ndarray,
    sample_targets: np.ndarray,
    n_jobs: int = 1,
) -> tuple[LandmarkPosterior, LeaveOneOut]:
    """The posterior given all graphs, and what it says of the sample's, each left out.

    Parameters
    ----------
    model : FittedGaussianProcess
        Of the sample, of which it keeps the counts; its basis graphs are the landmarks.
    blocks : as in :func:`sample_of_blocks`
    targets : ndarray, shape (n_graphs in all, n_columns)
        Standardised as the model's.
    sample_targets : ndarray, shape (n_sample, n_columns)
    n_jobs : int
    """
    among = model.kernel_rows(model.basis_graphs, n_jobs)
    graphs_again = _graphs_of(blocks, model, len(targets))
    found = (model.look_at(graphs, n_jobs).features for graphs in graphs_again)
    rows = (model.kernel_rows(features, n_jobs) for features in found)
    noise = np.full(len(targets), model.noise)
    sums = LandmarkSums.gather(among.copy(), in_chunks(rows), noise, targets, n_jobs)
    assert model.training is not None
    everything = model.weighted.weighed(model.training.histograms)
    own = (
        model.kernel_rows(select_features(everything, np.arange(s.start, s.stop)), n_jobs)
        for s in sparse_evidence.block_slices(len(sample_targets))
    )
    return LandmarkPosterior.of_sums(
        sums, model.basis_indices, among, in_chunks(own), noise[: len(sample_targets)],
        sample_targets, n_jobs,
    )  # fmt: skip


def _graphs_of(
    blocks: Any, model: FittedGaussianProcess, n_expected: int
) -> Iterator[GraphCollection]:
    """The graphs of all blocks once more, which have to be those that were there before."""
    n_graphs = 0
    for part in parts_of(blocks, model.recipe):
        graphs = part.load().graphs
        if graphs is not None:
            n_graphs += len(graphs)
            if n_graphs <= n_expected:
                yield graphs
    if n_graphs != n_expected:
        raise GraphDataError(
            f"The blocks held {n_expected} graphs at first, and {n_graphs} when they were read "
            "again: they are read twice, and must hold the same graphs in the same order each time."
        )


def in_chunks(rows: Iterable[np.ndarray]) -> Iterator[KernelBlock]:
    """Kernel rows in chunks of a fixed size, however many of them come at a time.

    Examples
    --------
    >>> pieces = [np.zeros((3000, 1)), np.zeros((2000, 1))]
    >>> [(where.start, where.stop, len(chunk)) for where, chunk in in_chunks(pieces)]
    [(0, 2048, 2048), (2048, 4096, 2048), (4096, 5000, 904)]
    """
    size, first = sparse_evidence.BLOCK, 0
    waiting: list[np.ndarray] = []
    for piece in rows:
        waiting.append(piece)
        if sum(map(len, waiting)) < size:
            continue
        together = np.concatenate(waiting)
        whole = len(together) - len(together) % size
        for start in range(0, whole, size):
            yield slice(first, first + size), together[start : start + size]
            first += size
        waiting = [together[whole:]]
    rest = np.concatenate(waiting) if waiting else np.empty((0, 0))
    if len(rest):
        yield slice(first, first + len(rest)), rest
