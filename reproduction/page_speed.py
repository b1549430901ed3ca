"""The page about speed and scale: cost of a fit, benchmarks, landmarks, a GPU, a million."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.cost_lines import CLASS_LINES, CLASS_SETS, NUMBER_LINES, NUMBER_SETS, Line
from reproduction.pages import (
    Rows,
    common_rows,
    grouped,
    listed,
    markdown_table,
    mean_and_error,
    plus_minus,
    rows_of,
    write_page,
)

OURS = "treelens"
_EVEN = 2.0  # ratios below are called even
STEPS = ("kernel", "factor", "solve", "inverse", "gather", "evaluation")
LANDMARKS = {
    "exact": "exact, all graphs",
    "hard": "landmarks: a quarter at random, then by error and uncertainty (default)",
    "random": "landmarks at random",
}


def write(out: Path) -> Path | None:
    """Write ``speed.md``."""
    cost = rows_of(out, "cost")
    if not cost:
        return None
    parts = [
        *_cost_parts(cost),
        *_fit_parts(rows_of(out, "fit_speed")),
        *_benchmark_parts(rows_of(out, "benchmarks")),
        *_landmark_parts(rows_of(out, "landmarks")),
        *_million_parts(rows_of(out, "million")),
        *_device_parts(rows_of(out, "device")),
    ]
    return write_page(out, "speed", "Speed and scale", parts)


# --- cost of a fit and its predictions ----------------------------------------------------------


def ratios(rows: Rows, ours: str | None, rival: str) -> dict[str, tuple[float, bool]]:
    """Return, by set, the rival's seconds over ours, and whether the rival was stopped."""
    table = {(row["set"], row["method"]): row for row in rows}
    found = {}
    for (name, method), row in table.items():
        mine = table.get((name, ours or ""))
        if method == rival and mine is not None and "stopped" not in mine:
            ratio = seconds_of(row) / seconds_of(mine)
            if "stopped" not in row or ratio >= 1.0:  # stopped before ours ended says nothing
                found[name] = (ratio, "stopped" in row)
    return found


def seconds_of(row: Mapping[str, Any]) -> float:
    """Return CPU seconds of fit and prediction; of a stopped run, so far."""
    return row["stopped"] if "stopped" in row else row["fit_cpu"] + row["predict_cpu"]


def side_of(ratio: float) -> str:
    """Return what a rival's seconds over ours mean; a factor below two is called even."""
    if ratio >= _EVEN:
        return "faster"
    return "slower" if ratio <= 1.0 / _EVEN else "even"


def verdict(title: str, found: Mapping[str, tuple[float, bool]]) -> str:
    """Return the ratios of a rival in words.

    Examples
    --------
    >>> verdict("X", {"A": (2.0, False), "B": (4.0, True), "C": (0.5, False), "D": (0.9, False)})
    'faster than X on A and B (2 to more than 4 times), slower on C (2 times), even on D'
    """
    groups: dict[str, dict[str, tuple[float, bool]]] = {"faster": {}, "slower": {}, "even": {}}
    for name, (ratio, stopped) in found.items():
        side = side_of(ratio)
        groups[side][name] = (1.0 / ratio, False) if side == "slower" else (ratio, stopped)
    known = {side: group for side, group in groups.items() if group}
    texts = []
    for side, group in known.items():
        rival = "" if texts else f" {'with' if side == 'even' else 'than'} {title}"
        where = f" on {listed(group)}" if len(known) > 1 else ""
        times = "" if side == "even" else f" ({_span(group.values())})"
        texts.append(f"{side}{rival}{where}{times}")
    return ", ".join(texts)


def _span(pairs: Iterable[tuple[float, bool]]) -> str:
    ordered = sorted(pairs)
    ends = [_factor(*ordered[0]), _factor(*ordered[-1])]
    return f"{' to '.join(dict.fromkeys(ends))} times"


def _factor(ratio: float, at_least: bool = False) -> str:
    shown = float(f"{ratio:.2g}")
    text = f"{shown:,.0f}" if shown >= 10 else f"{shown:g}"
    return f"more than {text}" if at_least else text


def _cost_parts(rows: Rows) -> list[str]:
    classes = [row for row in rows if row["set"] in CLASS_SETS]
    numbers = [row for row in rows if row["set"] in NUMBER_SETS]
    twins = {method: line.twin for method, line in CLASS_LINES.items() if line.twin}
    sentences = [
        _sentence("`GraphRegressor`", numbers, NUMBER_LINES,
                  dict.fromkeys((m for m in NUMBER_LINES if m != OURS), OURS)),
        _sentence("`GraphClassifier`", classes, CLASS_LINES,
                  dict.fromkeys(("treelens_uniform", *twins), OURS)),
        _sentence("`GraphSVC` with the same kernel", classes, CLASS_LINES, twins),
    ]  # fmt: skip
    return [
        "## Cost of a fit and its predictions",
        "\n".join(f"- {sentence}" for sentence in sentences if sentence),
        "One fit and one prediction of the first fold or split, each in a process of its own with "
        "one thread, on a machine that other programs used: seconds of processor time, and ratios "
        "below two are called even. Imports and compilation are left out. Memory is the peak of "
        "the process. Every support vector machine has one fixed setting (depth 3, γ = 1, C = 10); "
        "ours also calibrates probabilities. Models of molecules start from SMILES. Rivals were "
        "stopped after 300 seconds. What a line scored on one split only shows that it worked.",
        _cost_table(rows, CLASS_SETS, CLASS_LINES, "accuracy"),
        _cost_table(rows, NUMBER_SETS, NUMBER_LINES, "rmse"),
    ]


def _sentence(
    subject: str, rows: Rows, lines: Mapping[str, Line], pairs: Mapping[str, str | None]
) -> str:
    verdicts = [
        verdict(lines[rival].title, ratios(rows, ours, rival)) for rival, ours in pairs.items()
    ]
    known = sorted((text for text in verdicts if text), key=lambda text: text.startswith("faster"))
    return f"{subject} is {'; '.join(known)}." if known else ""


def _cost_table(rows: Rows, sets: Iterable[str], lines: Mapping[str, Line], score: str) -> str:
    table = {(row["set"], row["method"]): row for row in rows}
    cells = []
    for name in sets:
        for method, line in lines.items():
            row = table.get((name, method))
            if row is None:
                continue
            if "stopped" in row:
                cells.append([name, line.title, f"> {row['stopped']}, stopped", "", "", ""])
                continue
            shown = f"{100 * row[score]:.1f}" if score == "accuracy" else f"{row[score]:.3f}"
            cells.append(
                [f"{name}, {row['n_train']:,} + {row['n_test']:,}", line.title,
                 f"{row['fit_cpu']:.3g}", f"{row['predict_cpu']:.2g}",
                 f"{row['megabytes']:,.0f}", shown]
            )  # fmt: skip
    last = "accuracy %" if score == "accuracy" else "RMSE"
    return markdown_table(["set", "model", "fit, s", "predict, s", "memory, MB", last], cells)


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
        cells = [f"{_mean(old, 'seconds'):.3g}", f"{_mean(new, 'seconds'):.3g}",
                 f"{_mean(members, 'ratio'):.1f} ×"]  # fmt: skip
        ecfp = f"{_mean(new, 'ecfp_seconds'):.3g}" if "ecfp_seconds" in new[0] else ""
        scores = [f"{_mean(side, score):.3f}" for side in (old, new)]
        size = f"{new[0]['n_train']:,.0f}"
        lines.append([name, size, *cells, ecfp, "RMSE" if score == "rmse" else score, *scores])
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
        f"`treelens fit` on all of HIV (41,120 molecules): {row['new']['seconds']:.0f} s."
        for row in by_kind.get("table", ())
    ]
    return [
        "## Default fits against the previous version",
        "Processor seconds on one thread (`python -m benchmarks.bench_fit`), both versions in turn "
        "on a machine that other programs used. The previous version had no descriptors. ECFP is "
        "our Gaussian process on ECFP6 counts, with a kernel of the same form.",
        markdown_table(["set", "graphs", "before, s", "now, s", "ratio", "ECFP, s", "score",
                        "before", "now"], lines),
        " ".join(texts),
    ]  # fmt: skip


def _mean(rows: Iterable[Mapping[str, Any]], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


# --- benchmarks, landmarks, a million, a GPU ------------------------------------------------------


def _benchmark_parts(rows: Rows) -> list[str]:
    if not rows:
        return []
    lines = [[row["claim"], row["measured"]] for row in rows]
    return [
        "## Benchmarks",
        "From the output of `python -m benchmarks` on two cores. Ratios were measured in one run; "
        "another machine gives other numbers. Transport problems were solved for a sample of the "
        "pairs and scaled up. The first line about GraKeL compares our distances on two threads "
        "with another kernel of GraKeL's on one thread; the next one compares like with like.",
        markdown_table(["what", "measured"], lines),
    ]


def _landmark_parts(rows: Rows) -> list[str]:
    if not rows:
        return []
    kept = common_rows([r for r in rows if r["method"] in LANDMARKS], ["set"], ["fold"])
    lines = []
    for name, members in grouped(kept, "set").items():
        score = "rmse" if "rmse" in members[0] else "accuracy"
        by_method = grouped(members, "method")
        exact = {r["fold"]: r[score] for r in by_method["exact"]}
        for method, title in LANDMARKS.items():
            values = {r["fold"]: r[score] for r in by_method.get(method, ())}
            change = [
                100 * (values[f] - exact[f] if score == "accuracy" else values[f] / exact[f] - 1)
                for f in values
            ]
            mean = float(np.mean(list(values.values())))
            shown = f"{100 * mean:.2f} %" if score == "accuracy" else f"{mean:.4f}"
            unit = "points" if score == "accuracy" else "% of the RMSE"
            difference = (
                "" if method == "exact" else f"{plus_minus(*mean_and_error(change))} {unit}"
            )
            lines.append([name, title, shown, difference, len(values)])
    return [
        "## What landmarks cost in accuracy",
        "Above `exact_size` graphs the Gaussian process conditions on landmarks. Here 2,000 of "
        "them, with the weights of the exact model. The default was chosen after a look at some "
        "twenty ways on about half of these folds.",
        markdown_table(["set", "model", "score", "difference to exact", "folds"], lines),
    ]


def _million_parts(rows: Rows) -> list[str]:
    if not rows:
        return []
    lines = [
        [f"{r['n']:,}", f"{r['fit']['seconds']:.0f}", f"{r['predict']['seconds']:.0f}",
         f"{r['fit']['largest_process_gb']:.1f}"]
        for r in rows
    ]  # fmt: skip
    return [
        "## A million molecules",
        "Fit and predict from a table of SMILES in blocks, two processes, 500 landmarks "
        "(`python -m benchmarks.bench_million`):",
        markdown_table(["molecules", "fit, s", "predict, s", "memory, GB"], lines),
    ]


def _device_parts(rows: Rows) -> list[str]:
    steps = [row for row in rows if row["what"] == "steps"]
    if not steps:
        return []
    lines = [[r["set"], f"{r['n']:,}", *(f"{r[step]:.3f}" for step in STEPS)] for r in steps]
    fits = {row["what"]: row for row in rows if row["what"].startswith("fit on")}
    texts = []
    if {"fit on cuda", "fit on cpu"} <= set(fits):
        there, here = fits["fit on cuda"], fits["fit on cpu"]
        texts.append(
            f"`GraphClassifier` with weights learned on all {there['n']:,} graphs of NCI1: "
            f"{there['seconds']:.1f} s on the GPU, {here['seconds']:.0f} s on two threads of that "
            "machine's CPU, with the same evidence."
        )
    folds = [r for r in rows if r["what"] == "exact, learned"]
    if folds:
        texts.append(
            f"An exact fit on some {round(folds[0]['n'], -2):,} molecules of HIV takes "
            f"{np.mean([r['seconds'] for r in folds]):.0f} s, predictions of 8,200 molecules "
            f"{np.mean([r['predict_seconds'] for r in folds]):.1f} s."
        )
    return [
        "## On a GPU",
        "One NVIDIA H200, double precision. Seconds of one evaluation of the marginal likelihood "
        "and its gradient over all graphs at depth 4:",
        markdown_table(["set", "graphs", *STEPS], lines),
        " ".join(texts),
    ]
