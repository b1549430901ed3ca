"""``import treelens`` is quick and compiles nothing; compiled functions come from the disk."""

from __future__ import annotations

from collections.abc import Iterator

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


def rows() -> Iterator[Row]:
    yield _import_row()
    yield _cache_row()


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
