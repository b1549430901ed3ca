"""Where the work on parts of a collection is done: here, in processes of joblib, or on Dask.

An executor has one method: ``map(function, parts, *shared)`` yields ``function(*part, *shared)`` in
the order of the parts.
"""

from __future__ import annotations

import inspect
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack
from typing import Any

# Unfinished tasks per worker thread: enough to keep it busy, few enough to hold in memory.
_TASKS_PER_THREAD = 4


class SerialExecutor:
    """One part after the other: never more than one in memory."""

    def map(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], *shared: Any
    ) -> Iterator[Any]:
        return (function(*part, *shared) for part in parts)


class JoblibExecutor(SerialExecutor):
    """In ``n_jobs`` processes, or wherever ``joblib.parallel_config`` says."""

    def __init__(self, n_jobs: int = 2) -> None:
        self.n_jobs = n_jobs

    def map(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], *shared: Any
    ) -> Iterator[Any]:
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator", pre_dispatch="2*n_jobs")
        return parallel(delayed(function)(*part, *shared) for part in parts)


class DaskExecutor(SerialExecutor):
    """On the workers of a Dask cluster.

    Tasks carry their part and name their shared inputs; nothing lives on one worker alone. So when
    a worker dies the scheduler runs its tasks again elsewhere; and when the scheduler itself goes
    and another one comes up at its address, unfinished tasks are sent again. The result is the
    same.

    Parameters
    ----------
    client : dask.distributed.Client
        Of a scheduler whose workers have treelens installed.
    patience : float, default=300
        For how many seconds a scheduler may be gone before an error is raised. Without workers,
        tasks wait for some to come, as long as it takes.

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
        """Yield results in the order of the parts; a few tasks are always ahead."""
        waiting: deque[tuple[tuple[Any, ...], Any]] = deque()  # parts with their futures
        inputs: list[Any] = []

        def begin(part: tuple[Any, ...]) -> None:
            if self._status in ("closing", "closed"):
                begin_again()
            waiting.append((part, self.submit(function, *part, *inputs)))

        def begin_again() -> None:
            self._connect()
            inputs[:] = [self.submit(_itself, value) for value in shared]
            unfinished = [part for part, _ in waiting]
            waiting.clear()
            for part in unfinished:
                begin(part)

        def first_result() -> Any:
            while True:
                future = waiting[0][1]
                try:
                    result = future.result()
                except CancelledError:
                    if future.status not in ("cancelled", "lost"):  # raised by the task itself
                        raise
                    begin_again()  # nobody else holds these tasks: their scheduler is gone
                else:
                    waiting.popleft()
                    return result

        begin_again()
        for part in parts:
            begin(part)
            if len(waiting) >= self._window():
                yield first_result()
        while waiting:
            yield first_result()

    def submit(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Begin one task and return its future."""
        with warnings.catch_warnings():
            # Dask advises to scatter a large input; a scattered one would die with its worker.
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.client.submit(function, *inputs, pure=False)

    @property
    def _status(self) -> str:
        return getattr(self.client, "status", "running")

    def _window(self) -> int:
        try:
            threads = sum(self.client.nthreads().values())
        except (OSError, AttributeError):  # the scheduler is gone, as the next result will show
            threads = 1
        return _TASKS_PER_THREAD * max(1, threads)

    def _connect(self) -> None:
        """Wait until there is a scheduler at the client's address; it may take a new client."""
        deadline = time.monotonic() + self.patience
        while self._status == "connecting" and time.monotonic() < deadline:
            time.sleep(0.1)
        if self._status == "running":
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


def _itself(value: Any) -> Any:
    return value


def check_executor(executor: Any) -> None:
    if executor is not None and (isinstance(executor, type) or not hasattr(executor, "map")):
        raise TypeError(
            "executor must be one of treelens.gp.executors, such as "
            "treelens.gp.executors.JoblibExecutor(2) or "
            f"treelens.gp.executors.DaskExecutor(client), got {executor!r:.60}."
        )


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
    parameters = inspect.signature(model.fit).parameters if hasattr(model, "fit") else {}
    if isinstance(model, type) or "executor" not in parameters:
        raise TypeError(
            f"Blocks are learned from by GraphRegressor() and GraphClassifier(); got {model!r:.60}."
            " Others take graphs in memory: fit(graphs, y)."
        )
    with ExitStack() as stack:
        if client is None or isinstance(client, str):
            try:
                from dask.distributed import Client, LocalCluster
            except ImportError as error:
                raise ImportError(
                    "Working on several machines needs Dask: pip install dask distributed."
                ) from error
            client = client or stack.enter_context(
                LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
            )
            client = stack.enter_context(Client(client))
        executor = DaskExecutor(client)
        try:
            return model.fit(blocks, executor=executor)
        finally:
            if executor.client is not client:  # one that took the place of a client that gave up
                executor.client.close()
