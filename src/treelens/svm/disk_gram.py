"""The exact kernel matrix of many graphs, tile by tile into a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from treelens._sklearn_compat import Interval, StrOptions, validate_parameter_constraints
from treelens.gp.dask_executor import DaskExecutor, client_or_local
from treelens.gp.executors import SerialExecutor
from treelens.graphs.blocks import check_block_size
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.kernels.table import KERNELS, check_kernel
from treelens.kernels.weighted import WeightedKernel
from treelens.patterns.features import PatternExtractor, first_depth_of
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.storage.files import checked_target, whole_file


def gram_to_disk(
    path: str | Path,
    graphs: Any,
    kernel: str = "wwl",
    depth: int = 3,
    gamma: float | None = 1.0,
    *,
    include_depth_zero: bool = True,
    edge_labels: bool | str = "auto",
    weights: Any = None,
    block_size: int = 2048,
    client: Any = None,
    n_jobs: int = 1,
) -> np.memmap:
    """Compute a kernel matrix that need not fit into memory.

    Parameters
    ----------
    path : str or Path
        The ``.npy`` file to write. It appears when it is complete; an older one stays until then.
    graphs : GraphCollection or anything :func:`treelens.as_graph_collection` takes
    kernel, depth, gamma, include_depth_zero, edge_labels
        Of the kernel; see :class:`treelens.GraphSVC`.
    weights : array-like, optional
        One per pattern of the depths in use, in the order of the vocabulary of ``graphs``.
    block_size : int
        Rows and columns of a tile. A tile's bytes, eight times the square of this, and the
        patterns of the graphs are what is held in memory.
    client : dask.distributed.Client or str, optional
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
    _check_settings(kernel, depth, gamma, include_depth_zero, edge_labels)
    check_block_size(block_size)
    first_depth = first_depth_of(depth, include_depth_zero)
    target, graphs = checked_target(path), check_graphs(graphs)
    if edge_labels == "auto":
        edge_labels = graphs.edge_codes is not None
    vocabulary, _ = PatternVocabulary.fit(graphs, depth, bool(edge_labels), n_jobs)
    weights = _checked_weights(weights, vocabulary, first_depth)
    extractor = PatternExtractor(vocabulary, first_depth, KERNELS[kernel].pair_feature)
    runs = list(_runs(len(graphs), block_size))
    places = [(a, b) for i, a in enumerate(runs) for b in runs[i:]]
    with _executor(client) as executor, whole_file(target) as file:
        diagonal = (extractor.features(graphs[a], weights, n_jobs).diagonal for a in runs)
        offset = max(float(values.max()) for values in diagonal)
        weighted = WeightedKernel(kernel, weights, gamma, offset)
        start = _write_header(file, len(graphs))
        pairs = ((graphs[a], None if a == b else graphs[b]) for a, b in places)
        tiles = executor.map(_tile, pairs, extractor, weighted, n_jobs)
        for (a, b), tile in zip(places, tiles, strict=True):
            _write(file, start, len(graphs), a, b, tile)
            if a != b:
                _write(file, start, len(graphs), b, a, np.ascontiguousarray(tile.T))
    return np.load(target, mmap_mode="r")


def _check_settings(
    kernel: str, depth: int, gamma: float | None, include_depth_zero: bool, edge_labels: bool | str
) -> None:
    check_kernel(kernel)
    constraints: dict[str, list[Any]] = {
        "depth": [Interval(Integral, 0, None, closed="left")],
        "include_depth_zero": ["boolean"],
        "edge_labels": ["boolean", StrOptions({"auto"})],
    }
    given: dict[str, Any] = {
        "depth": depth, "include_depth_zero": include_depth_zero, "edge_labels": edge_labels,
    }  # fmt: skip
    if KERNELS[kernel].has_gamma:
        constraints["gamma"] = [Interval(Real, 0, np.inf, closed="neither")]
        given["gamma"] = gamma
    validate_parameter_constraints(constraints, given, "gram_to_disk")


def _checked_weights(
    weights: Any, vocabulary: PatternVocabulary, first_depth: int
) -> np.ndarray | None:
    if weights is None:
        return None
    weights = np.asarray(weights, dtype=np.float64)
    n_patterns = vocabulary.n_patterns - int(vocabulary.level_offsets[first_depth])
    if weights.shape != (n_patterns,):
        raise ValueError(
            f"weights must be one number for each of the {n_patterns} patterns of these graphs "
            f"from depth {first_depth} on; got an array of shape {weights.shape}."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("weights must be finite and not negative, or the kernel is not PSD.")
    return weights


@contextmanager
def _executor(client: Any) -> Iterator[SerialExecutor | DaskExecutor]:
    if client is None:
        yield SerialExecutor()
        return
    with client_or_local(client) as used:
        yield DaskExecutor(used)


def _tile(
    left: GraphCollection,
    right: GraphCollection | None,
    extractor: PatternExtractor,
    kernel: WeightedKernel,
    n_jobs: int,
) -> np.ndarray:
    """Kernel values between two blocks of graphs, or within one."""
    rows = extractor.features(left, kernel.weights, n_jobs)
    columns = None if right is None else extractor.features(right, kernel.weights, n_jobs)
    return kernel.matrix(rows, columns, n_jobs)


def _runs(n_graphs: int, block_size: int) -> Iterator[slice]:
    return (slice(a, min(a + block_size, n_graphs)) for a in range(0, n_graphs, block_size))


def _write_header(file: BinaryIO, n_graphs: int) -> int:
    """Say what the file holds; where the numbers start."""
    descr = np.lib.format.dtype_to_descr(np.dtype(np.float64))
    header = {"descr": descr, "fortran_order": False, "shape": (n_graphs, n_graphs)}
    np.lib.format.write_array_header_1_0(file, header)
    return file.tell()


def _write(
    file: BinaryIO, start: int, n_graphs: int, rows: slice, columns: slice, tile: np.ndarray
) -> None:
    """Write through the file, not a memory map: pages of a map would count as memory."""
    for row, values in zip(range(rows.start, rows.stop), tile, strict=True):
        file.seek(start + 8 * (row * n_graphs + columns.start))
        file.write(values.tobytes())
