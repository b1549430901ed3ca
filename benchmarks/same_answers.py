"""Compare the answers of this checkout with those of another one, to 1e-6.

The values are predictions, standard deviations, probabilities and decision values of models that
are fitted with every setting given, on one split of each regression set and a few folds of TU
sets. Run it once in the old checkout and once in the new one::

    PYTHONPATH=OLD/src python -m benchmarks.same_answers --out old.json
    python -m benchmarks.same_answers --against old.json

It needs ``TREELENS_DATA``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from reproduction.data import data_folder
from sklearn.model_selection import StratifiedKFold, train_test_split

import treelens as tl

TOLERANCE = 1e-6
REGRESSION = ("FreeSolv", "ESOL", "Lipophilicity")
CLASSES = ("MUTAG", "PTC_MR", "ENZYMES")


def regression(name: str) -> dict[str, list[float]]:
    """Return means and standard deviations of learned weights on one random split."""
    graphs, y = tl.read_smiles(data_folder() / "smiles" / f"{name}.csv.gz", target="value")
    y = np.asarray(y, dtype=float)
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0)
    model = tl.GraphRegressor(depth=4, weights="branches", random_state=0)
    model.fit(graphs[train], y[train])
    mean, deviation = model.predict(graphs[test], return_std=True)
    return {"mean": mean.tolist(), "std": deviation.tolist()}


def classes(name: str) -> dict[str, list[float]]:
    """Return probabilities of the GP and decision values of the SVM on the first fold."""
    graphs, y = tl.load_dataset(name)
    train, test = next(StratifiedKFold(10, shuffle=True, random_state=0).split(y, y))
    gp = tl.GraphClassifier(depth=4, weights="branches", random_state=0).fit(
        graphs[train], y[train]
    )
    svm = tl.GraphSVC(kernel="wl-oa", depth=3, weight_radius=0.0, C=1.0, random_state=0)
    svm.fit(graphs[train], y[train])
    return {
        "probabilities": gp.predict_proba(graphs[test]).ravel().tolist(),
        "decisions": np.ravel(svm.decision_function(graphs[test])).tolist(),
    }


def answers() -> dict[str, dict[str, list[float]]]:
    found = {}
    tasks: list[tuple[str, Callable[[str], dict[str, list[float]]]]] = [
        *((name, regression) for name in REGRESSION),
        *((name, classes) for name in CLASSES),
    ]
    for name, compute in tasks:
        found[name] = compute(name)
        print(name, {key: len(values) for key, values in found[name].items()}, flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    new = answers()
    if options.out is not None:
        options.out.write_text(json.dumps(new))
    if options.against is None:
        return 0
    old, worst = json.loads(options.against.read_text()), 0.0
    for name, values in old.items():
        for key, numbers in values.items():
            gap = float(np.abs(np.array(numbers) - np.array(new[name][key])).max())
            print(f"{name:14} {key:14} largest difference {gap:.1e}")
            worst = max(worst, gap)
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    raise SystemExit(main())
