"""``import treelens`` is quick and compiles nothing; compiled functions come from the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Row, in_fresh_process

_IMPORT = """
import json, sys, time
start = time.perf_counter()
import treelens
seconds = time.perf_counter() - start
numba = "numba" in sys.modules
start = time.perf_counter()
from treelens import WassersteinWL
print(json.dumps([seconds, numba, time.perf_counter() - start]))
"""

_FIRST_CALL = """
import gc, json, time
from numba.core.dispatcher import Dispatcher
from treelens import WassersteinWL
graphs = [([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})] * 4
start = time.perf_counter()
WassersteinWL(depth=2, n_jobs=2).distance(graphs)
seconds = time.perf_counter() - start
used = [x for x in gc.get_objects() if isinstance(x, Dispatcher) and x.signatures]
used = [x for x in used if x.py_func.__module__.startswith("treelens")]
misses = sum(sum(x.stats.cache_misses.values()) for x in used)
print(json.dumps([seconds, misses, len(used)]))
"""


_LIBRARIES = "import numpy, scipy.linalg, numba, rdkit.Chem"
_FIT = """
import sys
import treelens as tl
smiles = ["C" * k + end for k in range(1, 41) for end in ("O", "N", "Cl", "C(=O)O", "c1ccccc1")]
y = [0.1 * len(text) for text in smiles]
tl.GraphRegressor(n_jobs=1, progress=False).fit(smiles, y).save(sys.argv[1])
print("null")
"""
_MOST_TIMES = 2.8


def rows() -> Iterator[Row]:
    yield _import_row()
    yield _cache_row()
    yield _predict_row()


def _predict_row() -> Row:
    """Processor time of ``treelens predict``, in turns with that of importing what it stands on."""
    with TemporaryDirectory() as folder:
        model, table = Path(folder, "m.treelens"), Path(folder, "ten.smi")
        in_fresh_process(_FIT, str(model))
        table.write_text("\n".join("C" * k + "CO" for k in range(10)))
        predict = ["-m", "treelens", "predict", str(model), str(table), "--out", f"{folder}/o.csv"]
        _processor_seconds(predict)
        pairs = [
            (_processor_seconds(predict), _processor_seconds(["-c", _LIBRARIES])) for _ in range(7)
        ]
    ours, libraries = (min(seconds) for seconds in zip(*pairs, strict=True))
    return Row(
        "treelens predict, 10 molecules, against importing numpy, scipy.linalg, numba and RDKit",
        f"{ours / libraries:.2f} times the processor time",
        f"<= {_MOST_TIMES} times",
        ours <= _MOST_TIMES * libraries,
    )


def _processor_seconds(arguments: list[str]) -> float:
    """Processor time of a Python process and its own."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = os.times()
    spent = after.children_user + after.children_system
    return spent - before.children_user - before.children_system


def _import_row() -> Row:
    runs = [in_fresh_process(_IMPORT) for _ in range(5)]
    seconds = min(run[0] for run in runs)
    has_numba = any(run[1] for run in runs)
    first_name = min(run[2] for run in runs)
    measured = (
        f"{seconds:.3f} s, numba {'IS' if has_numba else 'not'} imported; the first estimator "
        f"name then takes {first_name:.2f} s"
    )
    return Row(
        "import treelens", measured, "<= 1.0 s, nothing compiled", seconds <= 1.0 and not has_numba
    )


def _cache_row() -> Row:
    in_fresh_process(_FIRST_CALL)  # fills the cache, should it be empty
    runs = [in_fresh_process(_FIRST_CALL) for _ in range(3)]
    seconds, misses, used = min(runs)
    measured = f"{misses} of {used} functions compiled anew; the first call takes {seconds:.2f} s"
    return Row(
        "Compiled functions are cached on disk: first distance in a fresh process",
        measured,
        "0 compiled anew",
        misses == 0 and used > 0,
    )
