"""Does the domain of applicability order the errors? Thirds of test molecules, called near to far.

    TREELENS_DATA=... python -m reproduction domain --out docs/results

Random splits have seeds from 10 on: how the expected error is made was chosen on others, and on
other assays of MoleculeACE than those here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import StudyOptions, data_folder
from reproduction.moleculeace import read_assay
from reproduction.pages import command_line, markdown_table, write_page
from reproduction.rows import RowFile, versions
from treelens.evaluation.splits import ScaffoldKFold
from treelens.graphs.molecules import smiles_to_collection

# Set -> random splits, scaffold folds.
SETS = {"ESOL": (3, 3), "Lipophilicity": (1, 0)}
ASSAYS = ("CHEMBL219_Ki", "CHEMBL231_Ki", "CHEMBL4005_Ki")
FIRST_SEED = 10
SALT = "[Na+].[Cl-]"


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    rows = RowFile(asked.out / "domain.jsonl", ("set", "split", "number"))
    for name in asked.sets or (*SETS, *ASSAYS):
        graphs, values, splits = _data(name, asked.repeats)
        for split, number, train, test in splits:
            row = {"set": name, "split": split, "number": number}
            if row in rows:
                continue
            found = ordered_errors(graphs, values, train, test, asked.n_jobs)
            rows.append({**row, **found, **versions()})
            print(row, round(found["ratio"], 2), f"{found['seconds']:.0f} s", flush=True)


def _data(name: str, repeats: int | None) -> tuple[Any, np.ndarray, list[Any]]:
    if name not in SETS:
        table = read_assay(data_folder() / f"moleculeace/{name}.csv.gz")
        test = np.array([row["test"] for row in table])
        values = np.array([row["value"] for row in table])
        split = ("published", 0, np.flatnonzero(~test), np.flatnonzero(test))
        return smiles_to_collection([row["smiles"] for row in table]), values, [split]
    graphs, values = tl.read_smiles(data_folder() / f"smiles/{name}.csv.gz", target="value")
    n_random, n_scaffold = (repeats, repeats) if repeats else SETS[name]
    splits = [*_random(len(graphs), n_random), *_scaffolds(graphs, n_scaffold)]
    return graphs, values, splits


def _random(n: int, n_splits: int) -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
    for seed in range(FIRST_SEED, FIRST_SEED + n_splits):
        order = np.random.default_rng(seed).permutation(n)
        yield "random", seed, order[: int(0.8 * n)], order[int(0.8 * n) :]


def _scaffolds(graphs: Any, n: int) -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
    folds = ScaffoldKFold(5, random_state=FIRST_SEED).split(graphs)
    for number, (train, test) in zip(range(n), folds, strict=False):
        yield "scaffold", number, train, test


def ordered_errors(
    graphs: Any, values: np.ndarray, train: np.ndarray, test: np.ndarray, n_jobs: int
) -> dict[str, Any]:
    """Errors of the nearest and of the furthest third, and inside and outside of the domain."""
    start = time.perf_counter()
    model = tl.GraphRegressor(n_jobs=n_jobs, random_state=0).fit(graphs[train], values[train])
    table = model.predict_table(graphs[test])
    error = (table["prediction"] - values[test]).to_numpy()
    thirds = np.array_split(np.argsort(table["expected_error"].to_numpy(), kind="stable"), 3)
    near, middle, far = (_rmse(error[third]) for third in thirds)
    inside = table["in_domain"].to_numpy()
    return {
        "near": near, "middle": middle, "far": far, "ratio": far / near,
        "mae_ratio": float(np.abs(error[thirds[2]]).mean() / np.abs(error[thirds[0]]).mean()),
        "std_ratio": _ratio_by(table["std"].to_numpy(), error),
        "similarity_ratio": _ratio_by(-table["similarity"].to_numpy(), error),
        "n_test": len(test), "n_outside": int((~inside).sum()),
        "inside": _rmse(error[inside]), "outside": _rmse(error[~inside]),
        "salt_is_outside": not bool(model.domain([SALT])["in_domain"].iloc[0]),
        "seconds": time.perf_counter() - start,
    }  # fmt: skip


def _ratio_by(order_by: np.ndarray, error: np.ndarray) -> float:
    thirds = np.array_split(np.argsort(order_by, kind="stable"), 3)
    near, far = _rmse(error[thirds[0]]), _rmse(error[thirds[2]])
    assert near is not None
    assert far is not None
    return far / near


def _rmse(error: np.ndarray) -> float | None:
    return float(np.sqrt(np.mean(error**2))) if len(error) else None


def write_domain(out: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The page."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["split"]), []).append(row)
    lines = [[*key, *_line(found)] for key, found in groups.items()]
    header = ["set", "split", "test parts", "nearest third", "middle", "furthest third", "ratio",
              "by std", "by similarity", "outside", "RMSE inside", "RMSE outside"]  # fmt: skip
    salt = sum(row["salt_is_outside"] for row in rows)
    parts = [
        "Test molecules in the order of `expected_error` of `GraphRegressor.domain`, cut into "
        "thirds: the root mean squared error of each, and the furthest third's over the nearest "
        "third's. Beside it the same by the standard deviation alone and by the similarity to the "
        "nearest training molecule alone. Outside are molecules with `in_domain` False. Means over "
        "test parts; where none is outside there is no error. Random splits have seeds from "
        f"{FIRST_SEED} on; the settings were chosen on others.",
        markdown_table(header, lines),
        f"Sodium chloride is outside for {salt} of {len(rows)} models.",
    ]
    write_page(out / "domain.md", "Domain of applicability", command_line("domain"), parts)


def _line(rows: Sequence[dict[str, Any]]) -> list[str]:
    def mean(name: str) -> str:
        known = [row[name] for row in rows if row[name] is not None]
        return f"{np.mean(known):.3f}" if known else ""

    outside = sum(row["n_outside"] for row in rows) / sum(row["n_test"] for row in rows)
    ratios = [f"{np.mean([row[name] for row in rows]):.2f}"
              for name in ("ratio", "std_ratio", "similarity_ratio")]  # fmt: skip
    return [str(len(rows)), mean("near"), mean("middle"), mean("far"), f"**{ratios[0]}**",
            *ratios[1:], f"{100 * outside:.0f} %", mean("inside"), mean("outside")]  # fmt: skip
