"""Time default fits on a GPU against the same machine's CPU, and compare their predictions.

::

    python -m benchmarks.gpu --out docs/results/rows/device.jsonl

Every model is fitted to a few graphs before, so that nothing is compiled in the fit that is timed
(wall time). HIV is fitted exactly and only on the GPU. It needs a GPU, the extra ``gpu`` and
``TREELENS_DATA``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import treelens as tl

SETS = ("ENZYMES", "PROTEINS", "DD", "NCI1", "HIV")


def measured(name: str, graphs: tl.GraphCollection, y: np.ndarray) -> dict[str, Any]:
    """Return seconds of a fit and of predictions on each device, scores, and differences."""
    share = 0.2 if name == "HIV" else 0.1
    train, test = train_test_split(np.arange(len(y)), test_size=share, random_state=0, stratify=y)
    found: dict[str, Any] = {"what": "default fit", "set": name, "n": len(train)}
    found |= {"n_test": len(test), "gpu": gpu_name(), "numpy": np.__version__}
    probabilities = []
    for device, prefix in (("cuda", ""), ("cpu", "cpu_"))[: 1 if name == "HIV" else 2]:
        model = tl.GraphClassifier(
            device=device, n_jobs=1, random_state=0, descriptors=False, exact_size=len(train)
        )
        model.fit(graphs[train[:150]], np.arange(150) % len(np.unique(y)))
        start = time.perf_counter()
        model.fit(graphs[train], y[train])
        fitted = time.perf_counter()
        probabilities.append(model.predict_proba(graphs[test]))
        found[f"{prefix}seconds"] = fitted - start
        found[f"{prefix}predict_seconds"] = time.perf_counter() - fitted
        found[f"{prefix}accuracy"] = float(np.mean(model.predict(graphs[test]) == y[test]))
        found[f"{prefix}evidence"], found[f"{prefix}weights"] = model.evidence_, model.best_weights_
    if len(model.classes_) == 2:
        found["roc_auc"] = float(roc_auc_score(y[test], probabilities[0][:, 1]))
    if len(probabilities) == 2:
        found["largest_difference"] = float(np.abs(probabilities[0] - probabilities[1]).max())
    return found


def gpu_name() -> str:
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in SETS:
        found = measured(name, *tl.load_dataset(name))
        print(found, flush=True)
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
