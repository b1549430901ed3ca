"""Long work: our own threads, processes that end with this one, BLAS threads, a progress bar."""

from __future__ import annotations

import ctypes
import inspect
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from threading import Lock, Thread, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits


class ThreadCount(int):
    """How many threads our own loops may use, which changes no bit of a result.

    BLAS may use ``for_blas`` of them, where another number changes last digits.
    """

    for_blas: int

    @classmethod
    def of(cls, n: int, for_blas: int) -> ThreadCount:
        found = cls(n)
        found.for_blas = for_blas
        return found


def thread_count(n_jobs: int | None) -> ThreadCount:
    """Return how many threads ``n_jobs`` asks for.

    None asks for all processors, or for as many as joblib's context says, with the results of one:
    BLAS keeps to one thread. Within a worker of joblib, such as one of
    ``cross_val_score(n_jobs=4)``, it is one: the other processors have workers of their own.
    """
    if n_jobs == 0:
        raise ValueError(
            "n_jobs=0 is no number of threads: give 1 or more, or -1 for all there are."
        )
    joblib = sys.modules.get("joblib")
    if joblib is None:  # nobody has imported it, so there is no context; to import it takes long
        wanted = -1 if n_jobs is None else n_jobs
        n = wanted if wanted > 0 else max(processor_count() + 1 + wanted, 1)
    else:
        backend, of_context = joblib.parallel.get_active_backend()
        wanted = of_context if n_jobs is None else n_jobs
        if wanted is None:
            wanted = 1 if backend.nesting_level else -1
        n = backend.effective_n_jobs(wanted)
    return ThreadCount.of(n, 1 if n_jobs is None else n)


def processor_count() -> int:
    """Return how many processors this process may use, as its container and system limit it."""
    n = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        n = min(n, len(os.sched_getaffinity(0)))
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        if quota != "max":
            n = min(n, -(-int(quota) // int(period)))
    return max(n, 1)


def batches(n_items: int, size: int) -> Iterator[slice]:
    """Yield slices of at most ``size`` that cover all items in their order."""
    return (slice(start, min(start + size, n_items)) for start in range(0, n_items, size))


def in_threads(work: Callable[[Any], Any], items: Iterable[Any], n_jobs: int) -> list[Any]:
    """``work(item)`` for every item, in their order."""
    items = list(items)
    if n_jobs <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    if len(items) > n_jobs:
        with ThreadPoolExecutor(n_jobs) as pool:
            return list(pool.map(work, items))
    with ThreadPoolExecutor(len(items) - 1) as pool:  # one item a thread: this one does the first
        others = pool.map(work, items[1:])  # begins at once
        return [work(items[0]), *others]


def run_in_shares(work: Callable[[int, int], Any], n_items: int, n_jobs: int) -> list[Any]:
    """Results of ``work(first, last)`` on ``n_jobs`` contiguous shares, run in threads."""
    if n_jobs <= 1 or n_items < 2 * n_jobs:
        return [work(0, n_items)]
    bounds = [n_items * k // n_jobs for k in range(n_jobs + 1)]
    return in_threads(lambda k: work(bounds[k], bounds[k + 1]), range(n_jobs), n_jobs)


# --- processes, which end with the one that started them ------------------------------------------

_SECONDS_BETWEEN_LOOKS = 0.5
_PR_SET_PDEATHSIG = 1  # of Linux, see prctl(2)


def in_processes(work: Callable[..., Any], calls: Iterable[Any], n_jobs: int) -> Iterator[Any]:
    """Yield ``work(*given)`` for each of the calls, in their order, from ``n_jobs`` processes.

    They end when this process does, even when it is killed.
    """
    from joblib import Parallel, delayed

    settings: dict[str, Any] = {"return_as": "generator", "pre_dispatch": "2*n_jobs"}
    if "backend_kwargs" in inspect.signature(Parallel).parameters:  # from joblib 1.5 on
        # so that also a process that waits for its first call ends
        settings |= {"initializer": end_with_parent, "initargs": (os.getpid(),)}
    parallel = Parallel(thread_count(n_jobs), "loky", **settings)
    yield from parallel(delayed(_worked)(os.getpid(), work, given) for given in calls)


def _worked(parent: int, work: Callable[..., Any], given: Iterable[Any]) -> Any:
    end_with_parent(parent)
    return work(*given)


@lru_cache(maxsize=1)
def end_with_parent(parent: int) -> None:
    """Let this process end when its parent has ended, in whatever way."""
    if parent == os.getpid():  # joblib works in the process itself where it has one job only
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    if sys.platform == "linux":  # at once, and also while compiled code keeps all threads waiting
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    Thread(target=watch, daemon=True).start()


# --- threads of BLAS and OpenMP ------------------------------------------------------------------


class _BlasLimits:
    """Limits on BLAS threads that are in force, over all threads of the process.

    In a thread the innermost limit holds. Most BLAS libraries have one number of threads for the
    whole process: there it is the smallest limit of all threads, so that each has at most as many
    as it allows, and once no limit is in force it is what it was before the first. Libraries that
    work with OpenMP have a number for each thread, which is that of its own limit.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._limits: dict[int, list[int]] = {}  # of each thread, the innermost last
        self._before: list[int] = []
        self._controller: ThreadpoolController | None = None

    def enter(self, limit: int) -> None:
        with self._lock:
            if self._controller is None:  # looking for libraries takes milliseconds: do it once
                self._controller = ThreadpoolController().select(user_api="blas")
            if not self._limits:
                libraries = self._controller.lib_controllers
                self._before = [library.get_num_threads() for library in libraries]
            own = self._limits.setdefault(get_ident(), [])
            own.append(limit)
            if own[-2:-1] != [limit]:  # asking libraries takes as long as a small factor
                self._apply()

    def leave(self) -> None:
        with self._lock:
            own = self._limits[get_ident()]
            ended = own.pop()
            if not own:
                del self._limits[get_ident()]
            if own[-1:] != [ended]:
                self._apply()

    def _apply(self) -> None:
        assert self._controller is not None
        smallest = min((own[-1] for own in self._limits.values()), default=None)
        own = self._limits.get(get_ident(), [None])[-1]
        for library, before in zip(self._controller.lib_controllers, self._before, strict=True):
            limit = own if getattr(library, "threading_layer", "") == "openmp" else smallest
            # Recent versions of threadpoolctl let the first thread alone that set a number change
            # that of OpenBLAS, for as long as it lives. Here all threads agree on one number.
            set_number = getattr(library, "_real_set_num_threads", library.set_num_threads)
            set_number(before if limit is None else limit)


_LIMITS = _BlasLimits()


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """Let BLAS and LAPACK use at most so many threads in this thread; it may change last digits."""
    allowed = n_threads.for_blas if isinstance(n_threads, ThreadCount) else n_threads
    _LIMITS.enter(max(allowed, 1))
    try:
        yield
    finally:
        _LIMITS.leave()


def one_blas_thread() -> Any:
    """Limit BLAS to one thread: for small matrices a second one only waits for the first."""
    return blas_threads(1)


def openmp_threads(n_threads: int) -> Any:
    """Let OpenMP, as in scikit-learn's gradient boosting, use at most so many threads."""
    return threadpool_limits(limits=max(n_threads, 1), user_api="openmp")


# --- what long work is doing: a line on a terminal, one that stays in a notebook -----------------

_SECONDS_TO_TELL = 3.0  # of work that leaves a line in a notebook
_TELL: ContextVar[Callable[[str], None] | None] = ContextVar("_TELL", default=None)


def working_on(what: str) -> None:
    """Say what the work that is shown (:func:`progress_ticks`) is doing now, if any is."""
    tell = _TELL.get()
    if tell is not None:
        tell(what)


@contextmanager
def progress_ticks(show: bool | None, title: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that reports what was just finished.

    With None it is shown on a terminal, and in a notebook by one line at the end if it took long.
    Work within other work that is shown is a part of its line.
    """
    outer = _TELL.get()
    if outer is not None and show is not False:
        yield _part_of(outer, title)
        return
    on_terminal = sys.stderr.isatty()
    if show is False or (show is None and not (on_terminal or _in_notebook())):
        yield lambda what: None
        return
    if _in_notebook() and not on_terminal:
        start = time.monotonic()
        yield lambda what: None
        if (seconds := time.monotonic() - start) > _SECONDS_TO_TELL:
            sys.stderr.write(f"{title}: {seconds:.0f} s\n")
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        tell = _part_of(lambda what: progress.update(task, description=what), title)
        token = _TELL.set(tell)
        try:
            yield tell
        finally:
            _TELL.reset(token)


def _part_of(outer: Callable[[str], None], title: str) -> Callable[[str], None]:
    return lambda what: outer(f"{title}: {what}")


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules
