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
from pathlib import Path

from benchmarks.measure import NEEDS_DATA, Row, in_fresh_process

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
FITS = {1000: 10, 5000: 90}  # molecules: seconds
N_COLD, COLD = 300, 15
LANDMARKS, N_PREDICTED, A_SECOND = (500, 3000), 40_000, 3000


def rows() -> Iterator[Row]:
    folder = os.environ.get("TREELENS_DATA")
    claims = [
        *(f"`GraphClassifier().fit`, {n:,} molecules of Ames, two threads" for n in FITS),
        f"`treelens fit`, {N_COLD} molecules of ESOL, nothing compiled before",
        *(f"`treelens predict`, {N_PREDICTED:,} molecules of HIV, two "
          f"processes, {n:,} landmarks" for n in LANDMARKS),
    ]  # fmt: skip
    targets = [
        *(f"at most {seconds} s" for seconds in FITS.values()), f"at most {COLD} s",
        *(f"at least {A_SECOND:,} a second" for _ in LANDMARKS),
    ]  # fmt: skip
    if folder is None:
        for claim, target in zip(claims, targets, strict=True):
            yield Row(claim, NEEDS_DATA, target, None)
        return
    for (n, most), claim, target in zip(FITS.items(), claims, targets, strict=False):
        seconds = in_fresh_process(_FIT, str(n))
        yield Row(claim, f"{seconds:.1f} s", target, seconds <= most)
    with tempfile.TemporaryDirectory() as made:
        seconds = cold_start(Path(folder), Path(made))
        yield Row(claims[2], f"{seconds:.1f} s", targets[2], seconds <= COLD)
        for n, claim, target in zip(LANDMARKS, claims[3:], targets[3:], strict=True):
            rate = predicted_a_second(Path(folder), Path(made), n)
            yield Row(claim, f"{rate:,.0f} a second", target, rate >= A_SECOND)


def cold_start(data: Path, made: Path) -> float:
    """Seconds of a first fit, imports and compilation included."""
    table = _some_rows(data / "smiles" / "ESOL.csv.gz", N_COLD, made / "some.csv")
    own_cache = {**os.environ, "NUMBA_CACHE_DIR": str(made / "cache")}
    command = ["fit", str(table), "--target", "value", "--out", str(made / "e.treelens")]
    return _seconds(command, own_cache)


def predicted_a_second(data: Path, made: Path, n_landmarks: int) -> float:
    """Rows a second of a long table, the start of the processes included."""
    model, out = made / "l.treelens", made / "out.csv"
    in_fresh_process(_LANDMARKS, str(model), str(n_landmarks))
    table = _some_rows(data / "smiles" / "HIV.csv.gz", N_PREDICTED, made / "long.csv")
    command = ["predict", str(model), str(table), "--out", str(out), "--jobs", "2"]
    return N_PREDICTED / _seconds(command, dict(os.environ))


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "treelens", *command], check=True, env=environment,
                   capture_output=True)  # fmt: skip
    return time.perf_counter() - start


def _some_rows(source: Path, n: int, target: Path) -> Path:
    with gzip.open(source, "rt", newline="") as lines, target.open("w", newline="") as file:
        csv.writer(file).writerows(row for k, row in enumerate(csv.reader(lines)) if k <= n)
    return target
