"""Time default fits against those of another checkout, in fresh processes that take turns.

::

    python -m benchmarks.bench_fit --against OLD/src --out docs/results/rows/fit_speed.jsonl

Every process fits twice on one thread and reports the second fit, so that nothing is compiled in
it: processor seconds, and the error or accuracy on the test part. It needs ``TREELENS_DATA``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

SETS = ("FreeSolv", "ESOL", "Lipophilicity", "NCI1")
_FIT = """
import json, os, sys, time, warnings
import numpy as np
from sklearn.model_selection import train_test_split
import treelens as tl
warnings.simplefilter("ignore")
name, seed = sys.argv[1], int(sys.argv[2])
if name == "NCI1":
    graphs, y = tl.load_dataset(name)
    model = tl.GraphClassifier(random_state=0)
else:
    path = os.path.join(os.environ["TREELENS_DATA"], "smiles", name + ".csv.gz")
    graphs, y = tl.read_smiles(path, target="value")
    y, model = np.asarray(y, dtype=float), tl.GraphRegressor(random_state=0)
share = 0.1 if name == "NCI1" else 0.2
train, test = train_test_split(np.arange(len(y)), test_size=share, random_state=seed)
small = train[:150]
model.fit(graphs[small], y[small])
start = time.process_time()
model.fit(graphs[train], y[train])
seconds = time.process_time() - start
if name == "NCI1":
    score = {"accuracy": float(model.score(graphs[test], y[test]))}
else:
    mean, std = model.predict(graphs[test], return_std=True)
    density = 0.5 * ((y[test] - mean) / std) ** 2 + np.log(std) + 0.5 * np.log(2 * np.pi)
    score = {"rmse": float(np.sqrt(np.mean((y[test] - mean) ** 2))), "nlpd": float(density.mean())}
print(json.dumps({"n_train": len(train), "seconds": seconds, **score}))
"""


def fit(source: Path | None, name: str, seed: int) -> dict[str, float]:
    """Return what one process measured, with the package at ``source`` or the installed one."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    done = subprocess.run(
        [sys.executable, "-c", _FIT, name, str(seed)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, required=True, help="src of the other checkout")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for name in options.sets:
        for seed in range(options.splits):
            old, new = fit(options.against, name, seed), fit(None, name, seed)
            row = {"set": name, "split": seed, "old": old, "new": new,
                   "ratio": old["seconds"] / new["seconds"]}  # fmt: skip
            print(json.dumps(row), flush=True)
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as rows:
                    rows.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
