"""A fit on two workers of a cluster against one in a single process, by processor time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.bench_million import write_table
from benchmarks.measure import NEEDS_DATA, Row, in_fresh_process

MOLECULES = 40_000
MOST = 1.3

# Workers are children of the process, and are counted once they have ended.
_FIT = """
import json, os, resource, sys, warnings
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

def seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)

if __name__ == "__main__":
    import treelens as tl
    warnings.simplefilter("ignore")
    blocks = tl.SmilesBlocks(sys.argv[1], target="value")
    settings = {"learning_size": 1000, "exact_size": 4000, "n_landmarks": 500}
    model = tl.GraphRegressor(depth=3, n_jobs=1, random_state=0, **settings)
    start = seconds()
    if sys.argv[2] == "1":
        model.fit(blocks)
    else:
        tl.fit_distributed(model, blocks, n_workers=int(sys.argv[2]))
    print(json.dumps(seconds() - start))
"""


def rows() -> Iterator[Row]:
    claim = (
        f"Fit of {MOLECULES:,} SMILES through 500 landmarks on two workers, against one process, "
        "processor time"
    )
    target = f"<= {MOST} × its time"
    if find_spec("distributed") is None:
        yield Row(claim, "skipped: needs dask and distributed", target, None)
        return
    if not os.environ.get("TREELENS_DATA"):
        yield Row(claim, NEEDS_DATA, target, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "molecules.csv")
        write_table(path, MOLECULES)
        times = [[in_fresh_process(_FIT, str(path), n) for n in ("1", "2")] for _ in range(2)]
    alone, shared = (min(each) for each in zip(*times, strict=True))
    ratio = shared / alone
    words = f"{ratio:.2f} × its time ({shared:.1f} s against {alone:.1f} s)"
    yield Row(claim, words, target, ratio <= MOST)
