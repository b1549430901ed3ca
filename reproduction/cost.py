"""Speed and cost: a fit and its predictions of every line, each in a process of its own.

TREELENS_DATA=... python -m reproduction cost --out docs/results
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from reproduction.cost_lines import CLASS_SETS, NUMBER_SETS, lines_of
from reproduction.data import StudyOptions
from reproduction.rows import RowFile, versions

LIMIT = 300  # seconds of processor time after which a rival is stopped
OURS = "treelens"
INSTALLED = "mgktools"  # a method whose row says whether it can be installed
_KEY = ("set", "method")
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing, one process after the other."""
    rows = RowFile(asked.out / "cost.jsonl", _KEY)
    for name in asked.sets or (*CLASS_SETS, *NUMBER_SETS):
        for method in asked.methods or lines_of(name):
            if method in lines_of(name):
                _add_row(rows, {"set": name, "method": method})
    tried = {"set": "installation", "method": INSTALLED}
    if tried not in rows and (asked.methods is None or INSTALLED in asked.methods):
        rows.append({**tried, **try_to_install(INSTALLED, "graphdot"), **versions()})


def _add_row(rows: RowFile, row: dict[str, Any]) -> None:
    if row in rows:
        return
    found = measured(row["set"], row["method"])
    if "missing" in found:
        print(row, "skipped:", found["missing"], flush=True)
        return
    rows.append({**row, **found, **versions()})
    print(
        row, {name: found.get(name) for name in ("fit_cpu", "predict_cpu", "stopped")}, flush=True
    )


def measured(name: str, method: str) -> dict[str, Any]:
    """What one line cost, that it was stopped, or which package is missing."""
    ours = not lines_of(name)[method].packages and method.startswith((OURS, "svc"))
    command = [sys.executable, "-m", "reproduction.cost_lines", name, method]
    done = subprocess.run(
        command if ours else [*command, str(LIMIT)],
        capture_output=True, text=True, env={**os.environ, **_ONE_THREAD},
    )  # fmt: skip
    if done.returncode == -signal.SIGXCPU:
        return {"stopped": LIMIT}
    said = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    last = said[-1] if said else "nothing was said"
    if last.startswith("ModuleNotFoundError"):
        return {"missing": f"{last}: pip install 'treelens[studies]'"}
    if done.returncode:
        raise RuntimeError(f"{method} on {name} ended with {done.returncode}: {last}")
    return json.loads(last)


def try_to_install(*packages: str) -> dict[str, Any]:
    """Versions that pip chose in an empty environment, and the line that says why one failed."""
    found: dict[str, Any] = {"tried": {}, "error": None}
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        for package in packages:
            command = [str(Path(folder, "bin", "python")), "-m", "pip", "install", package]
            done = subprocess.run(command, capture_output=True, text=True)
            found["tried"][package] = _version_in(done.stdout, package)
            if done.returncode:
                found |= {"failed": package, "error": why_it_failed(done.stdout + done.stderr)}
    return found


def _version_in(text: str, package: str) -> str | None:
    """The version that pip took, from the name of its file."""
    start = f"{package}-"
    words = [Path(word).name for word in text.split()]
    return next((w.removeprefix(start).split("-")[0] for w in words if w.startswith(start)), None)


def why_it_failed(text: str) -> str:
    """The compiler's last fatal error, else pip's last error.

    Examples
    --------
    >>> why_it_failed("g++ -c a.cpp\\n  a.hpp:1:2: fatal error: cuda.h: missing\\nERROR: no wheel")
    'a.hpp:1:2: fatal error: cuda.h: missing'
    """
    lines = [line.strip() for line in text.splitlines()]
    for sign in ("fatal error:", "ERROR:"):
        told = [line for line in lines if sign in line]
        if told:
            return told[-1]
    return lines[-1] if lines else ""
