"""Tables and pages from rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import fidelity_page, fragments_page
from reproduction.cost_page import write_cost
from reproduction.curve_pages import write_active, write_curves
from reproduction.device_page import write_device
from reproduction.domain import write_domain
from reproduction.glance import write_glance
from reproduction.hiv import write_hiv
from reproduction.landmarks import write_landmarks
from reproduction.options import STRENGTHS
from reproduction.pages import command_line, markdown_table, write_json, write_page
from reproduction.panel import write_panel
from reproduction.rare import write_rare
from reproduction.rows import read_rows
from reproduction.scaffolds import write_scaffolds
from reproduction.summaries import (
    assay_summary,
    class_summary,
    paired_gain,
    regression_summary,
)
from reproduction.trees import write_trees

NAMES = {
    "treelens": "treelens",
    "treelens_depths": "treelens, depths only",
    "treelens_uniform": "treelens, uniform weights",
    "treelens_descriptors": "treelens, RDKit's descriptors beside the graphs",
    "ecfp_gp": "ECFP6 counts, Tanimoto GP",
    "ecfp4_gp": "ECFP4 counts, Tanimoto GP",
    "ecfp_forest": "ECFP4 counts, forest",
    "ecfp_boosting": "ECFP4 counts, boosted trees",
    "evidence_uniform": "uniform",
    "evidence_depths": "depths",
    "evidence_branches": "branches",
}
_PUBLISHED = Path(__file__).with_name("published_moleculeace.json")


def write_all(out: Path) -> None:
    """Write every page that there are rows for."""
    for name, write in (
        ("regression", write_regression),
        ("regression_scaffold", write_scaffolds),
        ("moleculeace", write_moleculeace),
        ("evidence", write_classes),
        ("evidence_options", write_options),
        ("curves", write_curves),
        ("active", write_active),
        ("fragments", fragments_page.write),
        ("fidelity", fidelity_page.write),
        ("domain", write_domain),
        ("rare", write_rare),
        ("panel", write_panel),
        ("trees", write_trees),
        ("device", write_device),
        ("landmarks", write_landmarks),
        ("hiv", write_hiv),
        ("cost", write_cost),
    ):
        if (out / f"{name}.jsonl").exists():
            write(out, read_rows(out / f"{name}.jsonl"))
    write_glance(out)


# --- numbers ----------------------------------------------------------------------------------


def write_regression(out: Path, rows: list[dict[str, Any]]) -> None:
    summary = regression_summary(rows)
    write_json(out / "regression.json", summary)
    parts = [
        "Numbers of molecules, random 80/20 splits (seeds 0, 1, ...; the settings were chosen on "
        "seeds from 100 on). Everything that is learned or tuned comes from the training part; "
        "the Tanimoto process tunes amplitude and noise by marginal likelihood, as ours does; the "
        "forest has 500 trees and scikit-learn's defaults, boosting 200 rounds at a rate of 0.1. "
        "± is the standard deviation over splits; coverage is that of 90 % intervals. Seconds were "
        "taken while other programs ran; rows say on which device weights were learned "
        "(Lipophilicity: a GPU).",
        *(_regression_part(name, methods, rows) for name, methods in summary.items()),
    ]
    write_page(
        out / "regression.md",
        "Numbers of molecules",
        command_line("regression"),
        parts,
    )


def _regression_part(name: str, methods: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    table = markdown_table(
        ["method", "RMSE", "NLPD", "coverage", "splits", "seconds"],
        [
            [
                NAMES[method],
                f"{found['rmse']:.3f} ± {found['std']:.3f}",
                f"{found['nlpd']:.2f}" if "nlpd" in found else "",
                f"{100 * found['coverage']:.0f} %" if "coverage" in found else "",
                found["n_splits"],
                f"{found['seconds']:.0f}",
            ]
            for method, found in methods.items()
        ],
    )
    gain = paired_gain(rows, name, "treelens_uniform", "treelens", "rmse", ("split",), 0.25)
    words = ""
    if gain is not None:
        share = 100 * gain["difference"] / methods["treelens_uniform"]["rmse"]
        words = (
            f"\n\nLearned against uniform weights on the same {gain['n']} splits: "
            f"{gain['difference']:+.3f} of the error is taken off ({share:.0f} %; corrected "
            f"one-sided p = {gain['p_value']:.2g})."
        )
    return f"## {name}\n\n{table}{words}"


# --- MoleculeACE ------------------------------------------------------------------------------


def write_moleculeace(out: Path, rows: list[dict[str, Any]]) -> None:
    summary = assay_summary(rows)
    write_json(out / "moleculeace.json", summary)
    published = json.loads(_PUBLISHED.read_text())
    methods = list(dict.fromkeys(row["method"] for row in rows))
    complete = [name for name, found in summary.items() if "treelens" in found]
    columns = [*methods, *published["methods"]]
    lines = [
        [name, *(_cell(summary, published, name, method, "rmse") for method in columns)]
        for name in summary
    ]
    for score, label in (("rmse", "**mean**"), ("rmse_cliff", "**mean, cliffs**")):
        lines.append(
            [label, *(_mean_cell(summary, published, complete, m, score) for m in columns)]
        )
    parts = [
        f"{len(summary)} assays of MoleculeACE (van Tilborg, Alenicheva and Grisoni 2022), root "
        "mean squared error of pKi or pEC50 on the published test parts. The first "
        f"{len(methods)} columns were made here; the others are as published "
        f"({published['sources']}). Means are over the {len(complete)} assays, of methods with all "
        "of them.",
        markdown_table(["assay", *(NAMES.get(m, m) for m in columns)], lines),
        _against_tanimoto(summary, complete),
    ]
    write_page(
        out / "moleculeace.md",
        "MoleculeACE",
        command_line("moleculeace"),
        parts,
    )


def _value(summary: Any, published: Any, name: str, method: str, score: str) -> float | None:
    found = summary[name].get(method) or published["sets"].get(name, {}).get(method) or {}
    return found.get(score)


def _cell(summary: Any, published: Any, name: str, method: str, score: str) -> str:
    value = _value(summary, published, name, method, score)
    return "" if value is None else f"{value:.3f}"


def _mean_cell(summary: Any, published: Any, names: list[str], method: str, score: str) -> str:
    values = [_value(summary, published, name, method, score) for name in names]
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.4f}" if known and len(known) == len(values) else ""


def _against_tanimoto(summary: Any, names: list[str]) -> str:
    pairs = [(summary[n]["treelens"]["rmse"], summary[n]["ecfp_gp"]["rmse"]) for n in names
             if {"treelens", "ecfp_gp"} <= set(summary[n])]  # fmt: skip
    if not pairs:
        return ""
    ours, theirs = np.array(pairs).T
    return (
        f"Against the Tanimoto process on unfolded ECFP6 counts, in the same run: "
        f"{100 * (1 - ours.mean() / theirs.mean()):+.1f} % of its mean error is taken off, and the "
        f"error is at least 1.5 % below on {int((ours < 0.985 * theirs).sum())}, below on "
        f"{int((ours < theirs).sum())} of {len(pairs)} assays."
    )


# --- classes ----------------------------------------------------------------------------------


def write_classes(out: Path, rows: list[dict[str, Any]]) -> None:
    summary = class_summary(rows)
    write_json(out / "evidence.json", summary)
    methods = ["evidence_uniform", "evidence_depths", "evidence_branches"]
    lines = []
    for name, found in summary.items():
        gain = paired_gain(
            rows, name, "evidence_branches", "evidence_uniform", "accuracy",
            ("repetition", "fold"), 1 / 9,
        )  # fmt: skip
        lines.append(
            [
                name,
                *(
                    f"{found[m]['accuracy']:.2f} ± {found[m]['std']:.2f}" if m in found else ""
                    for m in methods
                ),
                "" if gain is None else f"{100 * gain['difference']:+.2f}",
                "" if gain is None else f"{gain['p_value']:.2g}",
                max(found[m]["n_folds"] for m in found),
            ]
        )
    parts = [
        "Accuracy (%) of `GraphClassifier` at its default settings on the same ten-fold splits as "
        "[Table 2](table2.md); nothing is chosen by validation. ± is the standard deviation of "
        "the means of repetitions, or over folds where there is one repetition. The gain is that "
        "of branches over uniform weights on the same folds, its p-value that of the corrected "
        "one-sided test, not corrected for the number of sets.",
        markdown_table(["set", *(NAMES[m] for m in methods), "gain", "p", "folds"], lines),
    ]
    write_page(
        out / "evidence.md",
        "Classes by evidence",
        command_line("evidence"),
        parts,
    )


# --- what the defaults were chosen by -----------------------------------------------------------


def write_options(out: Path, rows: list[dict[str, Any]]) -> None:
    grouped: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        grouped.setdefault(row["set"], {}).setdefault(row["option"], []).append(row)
    parts = [
        "One setting changed at a time, on splits that no other page uses. For numbers the mean "
        "error over random 80/20 splits, for classes the mean accuracy over ten folds. Evidence is "
        "the mean log posterior of the training targets; it compares options on the same set. "
        "Laplace's approximation is given the kernel that regression on labels has learned; the "
        "strength by leave-one-out is the one of 10, 30 and 100 with the least leave-one-out loss "
        "on the training part.",
        *(_options_part(name, options) for name, options in grouped.items()),
    ]
    write_page(
        out / "evidence_options.md", "Evidence: what the defaults were chosen by",
        command_line("options"), parts,
    )  # fmt: skip


def _options_part(name: str, options: dict[str, list[dict[str, Any]]]) -> str:
    score = "rmse" if "rmse" in next(iter(options.values()))[0] else "accuracy"
    second = "nlpd" if score == "rmse" else "log_loss"
    chosen = _strength_chosen(options)
    lines = [
        [
            option,
            _mean_of(rows, score, 3 if score == "rmse" else 1, 1 if score == "rmse" else 100),
            _mean_of(rows, second, 2),
            _mean_of(rows, "evidence", 1) if option not in chosen else "",
            str(len(rows)),
        ]
        for option, rows in {**options, **chosen}.items()
    ]
    header = ["setting", "RMSE", "NLPD"] if score == "rmse" else ["setting", "accuracy (%)", "loss"]
    return f"## {name}\n\n" + markdown_table([*header, "evidence", "splits"], lines)


def _mean_of(rows: list[dict[str, Any]], score: str, digits: int, factor: float = 1.0) -> str:
    if any(score not in row for row in rows):
        return ""
    return f"{factor * float(np.mean([row[score] for row in rows])):.{digits}f}"


def _strength_chosen(
    options: dict[str, list[dict[str, Any]]],
) -> dict[str, list[dict[str, Any]]]:
    """What choosing the prior's strength by leave-one-out would have given, split by split."""
    by_split: dict[int, list[dict[str, Any]]] = {}
    for option in STRENGTHS:
        for row in options.get(option, []):
            if "loo_loss" in row:
                by_split.setdefault(row["split"], []).append(row)
    whole = [rows for rows in by_split.values() if len(rows) == len(STRENGTHS)]
    best = [min(rows, key=lambda row: row["loo_loss"]) for rows in whole]
    return {"prior strength by leave-one-out": best} if best else {}
