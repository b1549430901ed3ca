"""The page of what a GPU does: steps, how near they are to what bounds them, fits and folds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.pages import command_line, markdown_table, plus_minus, write_json, write_page

# Of an H200 as its maker gives them: double precision by tensor cores, and memory.
_PEAK_FLOPS = 67e12
_PEAK_BYTES = 4.8e12
STEPS = ("kernel", "factor", "solve", "inverse", "gather", "evaluation")


def write_device(out: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The page, and its numbers."""
    steps = {row["set"]: row for row in rows if row["what"] == "steps"}
    fits = {row["what"]: row for row in rows if row["what"].startswith("fit on")}
    folds = [row for row in rows if row["what"].startswith("exact")]
    write_json(out / "device.json", device_summary(steps, fits, folds))
    parts = [
        "One NVIDIA H200, double precision throughout. Steps of one evaluation of evidence and "
        "gradient over *all* graphs of a set at depth 4 (HIV in two trees, as by default), at "
        "uniform weights, best of three:",
        markdown_table(["set", "graphs", *(f"{step}, s" for step in STEPS)], _step_lines(steps)),
        _roofline(steps["HIV"]) if "HIV" in steps else "",
        _fit_words(fits),
        _fold_table(folds),
    ]
    write_page(
        out / "device.md", "On one GPU", command_line("device"), [part for part in parts if part]
    )


def device_summary(
    steps: dict[str, Any], fits: dict[str, Any], folds: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Seconds of steps and fits, their ratio, and mean scores of the folds."""
    summary: dict[str, Any] = {
        name: {"n": row["n"], **{step: row[step] for step in STEPS}} for name, row in steps.items()
    }
    if {"fit on cuda", "fit on cpu"} <= set(fits):
        seconds = {where: fits[f"fit on {where}"]["seconds"] for where in ("cuda", "cpu")}
        summary["fit"] = {**seconds, "ratio": seconds["cpu"] / seconds["cuda"]}
    for what in sorted({row["what"] for row in folds}):
        found = [row for row in folds if row["what"] == what]
        means = {k: float(np.mean([r[k] for r in found])) for k in ("roc_auc", "pr_auc", "seconds")}
        summary[what] = {**means, "n_folds": len(found)}
    return summary


def _step_lines(steps: dict[str, Any]) -> list[list[Any]]:
    return [
        [name, f"{row['n']:,}", *(f"{row[step]:.3f}" for step in STEPS)]
        for name, row in steps.items()
    ]


def _roofline(row: dict[str, Any]) -> str:
    """What bounds each step, and how near it is, in words."""
    n = row["n"]
    cube, matrix = float(n) ** 3, 8.0 * n * n
    factor, inverse = cube / 3 / row["factor"], 2 * cube / 3 / row["inverse"]
    return (
        f"What bounds them, on HIV. A matrix of pairs is {matrix / 1e9:.1f} GB. "
        f"*Factor* ({cube / 3:.1e} operations) and *inverse* ({2 * cube / 3:.1e}) are products of "
        f"large matrices, bound by arithmetic: {factor / 1e12:.0f} and {inverse / 1e12:.0f} "
        f"TFLOP/s, {100 * factor / _PEAK_FLOPS:.0f} and {100 * inverse / _PEAK_FLOPS:.0f} % of the "
        f"{_PEAK_FLOPS / 1e12:.0f} that the maker names for tensor cores in double precision. "
        f"*Kernel* adds up {row['pairs_in_lists']:.1e} shared patterns of pairs, in shared memory, "
        f"and passes three times over the matrix: reading and writing alone would take "
        f"{3 * matrix / _PEAK_BYTES * 1e3:.0f} ms of {row['kernel'] * 1e3:.0f}, so it is bound by "
        f"the lists, {row['pairs_in_lists'] / row['kernel'] / 1e9:.0f} billion additions a second; "
        f"*gather*, the same lists backwards, by the same: "
        f"{row['pairs_in_lists'] / row['gather'] / 1e9:.0f} billion. The rest of an evaluation, "
        f"{_rest(row) * 1e3:.0f} ms, are slopes, sums and the way to the host. Unary columns (one "
        "for each count that a pattern reaches, multiplied as dense matrices), which an earlier "
        f"version had, would be {_unary_flops(row):.0e} operations for these sums on HIV if only "
        "its patterns shared by two graphs or more had a column each: seconds instead of a fifth "
        "of one. They are gone."
    )


def _rest(row: dict[str, Any]) -> float:
    return row["evaluation"] - sum(row[step] for step in STEPS[:-1])


def _unary_flops(row: dict[str, Any]) -> float:
    """Of the dense product over the patterns that two graphs or more of HIV share."""
    return 2.0 * row["n"] ** 2 * row["shared_patterns"]


def _fit_words(fits: dict[str, Any]) -> str:
    if not {"fit on cuda", "fit on cpu"} <= set(fits):
        return ""
    there, here = fits["fit on cuda"], fits["fit on cpu"]
    return (
        f"`GraphClassifier(learning_size=...)` on all {there['n']:,} graphs of NCI1, in the same "
        f"run: {there['seconds']:.1f} s on the GPU, {here['seconds']:.0f} s on two threads of "
        f"that machine's CPU, {here['seconds'] / there['seconds']:.0f} times as long. Log evidence "
        f"{there['evidence']:.3f} and {here['evidence']:.3f}, the same leave-one-out accuracy."
    )


def _fold_table(folds: Sequence[dict[str, Any]]) -> str:
    if not folds:
        return ""
    lines = []
    for what in sorted({row["what"] for row in folds}):
        found = [row for row in folds if row["what"] == what]
        scores = [_with_error([row[s] for row in found]) for s in ("roc_auc", "pr_auc")]
        times = [
            f"{np.mean([row[s] for row in found]):.1f}" for s in ("seconds", "predict_seconds")
        ]
        lines.append([what, *scores, *times, len(found)])
    table = markdown_table(["process", "ROC AUC", "PR AUC", "fit s", "predict s", "folds"], lines)
    return (
        "HIV in five folds of whole scaffolds (`ScaffoldKFold(5, random_state=0)`), some 32,900 "
        "molecules trained on and 8,200 predicted, the posterior exact. Weights as by default "
        "(3,000 molecules); ± is the standard error over folds, beside which [the default on a CPU "
        "and a forest](hiv.md) stand.\n\n" + table
    )


def _with_error(values: Sequence[float]) -> str:
    error = float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0
    return plus_minus(float(np.mean(values)), error, 3)
