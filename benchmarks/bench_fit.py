"""Time default fits and predictions against another checkout, in fresh processes that take turns.

::

    python -m benchmarks.bench_fit --against OLD/src --out docs/results/rows/fit_speed.jsonl

``fit``: every process fits twice and reports the second fit, so that nothing is compiled in it,
with the error or accuracy on the test part; of molecules, also a fit on ECFP counts with a kernel
of the same form. ``first``: a fit of 1,000 molecules with nothing compiled before, imports
included. ``predict``: SMILES a second, from text to number. ``landmarks``: molecules of HIV, 3,000
landmarks and the exact posterior. ``attributes``: a fit with continuous attributes and one by
labels alone. ``table``: the default command on all of HIV. One thread, and processor seconds, as
other programs may be running. It needs ``TREELENS_DATA``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SETS = ("FreeSolv", "ESOL", "ppbr_az", "Lipophilicity", "NCI1")  # the third is one of TDC's
_BEGIN = """
import time
start = time.process_time()
import json, os, sys, warnings
import numpy as np
import treelens as tl
warnings.simplefilter("ignore")
def read(name, target="value"):
    path, columns = os.path.join("smiles", name + ".csv.gz"), {"target": target}
    if name == "ppbr_az":
        path = os.path.join("tdc", name + ".train_val.csv.gz")
        columns = {"smiles": "Drug", "target": "Y"}
    path = os.path.join(os.environ["TREELENS_DATA"], path)
    graphs, y = tl.read_smiles(path, on_invalid="skip", **columns)
    return graphs, np.asarray(y, dtype=float if target == "value" else int)
def seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start
"""
_FIT = """
from sklearn.model_selection import train_test_split
name, seed = sys.argv[1], int(sys.argv[2])
numbers = name != "NCI1"
graphs, y = read(name) if numbers else tl.load_dataset(name)
models = {"seconds": (tl.GraphRegressor if numbers else tl.GraphClassifier)(random_state=0)}
try:
    from treelens.chem.baselines import BASELINES
    models |= {"ecfp_seconds": BASELINES["ecfp_gp"][1](random_state=0)} if numbers else {}
except ImportError:  # of an older checkout
    pass
share = 0.2 if numbers else 0.1
train, test = train_test_split(np.arange(len(y)), test_size=share, random_state=seed)
found = {"n_train": len(train)}
for key, model in models.items():
    model.fit(graphs[train[:150]], y[train[:150]])
    found[key] = seconds(lambda: model.fit(graphs[train], y[train]))
model = models["seconds"]
if numbers:
    mean, std = model.predict(graphs[test], return_std=True)
    density = 0.5 * ((y[test] - mean) / std) ** 2 + np.log(std) + 0.5 * np.log(2 * np.pi)
    found["rmse"], found["nlpd"] = np.sqrt(np.mean((y[test] - mean) ** 2)), density.mean()
else:
    found["accuracy"] = model.score(graphs[test], y[test])
print(json.dumps({key: float(value) for key, value in found.items()}))
"""
_FIRST = """
graphs, y = read("ESOL")
tl.GraphRegressor().fit(list(graphs.graph_data["smiles"][:1000]), y[:1000])
print(json.dumps({"seconds": time.process_time() - start}))
"""
_PREDICT = """
graphs, y = read(sys.argv[1])
smiles, order = graphs.graph_data["smiles"], np.random.default_rng(0).permutation(len(y))
train, test = order[:1000], np.resize(order[1000:], 3000)
found, some = {}, [smiles[i] for i in test]
known = "descriptors" in tl.GraphRegressor().get_params()
for name in ("without", "with") if known else ("without",):
    settings = {"descriptors": name == "with"} if known else {}
    model = tl.GraphRegressor(random_state=0, max_steps=3, **settings)
    model.fit([smiles[i] for i in train], y[train])
    model.predict(some[:200])
    mean = min(seconds(lambda: model.predict(some)) for _ in range(3))
    std = min(seconds(lambda: model.predict(some, return_std=True)) for _ in range(3))
    found |= {f"mean, {name} descriptors": 3000 / mean, f"std, {name} descriptors": 3000 / std}
print(json.dumps(found))
"""
_LANDMARKS = """
graphs, y = read("HIV", "label")
some = np.sort(np.random.default_rng(0).permutation(len(y))[: int(sys.argv[1])])
graphs, y = graphs[some], y[some]
settings = {"random_state": 0, "n_jobs": 1, "learning_size": 1000}
model = tl.GraphClassifier(exact_size=10, n_landmarks=50, **settings).fit(graphs[:200], y[:200])
found = {}
for name, size in (("landmarks", len(y) - 1), ("exact", len(y))):
    model = tl.GraphClassifier(exact_size=size, n_landmarks=len(y) // 4, **settings)
    found[name] = seconds(lambda: model.fit(graphs, y))
print(json.dumps(found))
"""
_ATTRIBUTES = """
from sklearn.model_selection import StratifiedKFold
graphs, y = tl.read_tudataset(os.path.join(os.environ["TREELENS_DATA"], "tu", sys.argv[1] + ".zip"))
found = {"attributes": [], "labels": []}
for train, _ in list(StratifiedKFold(10, shuffle=True, random_state=0).split(y, y))[:3]:
    for name, attributes in (("attributes", "auto"), ("labels", "ignore")):
        model = tl.GraphClassifier(views=[tl.WLPatterns(attributes=attributes)], random_state=0)
        model.fit(graphs[train[::4]], y[train[::4]])
        found[name].append(seconds(lambda: model.fit(graphs[train], y[train])))
print(json.dumps({name: float(np.median(times)) for name, times in found.items()}))
"""
_TABLE = """
from treelens.cli.main import main
path = os.path.join(os.environ["TREELENS_DATA"], "smiles", "HIV.csv.gz")
out = os.path.join(os.environ["NUMBA_CACHE_DIR"], "hiv.treelens")
sys.argv = ["treelens", "fit", path, "--target", "label", "--out", out]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps({"seconds": time.process_time() - start}))
"""


def measure(source: Path | None, program: str, *arguments: str) -> dict[str, float]:
    """Return what one process measured, with the package at ``source`` or the installed one."""
    with tempfile.TemporaryDirectory() as made:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if program in (_FIRST, _TABLE):
            environment["NUMBA_CACHE_DIR"] = made
        if source is not None:
            environment["PYTHONPATH"] = str(source)
        done = subprocess.run(
            [sys.executable, "-c", _BEGIN + program, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def rows(what: str, old: Path, sets: list[str], splits: int) -> Iterator[dict[str, Any]]:
    def both(program: str, name: str, *more: str) -> dict[str, Any]:
        found = [measure(source, program, name, *more) for source in (old, None)]
        return {"what": what, "set": name, "old": found[0], "new": found[1]}

    if what == "fit":
        for name in sets:
            for seed in range(splits):
                row = both(_FIT, name, str(seed))
                yield {**row, "split": seed, "ratio": row["old"]["seconds"] / row["new"]["seconds"]}
    elif what == "first":
        yield both(_FIRST, "ESOL")
    elif what == "predict":
        yield from (both(_PREDICT, s) for s in sets if s in ("ESOL", "Lipophilicity"))
    elif what == "landmarks":
        yield {"what": what, "set": "HIV", "n": 12_000, "new": measure(None, _LANDMARKS, "12000")}
    elif what == "attributes":
        for name in ("ENZYMES", "PROTEINS", "BZR"):
            yield {"what": what, "set": name, "new": measure(None, _ATTRIBUTES, name)}
    else:
        yield {"what": what, "set": "HIV", "new": measure(None, _TABLE)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, required=True, help="src of the other checkout")
    kinds = ("fit", "first", "predict", "landmarks", "attributes", "table")
    parser.add_argument("--what", nargs="*", choices=kinds, default=kinds)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for what in options.what:
        for row in rows(what, options.against, options.sets, options.splits):
            print(json.dumps(row), flush=True)
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
