"""What a type checker says of somebody's script: right use is clean, a misspelling is an error."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import treelens as tl

pytest.importorskip("mypy")

CLASSES = [name for name in tl.__all__ if inspect.isclass(getattr(tl, name))]
FUNCTIONS = [name for name in tl.__all__ if inspect.isfunction(getattr(tl, name))]

RIGHT_USE = """
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from typing_extensions import assert_type

import treelens as tl

version: str = tl.__version__
graphs, y = tl.read_smiles("molecules.csv", target="active")
active = y > 0
first: tl.Graph = graphs[0]
few: tl.GraphCollection = graphs[:10]

model = tl.GraphClassifier(depth=2, random_state=0).fit(graphs, y)
classes: np.ndarray = model.predict(few)
probabilities: np.ndarray = model.predict_proba(few)
accuracy: float = model.score(few, y[:10])
table: pd.DataFrame = model.patterns_
explanation = model.explain(first)
total = explanation.base + explanation.node_contributions.sum()
written: Path = model.report("report.html", few)
model.set_params(depth=3).save("model.treelens")

loaded = tl.load("model.treelens")
loaded.predict(few)
assert isinstance(loaded, tl.GraphClassifier)
loaded.predict_proba(few)

numbers = tl.GraphRegressor().fit(graphs, y)
values: np.ndarray = numbers.predict(few)
mean, std = numbers.predict(few, return_std=True)
wide = std > numbers.loo_.std.max()

svc = tl.GraphSVC(depth=[1, 2], C=10.0, cv=5).fit(graphs, y)
decisions: np.ndarray = svc.decision_function(few)

kernel = tl.WassersteinWL(depth=2, weights=tl.PairwiseWeights())
matrix: np.ndarray = kernel.fit(graphs, y).transform(few)
walks: np.ndarray = tl.RandomWalk(max_length=3).fit_transform(graphs)
cross_val_score(make_pipeline(kernel, SVC(kernel="precomputed")), few, y)
chances: np.ndarray = tl.GraphClassifier().fit([(graphs, y)]).predict_proba(few)

table_read = tl.read_table("molecules.csv", target="active", model=loaded)
assert_type(table_read, tl.MoleculeTable)  # an error of Any, too
assert_type(table_read.graphs, tl.GraphCollection)
assert_type(
    tl.load("model.treelens"),
    tl.GraphSVC | tl.GraphClassifier | tl.GraphPanel | tl.GraphRegressor,
)
assert_type(tl.suggest(numbers, table_read), pd.DataFrame)
assert_type(tl.advise(numbers, "CCO"), pd.DataFrame)
assert_type(tl.fit_distributed(tl.GraphRegressor(), [(graphs, y)]), tl.GraphRegressor)
assert_type(tl.Targets(y)[:3], tl.Targets)
"""

MISTAKES = """
import treelens as tl

graphs, y = tl.make_synthetic()
model = tl.GraphClassifier().fit(graphs, y)
model.predict_prob(graphs)  # attr-defined
model.loo_.probabilites  # attr-defined
model.explain(graphs[0]).contributions_of_nodes  # attr-defined
model.fit(graphs, y, sampel_weight=y)  # call-arg
tl.GraphClassifier(depth=[3])  # arg-type
tl.GraphRegressor().predict_proba(graphs)  # attr-defined
tl.GraphSVC(kernle="auto")  # call-arg
tl.GraphTransformer  # attr-defined
graphs[0].node_label  # attr-defined
tl.load("model.treelens").fti  # union-attr
tl.fit_distributed(tl.GraphSVC(), graphs)  # type-var
graphs[0.5]  # call-overload
"""


def errors_in(program: str, folder: Path) -> list[tuple[int, str]]:
    """Line and code of each error that mypy finds, with its own settings and not with ours."""
    script = folder / "script.py"
    script.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--config-file=",
            f"--cache-dir={folder / 'cache'}",
            "--ignore-missing-imports",
            str(script),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": str(Path(tl.__file__).parents[1])},
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"script\.py:(\d+): error: .*\[([a-z-]+)\]", done.stdout)
    assert len(found) == done.stdout.count(": error:"), done.stdout
    return [(int(line), code) for line, code in found]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """One for all programs: what mypy has read of treelens is kept beside the script."""
    return tmp_path_factory.mktemp("typed")


def test_right_use_is_clean(folder):
    assert errors_in(RIGHT_USE, folder) == []


def test_mistakes_are_errors(folder):
    expected = [
        (number, line.split("# ")[1])
        for number, line in enumerate(MISTAKES.splitlines(), start=1)
        if "# " in line
    ]
    assert sorted(set(errors_in(MISTAKES, folder))) == expected


def test_no_public_class_hides_a_misspelt_attribute_or_parameter(folder):
    lines = ["import treelens as tl"]
    for name in CLASSES:
        lines += [f"def _{name}(it: tl.{name}) -> None: it.fti()", f"tl.{name}(nonsense=1)"]
    lines += [f"tl.{name}(nonsense=1)" for name in FUNCTIONS]
    found = {line for line, _ in errors_in("\n".join(lines), folder)}
    assert found == set(range(2, len(lines) + 1))
