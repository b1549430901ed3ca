"""Results at a glance: one figure and one table, made from the summaries of the studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.pages import markdown_table, write_page

METHODS = ("treelens", "treelens_uniform", "ecfp_gp")
HEADER = ["RMSE on held-out molecules", "treelens", "uniform weights", "ECFP6 counts, Tanimoto GP"]


def write_glance(out: Path) -> None:
    """Write ``index.md``, where there are the summaries that it needs."""
    needed = [out / f"{name}.json" for name in ("regression", "moleculeace", "evidence")]
    if not all(path.exists() for path in needed):
        return
    numbers, assays, classes = (json.loads(path.read_text()) for path in needed)
    parts = [
        "![Error against the number of training molecules](figures/curves.png)",
        "*[Learning curves](curves.md): the fewer the molecules, the more learned weights take off "
        "the error of solubility; on an assay of binding they take off nothing.*",
        glance_table(numbers, assays),
        _classes_text(classes),
        "Every page of this folder names the command that makes it, and lies beside its rows.",
    ]
    write_page(
        out / "index.md", "Results at a glance", "python -m reproduction pages --out docs/results",
        parts,
    )  # fmt: skip


def glance_table(numbers: dict[str, Any], assays: dict[str, Any]) -> str:
    """Numbers of molecules: three sets over their splits, and the mean over the assays."""
    lines = [
        [f"{name}, {numbers[name]['treelens']['n_splits']} random splits",
         *(f"{numbers[name][method]['rmse']:.3f}" for method in METHODS)]
        for name in ("ESOL", "FreeSolv", "Lipophilicity")
    ]  # fmt: skip
    means = [float(np.mean([found[m]["rmse"] for found in assays.values()])) for m in METHODS]
    lines.append([f"MoleculeACE, mean of {len(assays)} assays", *(f"{mean:.3f}" for mean in means)])
    return markdown_table(HEADER, lines)


def _classes_text(classes: dict[str, Any]) -> str:
    changes = {
        name: found["evidence_branches"]["accuracy"] - found["evidence_uniform"]["accuracy"]
        for name, found in classes.items()
    }
    words = ", ".join(f"{name} {change:+.1f}" for name, change in changes.items())
    return (
        "For classes learning changes little: points of accuracy that it adds to uniform weights "
        f"are {words} ([by evidence](evidence.md); only that of ENZYMES is more than chance before "
        "a correction for the number of tests, and none is [after it](table2.md))."
    )
