"""Time default fits on a GPU against the same machine's CPU, and compare their predictions.

::

    python -m benchmarks.gpu --out docs/results/rows/device.jsonl

Every model is fitted twice and the second fit is timed (wall time), so that nothing is compiled in
it. It needs a GPU, the extra ``gpu`` and ``TREELENS_DATA``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import treelens as tl
from benchmarks.measure import load

SETS = ("ENZYMES", "PROTEINS", "DD", "NCI1")


def measured(name: str) -> dict[str, Any]:
    """Return seconds of a fit on both, what each scored, and how far predictions differ."""
    import cupy

    data = load(name)
    if data is None:
        raise FileNotFoundError(f"{name} is not in the folder TREELENS_DATA.")
    graphs, y = data
    train, test = train_test_split(np.arange(len(y)), test_size=0.1, random_state=0, stratify=y)
    found: dict[str, Any] = {"what": "default fit", "set": name, "n": len(train)}
    shares = []
    for device, prefix in (("cuda", ""), ("cpu", "cpu_")):
        model = tl.GraphClassifier(device=device, n_jobs=1, random_state=0)
        model.fit(graphs[train[:150]], y[train[:150]])
        start = time.perf_counter()
        model.fit(graphs[train], y[train])
        found[f"{prefix}seconds"] = time.perf_counter() - start
        shares.append(model.predict_proba(graphs[test]))
        found[f"{prefix}accuracy"] = float(np.mean(model.predict(graphs[test]) == y[test]))
        found[f"{prefix}evidence"] = model.evidence_
        found[f"{prefix}weights"] = model.best_weights_
    found["largest_difference"] = float(np.abs(shares[0] - shares[1]).max())
    gpu = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return {**found, "gpu": gpu, "numpy": np.__version__, "treelens": tl.__version__}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in SETS:
        found = measured(name)
        print(found, flush=True)
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
