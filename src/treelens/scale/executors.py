"""Where the work on parts is done: here, or in processes started by joblib.

An executor has one method: ``map(function, parts, *shared)`` yields ``function(*part, *shared)`` in
the order of the parts.
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


def check_executor(executor: Any) -> None:
    """Raise unless it can be one, or is None."""
    if executor is not None and not hasattr(executor, "map"):
        raise TypeError(
            "executor must be one of treelens.scale, such as JoblibExecutor(2) or "
            f"DaskExecutor(client), got {executor!r:.60}."
        )
