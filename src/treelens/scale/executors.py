"""Where the work on parts is done: here, or in processes started by joblib.

An executor has two methods. ``map(function, parts, *shared)`` yields ``function(*part, *shared)``
in the order of the parts; ``sum(function, parts, *shared)`` adds the results with their ``plus``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class SerialExecutor:
    """One part after the other: never more than one in memory."""

    def map(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], *shared: Any
    ) -> Iterator[Any]:
        return (function(*part, *shared) for part in parts)

    def sum(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], *shared: Any
    ) -> Any:
        return added(self.map(function, parts, *shared))


class JoblibExecutor(SerialExecutor):
    """In processes, or wherever ``joblib.parallel_config`` says.

    Parameters
    ----------
    n_jobs : int
    """

    def __init__(self, n_jobs: int = 2) -> None:
        self.n_jobs = n_jobs

    def map(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], *shared: Any
    ) -> Iterator[Any]:
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator", pre_dispatch="2*n_jobs")
        return parallel(delayed(function)(*part, *shared) for part in parts)


def added(results: Iterable[Any]) -> Any:
    """The sum of results, from first to last."""
    results = iter(results)
    total = next(results)
    for result in results:
        total = total.plus(result)
    return total
