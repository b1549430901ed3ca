"""Parts of a collection worked on by the workers of a Dask cluster.

Tasks carry their part and name their shared inputs; nothing lives on one worker alone. So when a
worker dies the scheduler runs its tasks again elsewhere; and when the scheduler itself goes and
another one comes up at its address, tasks that were under way are sent again. The result is the
same.
"""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from treelens.gp.executors import SerialExecutor, check_takes_blocks

# Unfinished tasks per worker thread: enough to keep it busy, few enough to hold in memory.
_TASKS_PER_THREAD = 4


class DaskExecutor(SerialExecutor):
    """An executor (see :mod:`treelens.gp.executors`) on a Dask client.

    Parameters
    ----------
    client : dask.distributed.Client
        Of a scheduler whose workers have treelens installed.
    patience : float, default=300
        For how many seconds a scheduler may be gone before an error says so. Without workers, tasks
        wait for some to come, as long as it takes.

    Examples
    --------
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> model.fit(blocks, executor=DaskExecutor(Client("scheduler:8786")))  # doctest: +SKIP
    """

    def __init__(self, client: Any, patience: float = 300.0) -> None:
        if not (hasattr(client, "submit") and hasattr(client, "nthreads")):
            raise TypeError(
                "client must be a dask.distributed.Client (Client('scheduler:8786')), got "
                f"{type(client).__name__} {client!r:.60}."
            )
        self.client = client
        self.patience = patience
        # A client that gave up has forgotten where its scheduler was.
        self._address = getattr(getattr(client, "scheduler", None), "address", None)

    def map(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], *shared: Any
    ) -> Iterator[Any]:
        """Results in the order of the parts; a few tasks are always ahead."""
        tasks = _Tasks(self, function, shared)
        for part in parts:
            tasks.begin(part)
            if len(tasks.waiting) >= self._window():
                yield tasks.first_result()
        while tasks.waiting:
            yield tasks.first_result()

    def submit(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """One task, begun; what comes back has its ``result()``."""
        with warnings.catch_warnings():
            # Dask advises to scatter a large input; a scattered one would die with its worker.
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.client.submit(function, *inputs, pure=False)

    def _window(self) -> int:
        try:
            threads = sum(self.client.nthreads().values())
        except (OSError, AttributeError):  # the scheduler is gone, which the next result will tell
            threads = 1
        return _TASKS_PER_THREAD * max(1, threads)

    def client_gave_up(self) -> bool:
        """Whether the client lost its scheduler and looks for it no more."""
        return getattr(self.client, "status", "running") in ("closing", "closed")

    def connect_again(self) -> None:
        """Wait until the client has found a scheduler at its address; it may be a new client.

        Raises
        ------
        ConnectionError
            If none comes up within ``patience`` seconds.
        """
        deadline = time.monotonic() + self.patience
        while self.client.status == "connecting" and time.monotonic() < deadline:
            time.sleep(0.1)
        if self.client.status == "running":
            return
        try:  # a client gives up before our patience ends
            left = max(deadline - time.monotonic(), 0.1)
            self.client = type(self.client)(
                self._address, timeout=left, security=self.client.security, set_as_default=False
            )
        except OSError as error:
            raise ConnectionError(
                f"The Dask scheduler at {self._address} went away and did not come back within "
                f"{self.patience:g} seconds. Start it again at that address and fit again, or give "
                "DaskExecutor more patience."
            ) from error


class _Tasks:
    """The tasks of one ``map``, first to last, and what it takes to begin them again."""

    def __init__(
        self, executor: DaskExecutor, function: Callable[..., Any], shared: tuple[Any, ...]
    ) -> None:
        self.executor = executor
        self.function = function
        self.shared = shared
        self.waiting: deque[tuple[tuple[Any, ...], Any]] = deque()  # parts with their futures
        self._share()

    def _share(self) -> None:
        if self.executor.client_gave_up():  # perhaps long ago, when there was nothing to do
            self.executor.connect_again()
        self.inputs = [self.executor.submit(_itself, value) for value in self.shared]

    def begin(self, part: tuple[Any, ...]) -> None:
        if self.executor.client_gave_up():
            self._begin_again()
        future = self.executor.submit(self.function, *part, *self.inputs)
        self.waiting.append((part, future))

    def first_result(self) -> Any:
        """What the first waiting task found out, however often it has to be begun again."""
        while True:
            future = self.waiting[0][1]
            try:
                result = future.result()
            except CancelledError:
                if future.status not in ("cancelled", "lost"):  # the task itself said so
                    raise
                self._begin_again()  # nobody else holds these tasks: their scheduler is gone
            else:
                self.waiting.popleft()
                return result

    def _begin_again(self) -> None:
        self.executor.connect_again()
        parts = [part for part, _ in self.waiting]
        self.waiting.clear()
        self._share()
        for part in parts:
            self.begin(part)


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
    model : GraphRegressor or GraphClassifier
    blocks : iterable of parts
        ``SmilesBlocks``, ``CollectionBlocks``, ``TUBlocks`` or a list of ``(graphs, y)`` pairs.
    client : dask.distributed.Client or str, optional
        A client, or the address of a scheduler to connect to for the while. By default
        worker processes are started on this machine and stopped at the end.
    n_workers : int
        Number of those. As with any worker processes, a script that starts them keeps what it
        does under ``if __name__ == "__main__":``.

    Returns
    -------
    model, fitted: that of ``model.fit(blocks)``, to the last bit.
    """
    check_takes_blocks(model)
    with client_or_local(client, n_workers) as used:
        executor = DaskExecutor(used)
        try:
            return model.fit(blocks, executor=executor)
        finally:
            if executor.client is not used:  # one that took the place of a client that gave up
                executor.client.close()
