"""Threads, in one place: work is dealt out so that no result depends on their number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import threadpool_limits


def in_threads(work: Callable[[Any], Any], items: Iterable[Any], n_jobs: int) -> list[Any]:
    """``work(item)`` for every item, in their order.

    Examples
    --------
    >>> in_threads(lambda n: n * n, range(4), n_jobs=2)
    [0, 1, 4, 9]
    """
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


def one_blas_thread() -> threadpool_limits:
    """For small matrices a second thread only waits for the first; its sums change last bits."""
    return threadpool_limits(limits=1, user_api="blas")
