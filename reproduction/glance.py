"""Results at a glance: one figure and one table, made from the summaries of the studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.pages import markdown_table, write_page
from reproduction.tables import uniform_twins
from treelens.evaluation.validation import holm

METHODS = {
    "treelens": "treelens",
    "treelens_uniform": "uniform weights",
    "ecfp4_gp": "ECFP4 Tanimoto GP",
    "ecfp_gp": "ECFP6 Tanimoto GP",
    "ecfp_forest": "ECFP4 forest",
    "ecfp_boosting": "ECFP4 boosting",
}
HEADER = ["RMSE on held-out molecules", *METHODS.values()]
_COST = "What a fit costs, ours and others side by side: [speed and cost](cost.md)."


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
        _classes_text(classes, out / "table2_tests.json"),
        *([_COST] if (out / "cost.jsonl").exists() else []),
        "Every page of this folder names the command that makes it; most lie beside their rows.",
    ]
    write_page(
        out / "index.md", "Results at a glance", "python -m reproduction pages --out docs/results",
        parts,
    )  # fmt: skip


def glance_table(numbers: dict[str, Any], assays: dict[str, Any]) -> str:
    """Numbers of molecules: three sets over their splits, and the mean over the assays."""
    lines = [_splits_line(name, numbers[name]) for name in ("ESOL", "FreeSolv", "Lipophilicity")]
    n_assays = len(assays)
    line = [f"MoleculeACE, mean of {n_assays} assays"]
    for method in METHODS:
        found = [assay[method]["rmse"] for assay in assays.values() if method in assay]
        line.append(f"{np.mean(found):.3f}" if len(found) == n_assays else "–")
    lines.append(line)
    return markdown_table(HEADER, lines)


def _splits_line(name: str, found: dict[str, Any]) -> list[str]:
    """The errors of one set; a method that fewer splits were run with says so."""
    n_splits = found["treelens"]["n_splits"]
    line = [f"{name}, {n_splits} random splits"]
    for method in METHODS:
        own = found.get(method)
        if own is None:
            line.append("–")
            continue
        few = "" if own["n_splits"] == n_splits else f" ({own['n_splits']} splits)"
        line.append(f"{own['rmse']:.3f}{few}")
    return line


def _classes_text(classes: dict[str, Any], tests: Path) -> str:
    changes = {
        name: found["evidence_branches"]["accuracy"] - found["evidence_uniform"]["accuracy"]
        for name, found in classes.items()
    }
    words = ", ".join(f"{name} {change:+.1f}" for name, change in changes.items())
    return (
        "For classes it depends on the set. Points of accuracy that learning adds to uniform "
        f"weights: {words} ([by evidence](evidence.md)). After a correction for the number of "
        f"tests in [Table 2](table2.md), {_significant(tests)}."
    )


def _significant(tests: Path) -> str:
    """Which gains of learning over uniform weights stand after Holm's correction, in words."""
    if not tests.exists():
        return "nothing was tested"
    table, twins = json.loads(tests.read_text()), uniform_twins()
    found = [
        (name, ours, rows[twins[ours]]["p_corrected"])
        for name, methods in table.items()
        for ours, rows in methods.items()
        if ours in twins and rows.get(twins[ours], {}).get("p_corrected") is not None
    ]
    adjusted = holm([p for _, _, p in found])
    left = [f"{name} (p = {p:.3f})" for (name, _, _), p in zip(found, adjusted, strict=True)
            if p < 0.05]  # fmt: skip
    return f"the gain on {' and '.join(left)} is left" if left else "no gain is left"
