"""Pattern counts on a GPU, and the mixture kernel between them.

Numba compiles the kernels, CuPy holds the arrays (extra ``gpu``). Under Numba's simulator
(``NUMBA_ENABLE_CUDASIM=1``) NumPy stands in for CuPy, and the same code runs on a CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.kernels.base import Term
from treelens.kernels.mixture import TanimotoL1
from treelens.patterns.histograms import SparseRows
from treelens.patterns.vocabulary import offsets_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


@dataclass(frozen=True)
class Device:
    """A GPU."""

    name: str  # "cuda", or "cuda:1" for the second one
    arrays: Any  # CuPy, or NumPy under the simulator

    @classmethod
    def open(cls, name: str) -> Device:
        """Select a GPU; an error says what is missing."""
        from numba import config

        kind, _, number = name.partition(":")
        if kind != "cuda" or not (number.isdigit() or number == ""):
            raise ValueError(
                f"device must be 'cpu', 'cuda' or 'cuda:0', 'cuda:1', ...; got {name!r}."
            )
        if getattr(config, "ENABLE_CUDASIM", False):
            return cls(name, np)
        try:
            import cupy
        except ImportError as error:
            raise ImportError(
                "Work on a GPU needs CuPy and numba-cuda: pip install cupy-cuda12x "
                "'numba-cuda[cu12]' (for CUDA 13: cupy-cuda13x 'numba-cuda[cu13]')."
            ) from error
        if not hasattr(np, "row_stack"):  # NumPy 2.5 removed it, and numba-cuda up to 0.30 needs it
            raise ImportError("numba-cuda does not work with this NumPy: pip install 'numpy<2.5'.")
        position = int(number or 0)
        try:
            n_devices = int(cupy.cuda.runtime.getDeviceCount())
        except cupy.cuda.runtime.CUDARuntimeError:
            n_devices = 0
        if position >= n_devices:
            there = " or ".join([*(f"'cuda:{k}'" for k in range(n_devices)), "'cpu'"])
            raise RuntimeError(f"device={name!r}, but there is no such GPU here: use {there}.")
        from numba import cuda

        cuda.select_device(position)
        cupy.cuda.Device(position).use()
        return cls(name, cupy)

    def free_bytes(self) -> int | None:
        """Memory that a new array may take; None under the simulator."""
        if self.arrays is np:
            return None
        self.arrays.get_default_memory_pool().free_all_blocks()
        return int(self.arrays.cuda.runtime.memGetInfo()[0])

    def check_room(self, needed: int, what: str, advice: str) -> None:
        """Raise, before any work, where the device has too little memory."""
        free = self.free_bytes()
        if free is not None and needed > free:
            raise MemoryError(
                f"{what} need {needed / 2**30:.1f} GiB on {self.name}, which has "
                f"{free / 2**30:.1f} GiB free: {advice}"
            )

    def put(self, array: np.ndarray, dtype: DTypeLike | None = None) -> Any:
        return self.arrays.ascontiguousarray(self.arrays.asarray(array, dtype=dtype))

    def get(self, array: Any) -> np.ndarray:
        """An array of the device as one of NumPy's."""
        return np.asarray(array) if self.arrays is np else self.arrays.asnumpy(array)


@dataclass(frozen=True)
class DeviceRows:
    """Counts by graph: the side whose graphs are rows of a matrix."""

    offsets: Any  # (n_graphs + 1,)
    patterns: Any  # (n_entries,) int32; of one graph the most common pattern first
    counts: Any  # (n_entries,) int32

    @property
    def n_graphs(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class DeviceLists:
    """Counts by pattern, cut into tiles of graphs: the side whose graphs are columns."""

    starts: Any  # (n_patterns, n_tiles + 1)
    graphs: Any  # (n_entries,) int32
    counts: Any  # (n_entries,) int32
    n_graphs: int


def put_rows(device: Device, rows: SparseRows, support: np.ndarray, least: int = 1) -> DeviceRows:
    """Counts by graph, without patterns of less than ``least`` support on the other side."""
    # Entries stand in the order of their support, so that threads that work side by side have about
    # as much to do.
    graph = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
    kept = np.flatnonzero(support[rows.indices] >= least)
    kept = kept[np.lexsort((-support[rows.indices[kept]], graph[kept]))]
    return DeviceRows(
        device.put(offsets_of(np.bincount(graph[kept], minlength=len(rows)))),
        device.put(rows.indices[kept], np.int32),
        device.put(rows.values[kept], np.int32),
    )


def put_lists(device: Device, lists: SparseRows, n_graphs: int) -> DeviceLists:
    """Counts by pattern."""
    from treelens.kernels._compiled_device import TILE

    n_tiles = max(1, -(-n_graphs // TILE))
    pattern = np.repeat(np.arange(len(lists)), np.diff(lists.offsets))
    in_tile = np.bincount(pattern * n_tiles + lists.indices // TILE, minlength=len(lists) * n_tiles)
    starts = np.empty((len(lists), n_tiles + 1), dtype=np.int64)
    starts[:, 0] = lists.offsets[:-1]
    starts[:, 1:] = starts[:, :1] + in_tile.reshape(len(lists), n_tiles).cumsum(axis=1)
    return DeviceLists(
        device.put(starts),
        device.put(lists.indices, np.int32),
        device.put(lists.values, np.int32),
        n_graphs,
    )


def device_sums(
    device: Device, rows: DeviceRows, lists: DeviceLists, weights: np.ndarray, out: Any = None
) -> Any:
    """Weighted sums of minima of all pairs, shape (n_rows, n_columns)."""
    from treelens.kernels import _compiled_device as compiled

    if out is None:
        out = device.arrays.empty((rows.n_graphs, lists.n_graphs))
    if rows.n_graphs and lists.n_graphs:
        grid = (rows.n_graphs, lists.starts.shape[1] - 1)
        compiled.sums_of_minima[grid, compiled.THREADS](
            rows.offsets,
            rows.patterns,
            rows.counts,
            device.put(weights, np.float64),
            lists.starts,
            lists.graphs,
            lists.counts,
            out,
        )
    return out


def mixture_numbers(term: Term) -> tuple[float, float, float, float]:
    """Return gamma, rho, amplitude and share, as the compiled loops take them."""
    assert isinstance(term.kernel, TanimotoL1)
    return term.kernel.gamma, term.kernel.rho, term.amplitude, term.kernel.share


def device_mixture(term: Term, sums: Any, left_diagonal: Any, right_diagonal: Any, out: Any) -> Any:
    """Kernel values from sums; ``out`` may be ``sums``."""
    from treelens.kernels import _compiled_device as compiled

    if sums.size:
        compiled.mixture[len(sums), compiled.THREADS](
            sums, left_diagonal, right_diagonal, *mixture_numbers(term), out
        )
    return out


def device_or_cpu(name: str) -> str:
    """The device if it is there, else ``"cpu"``: a model fitted on a GPU predicts anywhere."""
    if name == "cpu":
        return name
    try:
        return Device.open(name).name
    except (ImportError, RuntimeError):
        return "cpu"
