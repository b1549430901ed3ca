"""The page about speed and scale: cost of a fit, benchmarks, landmarks, a GPU, a million."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.compare import LANDMARKS
from reproduction.cost import CLASS_LINES, CLASS_SETS, LIMIT, NUMBER_LINES, NUMBER_SETS, Line
from reproduction.pages import (
    Rows,
    common_rows,
    difference_text,
    grouped,
    markdown_table,
    paired,
    ratio_of,
    rows_of,
    sections,
    write_page,
)
from reproduction.protocol import N_OUTER
from treelens.evaluation.statistics import corrected_t_test

OURS = "treelens"
STEPS = ("kernel", "factor", "solve", "inverse", "gather", "evaluation")


def write(out: Path) -> Path | None:
    """Write ``speed.md``."""
    makers = {
        "cost": _cost_parts,
        "growth": _growth_parts,
        "fit_speed": lambda rows: [*_fit_parts(rows), *_class_parts(out)],
        "benchmarks": _benchmark_parts,
        "landmarks": partial(_landmark_parts, out),
        "million": _million_parts,
        "device": _device_parts,
    }
    parts = sections(out, makers) if rows_of(out, "cost") else []
    return write_page(out, "speed", "Speed and scale", parts) if parts else None


# --- cost of a fit and its predictions ----------------------------------------------------------


def seconds_of(row: Mapping[str, Any]) -> float:
    """Return CPU seconds of fit and prediction; of a stopped run, so far."""
    return row["stopped"] if "stopped" in row else row["fit_cpu"] + row["predict_cpu"]


def times_ours(row: Mapping[str, Any], ours: Mapping[str, Any] | None) -> str:
    """Return a rival's seconds over ours."""
    if ours is None or ours is row or "stopped" in ours:
        return ""
    ratio = seconds_of(row) / seconds_of(ours)
    if "stopped" in row and ratio < 1.0:  # stopped before ours ended says nothing
        return ""
    text = f"{float(f'{ratio:.2g}'):,g}"
    return f"> {text}" if "stopped" in row else text


def _cost_parts(rows: Rows) -> list[str]:
    return [
        "## Cost of a fit and its predictions",
        "One fit and one prediction of the first fold or split, each in a process of its own with "
        "one thread, on a machine that other programs used: seconds of processor time, of which a "
        "factor below two means little. Imports and compilation are left out. Memory is the peak "
        "of the process. *Times ours*: against our support vector machine with the same kernel, "
        "or else against our default model. Every support vector machine has one fixed setting "
        "(depth 3, γ = 1, C = 10) and labels alone; ours also calibrates probabilities. Gaussian "
        "processes on ENZYMES and PROTEINS have their attributes. Models of molecules start "
        f"from SMILES. Rivals were stopped after {LIMIT} seconds. What a line scored on one split "
        "only shows that it worked.",
        _cost_table(rows, CLASS_SETS, CLASS_LINES, "accuracy"),
        _cost_table(rows, NUMBER_SETS, NUMBER_LINES, "rmse"),
    ]


def _cost_table(rows: Rows, sets: Iterable[str], lines: Mapping[str, Line], score: str) -> str:
    table = {(row["set"], row["method"]): row for row in rows}
    cells = []
    for name in sets:
        for method, line in lines.items():
            row = table.get((name, method))
            if row is None:
                continue
            times = times_ours(row, table.get((name, line.twin or OURS)))
            if "stopped" in row:
                cells.append([name, line.title, f"> {row['stopped']}, stopped", "", times, "", ""])
                continue
            shown = f"{100 * row[score]:.1f}" if score == "accuracy" else f"{row[score]:.3f}"
            cells.append(
                [
                    f"{name}, {row['n_train']:,} + {row['n_test']:,}",
                    line.title,
                    f"{row['fit_cpu']:.3g}",
                    f"{row['predict_cpu']:.2g}",
                    times,
                    f"{row['megabytes']:,.0f}",
                    shown,
                ]
            )
    last = "accuracy %" if score == "accuracy" else "RMSE"
    header = ["set", "model", "fit, s", "predict, s", "times ours", "memory, MB", last]
    return markdown_table(header, cells)


def _growth_parts(rows: Rows) -> list[str]:
    """Return how cost grows with the number of molecules."""
    table = {(row["n"], row["method"]): row for row in rows}
    sizes, methods = (list(dict.fromkeys(row[key] for row in rows)) for key in ("n", "method"))
    lines = []
    for n in sizes:
        cells = []
        for method in methods:
            row = table.get((n, method), {})
            text = f"{row['fit_cpu']:.3g} s, {row['megabytes']:,.0f} MB" if "fit_cpu" in row else ""
            cells.append(f"> {row['stopped']} s, stopped" if "stopped" in row else text)
        lines.append([f"{n:,}", *cells])
    return [
        "## From 500 to 160,000 molecules",
        "A fit from SMILES, one thread, processor time and peak memory (`python -m reproduction "
        "growth`). Molecules of HIV, Ames and ESOL in random SMILES, above 48,000 written more "
        "than once, with a number that their atoms decide up to noise. `GraphRegressor` goes "
        f"through landmarks above `exact_size` graphs. Rivals, our own ECFP model among them, are "
        f"stopped after {LIMIT} s and not tried on more molecules.",
        markdown_table(["molecules", *(NUMBER_LINES[method].title for method in methods)], lines),
    ]


# --- fits against the previous version ------------------------------------------------------------


def _fit_parts(rows: Rows) -> list[str]:
    """Default fits, the first one, predictions and landmarks, from ``benchmarks.bench_fit``."""
    by_kind = grouped(rows, "what")
    if "fit" not in by_kind:
        return []
    lines = []
    for name, members in grouped(by_kind["fit"], "set").items():
        old, new = ([row[side] for row in members] for side in ("old", "new"))
        score = "rmse" if "rmse" in new[0] else "accuracy"
        cells = [
            f"{_mean(old, 'seconds'):.3g}",
            f"{_mean(new, 'seconds'):.3g}",
            f"{_mean(members, 'ratio'):.1f} ×",
        ]
        ecfp = f"{_mean(new, 'ecfp_seconds'):.3g}" if "ecfp_seconds" in new[0] else ""
        scores = [
            f"{_mean(side, key):.3f}" if key in side[0] else ""
            for key in (score, "nlpd")
            for side in (old, new)
        ]
        size = f"{new[0]['n_train']:,.0f}"
        kind = "RMSE" if score == "rmse" else score
        lines.append([name, size, len(members), *cells, ecfp, kind, *scores])
    texts = []
    for row in by_kind.get("first", ()):
        texts.append(
            f"A first fit of 1,000 molecules with nothing compiled before, imports included: "
            f"{row['new']['seconds']:.1f} s (before: {row['old']['seconds']:.1f} s)."
        )
    for row in by_kind.get("predict", ()):
        rates = ", ".join(f"{rate:,.0f} a second ({name})" for name, rate in row["new"].items())
        texts.append(f"Predictions from SMILES of {row['set']}: {rates}.")
    for row in by_kind.get("landmarks", ()):
        texts.append(
            f"{row['n']:,} molecules of HIV: {row['new']['landmarks']:.0f} s through "
            f"{row['n'] // 4:,} landmarks, {row['new']['exact']:.0f} s exactly."
        )
    texts += [
        f"{row['set']}: a fit with attributes takes {row['new']['attributes']:.2f} s, by labels "
        f"{row['new']['labels']:.2f} s ({row['new']['attributes'] / row['new']['labels']:.1f} ×)."
        for row in by_kind.get("attributes", ())
    ]
    texts += [
        f"`treelens fit` on all of HIV (41,120 molecules): {row['new']['seconds']:.0f} s."
        for row in by_kind.get("table", ())
    ]
    return [
        "## Default fits against the previous version",
        "Processor seconds on one thread (`python -m benchmarks.bench_fit`), both versions in turn "
        "on a machine that other programs used. The previous version had no descriptors. ECFP is "
        "our Gaussian process on ECFP6 counts, with a kernel of the same form. NLPD: negative log "
        "predictive density. Means over random splits, four fifths for training (NCI1: nine "
        "tenths).",
        markdown_table(
            [
                "set",
                "graphs",
                "splits",
                "before, s",
                "now, s",
                "ratio",
                "ECFP, s",
                "score",
                "before",
                "now",
                "NLPD before",
                "NLPD now",
            ],
            lines,
        ),
        " ".join(texts),
    ]


def _class_parts(out: Path) -> list[str]:
    """Accuracy and log loss of the default model before and now, on shared folds of Table 2."""
    before = {
        (row["set"], N_OUTER * row["repetition"] + row["fold"]): row
        for row in rows_of(out, "evidence")
        if row["method"] == "evidence_branches"
    }
    lines = []
    now = [r for r in rows_of(out, "compare_table2") if r["method"].startswith("auto")]
    for name, members in grouped(now, "set").items():
        pairs = [(before[key], r) for r in members if (key := (name, r["split"])) in before]
        if not pairs:
            continue
        sides = list(zip(*pairs, strict=True))
        old, new = ([100 * row["accuracy"] for row in side] for side in sides)
        gain = corrected_t_test(new, old, ratio_of(sides[1]))
        cells = [f"{100 * _mean(side, 'accuracy'):.1f}" for side in sides]
        losses = [f"{_mean(side, 'log_loss'):.3f}" for side in sides]
        lines.append([name, len(pairs), *cells, difference_text(gain, 2), *losses])
    return (
        [
            "The default classifier on the folds of [Table 2](table2.md), by labels; the "
            "difference of accuracies in points, with the corrected standard error of resampled "
            "folds:",
            markdown_table(
                ["set", "folds", "accuracy before", "now", "difference", "log loss before", "now"],
                lines,
            ),
        ]
        if lines
        else []
    )


def _mean(rows: Iterable[Mapping[str, Any]], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


# --- benchmarks, landmarks, a million, a GPU ------------------------------------------------------


def _benchmark_parts(rows: Rows) -> list[str]:
    verdicts = {True: "yes", "yes": "yes", False: "**no**", "no": "**no**"}
    lines = [
        [row["claim"], row["measured"], row["target"], verdicts.get(row["met"], "")] for row in rows
    ]
    return [
        "## Benchmarks",
        "From the output of `python -m benchmarks` on two cores. Ratios were measured in one run; "
        "another machine gives other numbers. Transport problems were solved for a sample of the "
        "pairs and scaled up. The first line about GraKeL compares our distances on two threads "
        "with another kernel of GraKeL's on one thread; the next one compares like with like.",
        markdown_table(["what", "measured", "target", "met"], lines),
    ]


def _landmark_parts(out: Path, rows: Rows) -> list[str]:
    lines = []
    for part, name in LANDMARKS.items():
        exact = [
            row
            for row in rows_of(out, f"compare_{part}")
            if (row["set"], row["method"]) == (name, "auto") and row["kind"] != "scaffold"
        ]
        own = common_rows([*exact, *(row for row in rows if row["set"] == name)], [], ["split"])
        score, times, digits = ("rmse", 1, 3) if part == "numbers" else ("accuracy", 100, 1)
        found = paired(own, "landmarks", "auto", score, ("split",)) if own else None
        if found is None:
            continue
        by_method = grouped(own, "method")
        means = {m: times * float(np.mean([r[score] for r in by_method[m]])) for m in by_method}
        lines.append(
            [
                name,
                f"{own[0]['n_train']:,}",
                "accuracy, %" if times == 100 else "RMSE",
                *(f"{means[m]:.{digits}f}" for m in ("auto", "landmarks")),
                difference_text(found, digits, times),
                len(by_method["landmarks"]),
            ]
        )
    return [
        "## What landmarks cost in accuracy",
        "Above `exact_size` graphs the Gaussian process conditions on landmarks: here "
        "`GraphRegressor` and `GraphClassifier` with `exact_size=2000` and `n_landmarks=2000`, "
        "beside the exact fits of the result pages on the same splits (corrected standard error of "
        "the difference). How landmarks are drawn was chosen on folds of these sets, with an "
        "earlier version.",
        markdown_table(
            ["set", "training graphs", "score", "exact", "landmarks", "difference", "splits"], lines
        ),
    ]


def _million_parts(rows: Rows) -> list[str]:
    lines = [
        [
            f"{r['n']:,}",
            f"{r['fit']['seconds']:.0f}",
            f"{r['predict']['seconds']:.0f}",
            f"{r['fit']['largest_process_gb']:.1f}",
        ]
        for r in rows
    ]
    return [
        "## A million molecules",
        "Fit and predict from a table of SMILES in blocks, two processes, 500 landmarks "
        "(`python -m benchmarks.bench_million`):",
        markdown_table(["molecules", "fit, s", "predict, s", "memory, GB"], lines),
    ]


def _device_parts(rows: Rows) -> list[str]:
    steps = [row for row in rows if row["what"] == "steps"]
    fits = [row for row in rows if row["what"] == "default fit"]
    if not steps or not fits:
        return []
    lines = [
        [
            r["set"],
            f"{r['n']:,}",
            f"{r['seconds']:.1f}",
            f"{r['predict_seconds']:.2f}",
            f"{r['cpu_seconds']:.1f}" if "cpu_seconds" in r else "",
            f"{r['largest_difference']:.0e}" if "largest_difference" in r else "",
        ]
        for r in fits
    ]
    header = ["set", "graphs", "fit, s", "predict, s", "fit on the CPU, s", "difference"]
    return [
        "## On a GPU",
        "One NVIDIA H200, double precision. `GraphClassifier` at its defaults, without descriptors "
        "of molecules: wall seconds of a fit and of the predictions of the other graphs, of the "
        "same fit on one thread of that machine's CPU, and the largest difference between the two "
        "models' probabilities (`python -m benchmarks.gpu`). HIV is fitted exactly, without "
        "landmarks. Below a few thousand graphs a GPU does not pay.",
        markdown_table(header, lines),
        "Seconds of one evaluation of the marginal likelihood and its gradient over all graphs at "
        "depth 4 (of the previous version):",
        markdown_table(
            ["set", "graphs", *STEPS],
            [[r["set"], f"{r['n']:,}", *(f"{r[step]:.3f}" for step in STEPS)] for r in steps],
        ),
    ]
