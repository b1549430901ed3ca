"""A million molecules: from a file to a model to predictions, in little memory.

``TREELENS_DATA=... python -m benchmarks.bench_million [N]`` writes N SMILES (a million without a
number), fits ``GraphRegressor`` to the file in blocks, predicts the same file in parts, and keeps
the numbers in ``docs/results/rows/million.jsonl``. The molecules are those of HIV, Ames and ESOL,
each written many times as another of RDKit's random SMILES: every row has to be parsed.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl
from benchmarks.measure import Row
from treelens.chem.blocks import SmilesBlocks
from treelens.gp.executors import JoblibExecutor
from treelens.graphs.tables import read_text_table

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "rows" / "million.jsonl"
SETS = ("HIV", "Ames_Hansen2009", "ESOL")
PART_SIZE = 5000


def numbered_smiles(n: int, seed: int = 0) -> Iterator[tuple[str, float]]:
    """``n`` SMILES of the molecules of the sets, over and over, and a number for each.

    The structure decides the number up to noise.
    """
    from rdkit import Chem, RDLogger

    RDLogger.DisableLog("rdApp.*")  # some rows of HIV hold no molecule
    folder = Path(os.environ["TREELENS_DATA"], "smiles")
    tables = [read_text_table(folder / f"{name}.csv.gz") for name in SETS]
    texts = [smiles for table in tables for smiles in table.column("smiles", "")]
    order = np.random.default_rng(seed).permutation(len(texts))
    molecules = (Chem.MolFromSmiles(texts[k]) for k in cycle(order))
    noise = np.random.default_rng(1).normal(0.0, 1.0, n)
    for error, molecule in zip(noise, filter(None, molecules), strict=False):
        smiles = Chem.MolToSmiles(molecule, doRandom=True)
        yield smiles, molecule.GetNumHeavyAtoms() + 5 * smiles.upper().count("N") + error


def write_table(path: Path, n: int) -> None:
    """A table of ``n`` rows."""
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "smiles", "value"])
        for k, (smiles, value) in enumerate(numbered_smiles(n)):
            lines.writerow([f"m{k}", smiles, f"{value:.3f}"])


def fit(path: Path, model: Path) -> None:
    """A model of the whole file, read in blocks."""
    blocks = SmilesBlocks(path, target="value", block_size=PART_SIZE)
    settings: dict[str, Any] = {"learning_size": 1000, "exact_size": 4000, "n_landmarks": 500}
    process = tl.GraphRegressor(depth=3, n_jobs=2, random_state=0, **settings)
    process.fit(blocks, executor=JoblibExecutor(2)).save(model)


def measured(command: list[str]) -> dict[str, float]:
    """Time, and the largest memory of the command or of one of its processes, in gigabytes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "largest_process_gb": after.ru_maxrss / 2**20,
    }


def measure(n: int, folder: Path) -> dict[str, Any]:
    """Write, fit and predict."""
    table, model, out = (folder / name for name in ("million.csv", "m.treelens", "out.csv"))
    here = [sys.executable, "-m", "benchmarks.bench_million"]
    # In a process of its own: what a process starts begins with that process's peak of memory.
    subprocess.run([*here, "--write", str(table), str(n)], check=True)
    fitted = measured([*here, "--fit", str(table), str(model)])
    command = [
        sys.executable,
        "-m",
        "treelens",
        "predict",
        str(model),
        str(table),
        "--out",
        str(out),
        "--id",
        "id",
        "--jobs",
        "2",
    ]
    predicted = measured(command)
    with out.open(encoding="utf-8") as lines:
        n_rows = sum(1 for _ in lines) - 1
    return {
        "n": n,
        "n_rows": n_rows,
        "fit": fitted,
        "predict": predicted,
        "load": os.getloadavg()[0],
        "treelens": tl.__version__,
    }


def rows() -> Iterator[Row]:
    """What is on file; measuring takes long, and is asked for by name."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    for found in map(json.loads, lines):
        fit, predict = found["fit"], found["predict"]
        minutes = (fit["seconds"] + predict["seconds"]) / 60
        memory = max(fit["largest_process_gb"], predict["largest_process_gb"])
        rate = found["n"] / predict["cpu_seconds"] * 2
        yield Row(
            f"{found['n']:,} SMILES, from the file to a model to predictions, two cores, a load "
            f"of {found['load']:.1f}",
            f"{minutes:.0f} min ({(fit['cpu_seconds'] + predict['cpu_seconds']) / 60:.0f} min of "
            f"processor time), {memory:.1f} GB",
            "at most 60 min, 4 GB",
            minutes <= 60 and memory <= 4,
        )
        yield Row(
            f"{found['n']:,} SMILES predicted in parts, by processor time on two cores",
            f"{rate:,.0f} a second ({found['n'] / predict['seconds']:,.0f} by the clock, with "
            "other programs)",
            "at least 3,000 a second",
            rate >= 3000,
        )


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--write"]:
        write_table(Path(arguments[1]), int(arguments[2]))
        return
    if arguments[:1] == ["--fit"]:
        fit(Path(arguments[1]), Path(arguments[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        row = measure(int(arguments[0]) if arguments else 1_000_000, Path(folder))
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
