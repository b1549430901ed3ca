"""The exact kernel matrix of many graphs, tile by tile into a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from treelens.distributed.executor import DaskExecutor
from treelens.estimators.executors import SerialExecutor
from treelens.graphs.collection import GraphCollection
from treelens.kernels.forms import FORMS, form_kernel
from treelens.kernels.gram import pair_sums
from treelens.patterns.features import Features, PatternExtractor, first_depth_of
from treelens.patterns.vocabulary import PatternVocabulary


def gram_to_disk(
    path: str | Path,
    graphs: GraphCollection,
    form: str = "exponential",
    depth: int = 3,
    gamma: float | None = 1.0,
    *,
    include_depth_zero: bool = True,
    edge_labels: bool = False,
    weights: np.ndarray | None = None,
    block_size: int = 2048,
    client: Any = None,
    n_jobs: int = 1,
) -> np.memmap:
    """Compute a kernel matrix that need not fit into memory.

    Parameters
    ----------
    path : str or Path
        The ``.npy`` file to write; it is replaced if it exists.
    graphs : GraphCollection
    form, depth, gamma, include_depth_zero, edge_labels
        Of the kernel; see :class:`treelens.GraphClassifier`.
    weights : ndarray, optional
        One per pattern of the depths in use, in the order of the vocabulary of ``graphs``.
    block_size : int
        Rows and columns of a tile. A tile's bytes, eight times the square of this, and the
        patterns of the graphs are what is held in memory.
    client : dask.distributed.Client, optional
        Where tiles are computed; by default here. The file does not depend on it.
    n_jobs : int
        Threads for a tile.

    Returns
    -------
    memmap, shape (n_graphs, n_graphs), read-only

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treelens.graphs.synthetic import make_random_graphs
    >>> path = pathlib.Path(tempfile.mkdtemp(), "kernel.npy")
    >>> kernel = gram_to_disk(path, make_random_graphs(50, random_state=0), block_size=20)
    >>> kernel.shape, bool((kernel == kernel.T).all())
    ((50, 50), True)
    """
    if form not in FORMS:
        raise ValueError(f"form must be one of {sorted(FORMS)}, got {form!r}.")
    vocabulary, _ = PatternVocabulary.fit(graphs, depth, edge_labels, n_jobs)
    first_depth = first_depth_of(depth, include_depth_zero)
    extractor = PatternExtractor(vocabulary, first_depth, FORMS[form].kind)
    offset = 0.0
    for rows in _runs(len(graphs), block_size):
        selves = extractor.features(graphs[rows], weights, n_jobs).self_sums
        offset = max(offset, float(selves.max(initial=0.0)))
    executor = SerialExecutor() if client is None else DaskExecutor(client)
    settings = extractor, weights, form, offset, gamma, n_jobs
    runs = list(_runs(len(graphs), block_size))
    places = [(a, b) for i, a in enumerate(runs) for b in runs[i:]]
    start = _created(path, len(graphs))
    with open(path, "r+b") as file:
        pairs = ((graphs[a], None if a == b else graphs[b]) for a, b in places)
        tiles = executor.map(_tile, pairs, *settings)
        for (a, b), tile in zip(places, tiles, strict=True):
            _write(file, start, len(graphs), a, b, tile)
            if a != b:
                _write(file, start, len(graphs), b, a, np.ascontiguousarray(tile.T))
    return np.load(path, mmap_mode="r")


def _tile(
    left: GraphCollection,
    right: GraphCollection | None,
    extractor: PatternExtractor,
    weights: np.ndarray | None,
    form: str,
    offset: float,
    gamma: float | None,
    n_jobs: int,
) -> np.ndarray:
    """Kernel values between two blocks of graphs, or within one."""
    rows: Features = extractor.features(left, weights, n_jobs)
    columns = rows if right is None else extractor.features(right, weights, n_jobs)
    other = None if right is None else columns.pairs
    sums = pair_sums(rows.pairs, other, weights, n_jobs=n_jobs)
    return form_kernel(form, sums, rows.self_sums, columns.self_sums, offset, gamma)


def _runs(n_graphs: int, block_size: int) -> Iterator[slice]:
    return (slice(a, min(a + block_size, n_graphs)) for a in range(0, n_graphs, block_size))


def _created(path: str | Path, n_graphs: int) -> int:
    """Make the file, with a header and room for the matrix; where the numbers start."""
    matrix = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float64, shape=(n_graphs, n_graphs)
    )
    return int(matrix.offset)


def _write(
    file: BinaryIO, start: int, n_graphs: int, rows: slice, columns: slice, tile: np.ndarray
) -> None:
    """Write through the file, not a memory map: pages of a map would count as memory."""
    for row, values in zip(range(rows.start, rows.stop), tile, strict=True):
        file.seek(start + 8 * (row * n_graphs + columns.start))
        file.write(values.tobytes())
