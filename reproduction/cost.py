"""Speed and cost: a fit and its predictions of every line, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

from reproduction.cost_lines import CLASS_SETS, NUMBER_SETS, lines_of
from reproduction.data import StudyOptions

LIMIT = 300  # seconds of processor time after which a rival is stopped
OURS = "treelens"
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def run(options: StudyOptions) -> None:
    """Make the rows that are missing, one process after the other."""
    with options.rows("cost", ("set", "method")) as rows:
        for name in options.sets or (*CLASS_SETS, *NUMBER_SETS):
            for method in options.methods or lines_of(name):
                row = {"set": name, "method": method}
                if method not in lines_of(name) or row in rows:
                    continue
                found = measured(name, method)
                if "missing" in found:
                    print(row, "skipped:", found["missing"], flush=True)
                else:
                    rows.add(row, lambda found=found: found)


def measured(name: str, method: str) -> dict[str, Any]:
    """Return the cost of one line, that it was stopped, or which package is missing."""
    ours = not lines_of(name)[method].packages and method.startswith((OURS, "svc"))
    command = [sys.executable, "-m", "reproduction.cost_lines", name, method]
    done = subprocess.run(
        command if ours else [*command, str(LIMIT)],
        capture_output=True, text=True, env={**os.environ, **_ONE_THREAD},
    )  # fmt: skip
    if done.returncode == -signal.SIGXCPU:
        return {"stopped": LIMIT}
    output = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    last = output[-1] if output else "no output"
    if last.startswith("ModuleNotFoundError"):
        return {"missing": f"{last}: pip install 'treelens[studies]'"}
    if done.returncode:
        raise RuntimeError(f"{method} on {name} ended with {done.returncode}: {last}")
    return json.loads(last)
