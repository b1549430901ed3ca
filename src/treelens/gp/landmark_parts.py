"""Sums over landmarks from graphs that are worked on in many places.

Rounding makes a sum depend on its order. So all sums are made over the same chunks of graphs,
``sparse_evidence.BLOCK`` of them by their number, and added in the order of the chunks: however
blocks are cut and whoever works on them, the bits are the same. A worker sends the sums of the
chunks that it has whole, and of a chunk that others share the rows of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from treelens.gp import sparse_evidence
from treelens.gp.fitting import Targets
from treelens.gp.model import FittedGP, WeightedForest
from treelens.gp.sparse_evidence import ChunkSums, sums_of_chunk
from treelens.gp.sparse_process import KernelBlock
from treelens.graphs.blocks import Part
from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.kernels.mixture import MixtureKernel
from treelens.patterns.features import Features

_CHUNKS_PER_RUN = 8  # of a run of parts sent to a worker: few of its chunks are shared with others
Piece = ChunkSums | np.ndarray  # of a whole chunk its sums, of others kernel rows (b, m)


class LandmarkView(NamedTuple):
    """All that a worker needs to look at graphs through landmarks."""

    weighted: WeightedForest
    kernel: MixtureKernel
    landmarks: Features
    factor: np.ndarray  # (m, m) of the kernel among landmarks
    noise: float

    @classmethod
    def of(cls, model: FittedGP, factor: np.ndarray) -> LandmarkView:
        return cls(model.weighted, model.kernel, model.basis_graphs, factor, model.noise)

    def rows(self, graphs: GraphCollection, n_jobs: int = 1) -> np.ndarray:
        """The kernel between graphs and landmarks, shape (n_graphs, m)."""
        seen = self.weighted.look_at(graphs, n_jobs)
        return self.kernel.matrix(seen.features, self.landmarks, n_jobs)

    def sums(self, rows: np.ndarray, targets: Targets, n_jobs: int = 1) -> ChunkSums:
        """Of a chunk of graphs, from its kernel rows (b, m) and their targets."""
        noise = self.noise / targets.weights
        return sums_of_chunk(self.factor, rows, noise, targets.values, n_jobs)


class Run(NamedTuple):
    """Neighbouring parts, which are one worker's work."""

    parts: tuple[Part, ...]
    first: int  # number of the first graph
    targets: Targets


def runs_of(
    parts: Iterable[Part], sizes: Sequence[int], targets: Targets, in_pieces: bool
) -> Iterator[Run]:
    """Parts together with their targets, several chunks of graphs at a time.

    Parameters
    ----------
    parts : iterable of Part
    sizes : sequence of int
        How many graphs each part held when it was read before.
    targets : Targets
        Of all graphs.
    in_pieces : bool
        Whether every part is a run of its own, which takes least memory.
    """
    least = 1 if in_pieces else _CHUNKS_PER_RUN * sparse_evidence.BLOCK
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
    if waiting:
        yield Run(tuple(waiting), first, targets.select(slice(first, last)))


def _changed(what: str) -> GraphDataError:
    return GraphDataError(
        f"{what} when they were read again: blocks are read twice, and must hold the same graphs "
        "in the same order each time."
    )


def pieces_of_run(
    parts: tuple[Part, ...], first: int, targets: Targets, view: LandmarkView, n_jobs: int = 1
) -> list[Piece]:
    """What one worker finds out about the parts of a run."""
    rows = (view.rows(graphs, n_jobs) for graphs in _loaded(parts, first, len(targets.values)))
    return [
        view.sums(kernel, targets.select(slice(where.start - first, where.stop - first)), n_jobs)
        if len(kernel) == sparse_evidence.BLOCK
        else kernel
        for where, kernel in in_chunks(rows, first)
    ]


def _loaded(parts: tuple[Part, ...], first: int, n_expected: int) -> Iterator[GraphCollection]:
    n_graphs = 0
    for part in parts:
        graphs = part.load().graphs
        if graphs is not None:
            n_graphs += len(graphs)
            yield graphs
    if n_graphs != n_expected:
        raise _changed(
            f"From graph {first} on, blocks held {n_expected} graphs at first, and {n_graphs}"
        )


def in_chunks(rows: Iterable[np.ndarray], first: int = 0) -> Iterator[KernelBlock]:
    """Kernel rows of graphs from number ``first`` on, cut where chunks begin and end.

    Examples
    --------
    >>> pieces = [np.zeros((3000, 1)), np.zeros((2000, 1))]
    >>> [(where.start, where.stop, len(chunk)) for where, chunk in in_chunks(pieces)]
    [(0, 2048, 2048), (2048, 4096, 2048), (4096, 5000, 904)]
    >>> [(where.start, where.stop) for where, _ in in_chunks(pieces, first=2000)]
    [(2000, 2048), (2048, 4096), (4096, 6144), (6144, 7000)]
    """
    size = sparse_evidence.BLOCK
    waiting: list[np.ndarray] = []
    for piece in rows:
        waiting.append(piece)
        if sum(map(len, waiting)) < size - first % size:
            continue
        together, start = np.concatenate(waiting), 0
        while (stop := start + size - first % size) <= len(together):
            yield slice(first, first + stop - start), together[start:stop]
            first, start = first + stop - start, stop
        waiting = [together[start:]]
    rest = np.concatenate(waiting) if waiting else np.empty((0, 0))
    if len(rest):
        yield slice(first, first + len(rest)), rest


def whole_chunks(
    found: Iterable[list[Piece]], view: LandmarkView, targets: Targets, n_jobs: int = 1
) -> Iterator[ChunkSums]:
    """The sums of all chunks, in order, from what workers found out, in order."""
    first, waiting = 0, []
    for piece in (piece for run in found for piece in run):
        if isinstance(piece, ChunkSums):
            yield piece
            first += sparse_evidence.BLOCK
            continue
        waiting.append(piece)
        if sum(map(len, waiting)) == sparse_evidence.BLOCK:
            yield _together(waiting, view, targets, first, n_jobs)
            first, waiting = first + sparse_evidence.BLOCK, []
    if waiting:
        yield _together(waiting, view, targets, first, n_jobs)


def _together(
    rows: list[np.ndarray], view: LandmarkView, targets: Targets, first: int, n_jobs: int
) -> ChunkSums:
    kernel = np.concatenate(rows)
    return view.sums(kernel, targets.select(slice(first, first + len(kernel))), n_jobs)
