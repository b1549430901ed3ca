"""How long a report takes to write, and how large its file is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import treelens as tl
from benchmarks.measure import NEEDS_DATA, Row, load, processor_time

MOST_SECONDS = {"MUTAG": 20.0, "NCI1": 120.0}
N_SIZED = 1000
MOST_MEGABYTES = 5.0


def rows() -> Iterator[Row]:
    for name, most in MOST_SECONDS.items():
        yield _time_row(name, most)
    yield _size_row()


def _time_row(name: str, most: float) -> Row:
    claim, target = f"Report on {name}, all graphs, processor time", f"at most {most:.0f} s"
    data = load(name)
    if data is None:
        return Row(claim, NEEDS_DATA, target, None)
    seconds, size = _write(data[0], data[1])
    return Row(claim, f"{seconds:.1f} s, {size:.1f} MB", target, seconds <= most)


def _size_row() -> Row:
    claim = f"Size of a report on {N_SIZED:,} graphs of NCI1"
    target = f"less than {MOST_MEGABYTES:.0f} MB"
    data = load("NCI1")
    if data is None:
        return Row(claim, NEEDS_DATA, target, None)
    step = len(data[1]) // N_SIZED
    some = slice(0, step * N_SIZED, step)
    _, size = _write(data[0][some], data[1][some])
    return Row(claim, f"{size:.1f} MB", target, size < MOST_MEGABYTES)


def _write(graphs: tl.GraphCollection, y) -> tuple[float, float]:
    """Processor seconds and megabytes of the report on a model with learned weights."""
    model = tl.GraphSVC(
        "wwl", depth=4, weight_radius=[0.0, 3.0], gamma=3.0, C=10.0, cv=2, random_state=0
    )
    model.fit(graphs, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        seconds = processor_time(lambda: model.report(path, graphs, y))
        return seconds, path.stat().st_size / 1e6
