"""Parts of a collection worked on by the workers of a Dask cluster.

Tasks carry their part and name their shared inputs; nothing lives on one worker alone. So when a
worker dies the scheduler runs its tasks again elsewhere, and the result is the same.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from treelens.scale.executors import SerialExecutor

# Unfinished tasks per worker thread: enough to keep it busy, few enough to hold in memory.
_TASKS_PER_THREAD = 4


class DaskExecutor(SerialExecutor):
    """An executor (see :mod:`treelens.scale.executors`) on a Dask client.

    Parameters
    ----------
    client : dask.distributed.Client
        Of a scheduler whose workers have treelens installed.

    Examples
    --------
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> model.fit(blocks, executor=DaskExecutor(Client("scheduler:8786")))  # doctest: +SKIP
    """

    def __init__(self, client: Any) -> None:
        if not (hasattr(client, "submit") and hasattr(client, "nthreads")):
            raise TypeError(
                "client must be a dask.distributed.Client (Client('scheduler:8786')), got "
                f"{type(client).__name__} {client!r:.60}."
            )
        self.client = client

    def map(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], *shared: Any
    ) -> Iterator[Any]:
        """Results in the order of the parts; a few tasks are always ahead."""
        waiting: deque[Any] = deque()
        for future in self._submitted(function, parts, shared):
            waiting.append(future)
            if len(waiting) >= self._window():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _submitted(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], shared: Any
    ) -> Iterator[Any]:
        inputs = [self._submit(_itself, x) for x in shared]
        for part in parts:
            yield self._submit(function, *part, *inputs)

    def _submit(self, function: Callable[..., Any], *inputs: Any) -> Any:
        with warnings.catch_warnings():
            # Dask advises to scatter a large input; a scattered one would die with its worker.
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.client.submit(function, *inputs, pure=False)

    def _window(self) -> int:
        return _TASKS_PER_THREAD * max(1, sum(self.client.nthreads().values()))


def _itself(value: Any) -> Any:
    return value


@contextmanager
def client_or_local(client: Any = None, n_workers: int = 2) -> Iterator[Any]:
    """The client that was given, or one for the while.

    That is one of the scheduler whose address was given, or by default one with worker processes
    on this machine.
    """
    if client is not None and not isinstance(client, str):
        yield client
        return
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError as error:
        raise ImportError(
            "Working on several machines needs Dask: pip install 'treelens[distributed]'."
        ) from error
    if client is not None:
        with Client(client) as connected:
            yield connected
        return
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as local,
    ):
        yield local


def fit_distributed(model: Any, blocks: Any, client: Any = None, n_workers: int = 2) -> Any:
    """Fit a model that takes blocks on a cluster.

    Parameters
    ----------
    model : GraphRegressor, GraphClassifier or StreamingGraphClassifier
    blocks : iterable of parts
        ``SmilesBlocks``, ``CollectionBlocks``, ``TUBlocks`` or a list of ``(graphs, y)`` pairs.
    client : dask.distributed.Client or str, optional
        A client, or the address of a scheduler to connect to for the while. By default
        worker processes are started on this machine and stopped at the end.
    n_workers : int
        Number of those.

    Returns
    -------
    model, fitted: that of ``model.fit(blocks)``, of a Gaussian process to the last bit.
    """
    with client_or_local(client, n_workers) as used:
        return model.fit(blocks, executor=DaskExecutor(used))
