"""Standard deviations of an exact Gaussian process against its means, and the first of a file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import treelens as tl
from benchmarks.measure import Claim, Row, measured, processor_time

TRAINING, NEW = 8000, 2000
MOST, MOST_FIRST = 3.0, 0.5  # times the means, seconds


class Fitted(NamedTuple):
    model: tl.GraphRegressor
    new: tl.GraphCollection


def rows() -> Iterator[Row]:
    return measured(CLAIMS, fitted())


def fitted() -> Fitted | None:
    """A default model of molecules of HIV, which learns their size and nitrogens under noise."""
    folder = os.environ.get("TREELENS_DATA")
    path = Path(folder or "", "smiles", "HIV.csv.gz")
    if not folder or not path.exists():
        return None
    graphs, _ = tl.read_smiles(path, target=None, on_invalid="skip")
    graphs = graphs[: TRAINING + NEW]
    nitrogens = np.array([sum(label == "N" for label in graph.node_labels) for graph in graphs])
    noise = np.random.default_rng(0).normal(0.0, 0.5, len(graphs))
    y = 0.1 * graphs.sizes + nitrogens + noise
    model = tl.GraphRegressor(n_jobs=1, random_state=0).fit(graphs[:TRAINING], y[:TRAINING])
    model.predict(graphs[:10], return_std=True)  # compile
    return Fitted(model, graphs[TRAINING:])


def against_means(data: Fitted) -> tuple[str, bool]:
    model, new = data
    times = [
        [
            processor_time(lambda std=std: model.predict(new, return_std=std))
            for std in (False, True)
        ]
        for _ in range(3)
    ]
    mean, both = np.min(times, axis=0)
    ratio = both / mean
    return f"{ratio:.1f} × its time ({both:.2f} s against {mean:.2f} s)", bool(ratio <= MOST)


def first_of_a_file(data: Fitted) -> tuple[str, bool]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        data.model.save(path, variances=True)
        loaded = tl.load(path)
        loaded.predict(data.new[:10])
        first = processor_time(lambda: loaded.predict(data.new[:10], return_std=True))
        size = path.stat().st_size / 1e6
    return f"{first:.2f} s (a file of {size:.0f} MB)", first <= MOST_FIRST


ON = f"{TRAINING:,} molecules of HIV, default views, one thread, processor time"
CLAIMS = [
    Claim(
        f"Predictions with standard deviations of {NEW:,} molecules, exact model of {ON}, "
        "against means alone",
        f"<= {MOST:.0f} × its time",
        against_means,
    ),
    Claim(
        f"First standard deviations of a loaded model, saved with variances=True, {ON}",
        f"<= {MOST_FIRST} s",
        first_of_a_file,
    ),
]
