"""How long a report takes to write, and how large its file is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

import treelens as tl
from benchmarks.measure import Claim, Row, load, measured, processor_time

Data = tuple[tl.GraphCollection, np.ndarray]
MOST_SECONDS = {"MUTAG": 20.0, "NCI1": 120.0}
N_SIZED = 1000
MOST_MEGABYTES = 5.0


def rows() -> Iterator[Row]:
    for name, claims in CLAIMS.items():
        yield from measured(claims, load(name))


def _time(most: float, data: Data) -> tuple[str, bool]:
    seconds, size = _write(*data)
    return f"{seconds:.1f} s, {size:.1f} MB", seconds <= most


def _size(data: Data) -> tuple[str, bool]:
    step = len(data[1]) // N_SIZED
    some = slice(0, step * N_SIZED, step)
    _, size = _write(data[0][some], data[1][some])
    return f"{size:.1f} MB", size < MOST_MEGABYTES


def _write(graphs: tl.GraphCollection, y: np.ndarray) -> tuple[float, float]:
    """Processor seconds and megabytes of the report on a model with learned weights."""
    model = tl.GraphSVC(
        "wwl", depth=4, weight_radius=[0.0, 3.0], gamma=3.0, C=10.0, cv=2, random_state=0
    )
    model.fit(graphs, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        seconds = processor_time(lambda: model.report(path, graphs, y))
        return seconds, path.stat().st_size / 1e6


CLAIMS = {
    name: [
        Claim(
            f"Report on {name}, all graphs, processor time",
            f"at most {most:.0f} s",
            partial(_time, most),
        )
    ]
    for name, most in MOST_SECONDS.items()
}
CLAIMS["NCI1"].append(
    Claim(
        f"Size of a report on {N_SIZED:,} graphs of NCI1",
        f"less than {MOST_MEGABYTES:.0f} MB",
        _size,
    )
)
