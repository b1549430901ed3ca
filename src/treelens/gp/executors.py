"""Where the work on parts is done: here, or in processes started by joblib.

An executor has one method: ``map(function, parts, *shared)`` yields ``function(*part, *shared)`` in
the order of the parts.
"""

from __future__ import annotations

import inspect
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
    is_class = isinstance(executor, type)
    if executor is not None and (is_class or not hasattr(executor, "map")):
        got = f"the class {executor.__name__}" if is_class else f"{executor!r:.60}"
        raise TypeError(
            "executor must be one of treelens.gp, such as "
            "treelens.gp.executors.JoblibExecutor(2) or "
            f"treelens.gp.dask_executor.DaskExecutor(client), got {got}."
        )


def check_takes_blocks(model: Any) -> None:
    """Raise unless the ``fit`` of this model takes an executor, and so blocks."""
    parameters = inspect.signature(model.fit).parameters if hasattr(model, "fit") else {}
    any_name = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    is_class = isinstance(model, type)
    if is_class or not ("executor" in parameters or any_name):
        got = f"the class {model.__name__}" if is_class else f"{type(model).__name__}"
        raise TypeError(
            f"Blocks are learned from by GraphRegressor() and GraphClassifier(); got {got}. Others "
            "take graphs in memory: fit(graphs, y)."
        )
