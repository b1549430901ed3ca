"""Clocks and data for the benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import treelens as tl

THREADS = 2
NEEDS_DATA = "skipped: needs TREELENS_DATA"


class Row(NamedTuple):
    """One line of the benchmark table; ``met`` is None where nothing could be measured."""

    claim: str
    measured: str
    target: str
    met: bool | None


class Claim(NamedTuple):
    """A claim, and what measures it on some data: words, and whether the target is met."""

    text: str
    target: str
    measure: Callable[[Any], tuple[str, bool]]


def measured(claims: Iterable[Claim], data: Any) -> Iterator[Row]:
    """The rows of claims about some data; without the data nothing is measured."""
    for claim in claims:
        found, met = (NEEDS_DATA, None) if data is None else claim.measure(data)
        yield Row(claim.text, found, claim.target, met)


def load(name: str) -> tuple[tl.GraphCollection, np.ndarray] | None:
    """A data set from the data folder, or None: benchmarks never download."""
    folder = os.environ.get("TREELENS_DATA")
    if not folder or not Path(folder, "tu", f"{name}.zip").exists():
        return None
    return tl.load_dataset(name)


def best_times(*works: Callable[[], Any], repeats: int = 7) -> list[float]:
    """The shortest time of each work in seconds, taking turns so that all meet the same machine."""
    for work in works:
        work()  # compile, and warm the memory
    times = [[once(work) for work in works] for _ in range(repeats)]
    return np.min(times, axis=0).tolist()


def once(work: Callable[[], Any]) -> float:
    """The time of one run, without warming up: for rivals too slow to repeat."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_time(work: Callable[[], Any]) -> float:
    """Processor seconds of one run: what other programs do meanwhile matters less."""
    start = time.process_time()
    work()
    return time.process_time() - start


def in_fresh_process(program: str, *arguments: str) -> Any:
    """What a Python program prints as JSON, run in an interpreter of its own."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
