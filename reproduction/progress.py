"""Dealing work out to processes, with the time left on a terminal and lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from joblib import Parallel, delayed


class Work(NamedTuple):
    """A function and its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def run_all(works: Sequence[Work], n_jobs: int, title: str) -> Iterator[Any]:
    """Results of all works, in the order in which they finish."""
    start = time.monotonic()
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(work.function)(*work.arguments) for work in works
    )
    for done, result in enumerate(results, start=1):
        _report(title, done, len(works), time.monotonic() - start)
        yield result


def _report(title: str, done: int, total: int, seconds: float) -> None:
    """One line on standard error, rewritten in place on a terminal."""
    left = seconds / done * (total - done)
    line = f"{title}: {done}/{total}, {_clock(seconds)} gone, about {_clock(left)} left"
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{line}   " + ("\n" if done == total else ""))
    elif done == total or done % max(1, total // 10) == 0:
        sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
