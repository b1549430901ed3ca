"""What a user waits for: the first result after an installation, a fit, a long table."""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import Claim, Row, in_fresh_process, measured

_FIT = """
import json, sys, time, warnings
import numpy as np
import treelens as tl
warnings.simplefilter("ignore")
graphs, y = tl.load_dataset("Ames_Hansen2009")
some = np.random.default_rng(0).permutation(len(y))[: int(sys.argv[1])]
tl.GraphClassifier(n_jobs=2).fit(graphs[some[:60]], y[some[:60]])  # compile
start = time.perf_counter()
tl.GraphClassifier(n_jobs=2, random_state=0).fit(graphs[some], y[some])
print(json.dumps(time.perf_counter() - start))
"""
_LANDMARKS = """
import sys, warnings
import treelens as tl
warnings.simplefilter("ignore")
graphs, y = tl.load_dataset("Ames_Hansen2009")
settings = {"exact_size": 2000, "learning_size": 500, "n_landmarks": int(sys.argv[2])}
tl.GraphClassifier(n_jobs=2, random_state=0, **settings).fit(graphs, y).save(sys.argv[1])
print("null")
"""
Folders = tuple[Path, Path]  # of the data, and of what is made
FITS = {1000: 10, 5000: 90}  # molecules: seconds
N_COLD, COLD = 300, 15
LANDMARKS, N_PREDICTED, A_SECOND = (500, 3000), 40_000, 3000


def rows() -> Iterator[Row]:
    folder = os.environ.get("TREELENS_DATA")
    with tempfile.TemporaryDirectory() as made:
        yield from measured(CLAIMS, None if folder is None else (Path(folder), Path(made)))


def fit_seconds(n: int, most: float, _: Folders) -> tuple[str, bool]:
    seconds = in_fresh_process(_FIT, str(n))
    return f"{seconds:.1f} s", seconds <= most


def cold_start(folders: Folders) -> tuple[str, bool]:
    """Seconds of a first fit, imports and compilation included."""
    data, made = folders
    table = _some_rows(data / "smiles" / "ESOL.csv.gz", N_COLD, made / "some.csv")
    own_cache = {**os.environ, "NUMBA_CACHE_DIR": str(made / "cache")}
    command = ["fit", str(table), "--target", "value", "--out", str(made / "e.treelens")]
    seconds = _seconds(command, own_cache)
    return f"{seconds:.1f} s", seconds <= COLD


def predicted_a_second(n_landmarks: int, folders: Folders) -> tuple[str, bool]:
    """Rows a second of a long table, the start of the processes included."""
    data, made = folders
    model, out = made / "l.treelens", made / "out.csv"
    in_fresh_process(_LANDMARKS, str(model), str(n_landmarks))
    table = _some_rows(data / "smiles" / "HIV.csv.gz", N_PREDICTED, made / "long.csv")
    command = ["predict", str(model), str(table), "--out", str(out), "--jobs", "2"]
    rate = N_PREDICTED / _seconds(command, dict(os.environ))
    return f"{rate:,.0f} a second", rate >= A_SECOND


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "treelens", *command],
        check=True,
        env=environment,
        capture_output=True,
    )
    return time.perf_counter() - start


def _some_rows(source: Path, n: int, target: Path) -> Path:
    with gzip.open(source, "rt", newline="") as lines, target.open("w", newline="") as file:
        csv.writer(file).writerows(row for k, row in enumerate(csv.reader(lines)) if k <= n)
    return target


CLAIMS = [
    *(
        Claim(
            f"`GraphClassifier().fit`, {n:,} molecules of Ames, two threads",
            f"at most {most} s",
            partial(fit_seconds, n, most),
        )
        for n, most in FITS.items()
    ),
    Claim(
        f"`treelens fit`, {N_COLD} molecules of ESOL, nothing compiled before",
        f"at most {COLD} s",
        cold_start,
    ),
    *(
        Claim(
            f"`treelens predict`, {N_PREDICTED:,} molecules of HIV, two processes, {n:,} landmarks",
            f"at least {A_SECOND:,} a second",
            partial(predicted_a_second, n),
        )
        for n in LANDMARKS
    ),
]
