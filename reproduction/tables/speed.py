"""Tables of speed and scale: cost of a fit, growth, benchmarks, landmarks, a GPU, a million."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from reproduction.compare import LANDMARKS
from reproduction.cost import CLASS_LINES, CLASS_SETS, NUMBER_LINES, NUMBER_SETS, Line
from reproduction.pages import (
    Rows,
    at_earlier_defaults,
    common_rows,
    difference_text,
    from_rows,
    grouped,
    markdown_table,
    paired,
)

OURS = "treelens"


# --- cost of a fit and its predictions ----------------------------------------------------------


def seconds_of(row: Mapping[str, Any]) -> float:
    """Return CPU seconds of fit and prediction; of a stopped run, so far."""
    seconds = row["stopped"] if "stopped" in row else row["fit_cpu"] + row["predict_cpu"]
    return float(seconds)


def times_ours(row: Mapping[str, Any], ours: Mapping[str, Any] | None) -> str:
    """Return a rival's seconds over ours."""
    if ours is None or ours is row or "stopped" in ours:
        return ""
    ratio = seconds_of(row) / seconds_of(ours)
    if "stopped" in row and ratio < 1.0:  # stopped before ours ended says nothing
        return ""
    text = f"{float(f'{ratio:.2g}'):,g}"
    return f"> {text}" if "stopped" in row else text


def cost_of_classes(rows: Rows) -> str:
    """Seconds of one fit and prediction on sets of classes."""
    return _cost(rows, CLASS_SETS, CLASS_LINES)


def cost_of_numbers(rows: Rows) -> str:
    """Seconds of one fit and prediction on sets of numbers."""
    return _cost(rows, NUMBER_SETS, NUMBER_LINES)


_LEFT_OUT = ("treelens_uniform", "ecfp4_gp")  # nearly the cost of another line


def _cost(rows: Rows, sets: Iterable[str], lines: Mapping[str, Line]) -> str:
    known = {(row["set"], row["method"]): row for row in rows}
    shown = [name for name in sets if (name, OURS) in known]
    cells = []
    for method, line in lines.items():
        if method in _LEFT_OUT:
            continue
        found = []
        for name in shown:
            row = known.get((name, method))
            if row is None:
                found.append("")
                continue
            ours = line.title.startswith("`Graph")
            times = "" if ours else times_ours(row, known.get((name, line.twin or OURS)))
            found.append(_seconds(row) + (f" ({times} ×)" if times else ""))
        if any(found):
            cells.append([line.title, *found])
    header = [f"{name}, {known[name, OURS]['n_train']:,}" for name in shown]
    return markdown_table(["seconds of fit and prediction", *header], cells)


def _seconds(row: Mapping[str, Any]) -> str:
    return f"> {row['stopped']}" if "stopped" in row else f"{seconds_of(row):.2g}"


def growth(rows: Rows) -> str:
    """Seconds and memory of a fit by the number of molecules."""
    known = {(row["n"], row["method"]): row for row in rows}
    sizes, methods = (list(dict.fromkeys(row[key] for row in rows)) for key in ("n", "method"))
    lines = []
    for n in sizes[1::2]:
        cells = []
        for method in methods:
            row = known.get((n, method), {})
            text = f"{row['fit_cpu']:.3g} s, {row['megabytes']:,.0f} MB" if "fit_cpu" in row else ""
            cells.append(f"> {row['stopped']} s" if "stopped" in row else text)
        lines.append([f"{n:,}", *cells])
    return markdown_table(["molecules", *(NUMBER_LINES[m].title for m in methods)], lines)


def rates(rows: Rows) -> str:
    """A first fit, predictions a second, the cost of attributes, a table of many molecules."""
    lines = []
    for row in rows:
        new = row["new"]
        if row["what"] == "first":
            lines.append(["first fit of 1,000 molecules", f"{new['seconds']:.1f} s"])
        elif row["what"] == "predict":
            ends = f"{min(new.values()):,.0f} to {max(new.values()):,.0f} a second"
            lines.append([f"predictions from SMILES, model of {row['set']}", ends])
        elif row["what"] == "attributes" and row["set"] == "ENZYMES":
            text = f"{new['attributes']:.2f} s, by labels {new['labels']:.2f} s"
            lines.append([f"fit of {row['set']} with attributes", text])
        elif row["what"] == "table":
            lines.append(
                ["`treelens fit` on all of HIV, 41,120 molecules", f"{new['seconds']:.0f} s"]
            )
    return markdown_table(["what", "processor time"], lines)


# --- benchmarks, landmarks, a million, a GPU ------------------------------------------------------

_CLAIMS = {
    "WWL distance matrix, NCI1, depths 0 to 5, against one exact ot.emd2": "WWL distances of NCI1, "
    "against one exact transport problem a pair (scaled from a sample)",
    "WL subtree kernel, NCI1": "WL subtree kernel of NCI1, one thread, against GraKeL",
    "WL-OA, PROTEINS": "WL-OA of PROTEINS, against GraKeL",
    "WWL distance matrix, NCI1, depths 0 to 5, against filling": "WWL distances of NCI1, against "
    "filling the matrix with a constant",
    "WL refinement and histograms": "refinement and histograms, 1 to 16 times NCI1",
    "The same, against dicts and NumPy": "stochastic steps of learning, against dicts and NumPy",
    "`GraphSVC().fit` with its default grid": "`GraphSVC().fit`, 1,500 graphs, against "
    "`GridSearchCV` over the same grid",
    "Explain one graph": "explain one graph, model of 4,000",
    "One evaluation of evidence": "evidence and gradient, 2,500 graphs, against Cholesky alone",
}


def benchmarks(rows: Rows) -> str:
    """The claims of ``python -m benchmarks`` that the page shows, met or not."""
    verdicts = {True: "yes", "yes": "yes", False: "**no**", "no": "**no**"}
    lines = []
    for begin, title in _CLAIMS.items():
        for row in (row for row in rows if row["claim"].startswith(begin)):
            measured = row["measured"].partition(" (")[0]
            lines.append([title, measured, row["target"], verdicts.get(row["met"], "")])
    return markdown_table(["what", "measured", "target", "met"], lines)


def landmarks(rows: Rows, numbers: Rows, classes: Rows, graphs: Rows) -> str:
    """What landmarks cost in accuracy, on splits that were also fitted exactly."""
    exact = {"numbers": numbers, "classes": classes, "table2": graphs}
    lines = []
    for part, name in LANDMARKS.items():
        beside = [
            row
            for row in at_earlier_defaults(exact[part])
            if (row["set"], row["method"]) == (name, "auto") and row["kind"] != "scaffold"
        ]
        own = common_rows([*beside, *(row for row in rows if row["set"] == name)], [], ["split"])
        score, times, digits = ("rmse", 1, 3) if part == "numbers" else ("accuracy", 100, 1)
        test = paired(own, "landmarks", "auto", score, ("split",)) if own else None
        if test is None:
            continue
        found = grouped(own, "method")
        means = [
            times * float(np.mean([r[score] for r in found[m]])) for m in ("auto", "landmarks")
        ]
        texts = [f"{mean:.{digits}f}" for mean in means]
        size = f"{name}, {own[0]['n_train']:,}"
        kind = "RMSE" if times == 1 else "accuracy, %"
        lines.append([size, kind, *texts, difference_text(test, digits, times)])
    header = ["set, training graphs", "score", "exact", "landmarks", "difference"]
    return markdown_table(header, lines)


def million(rows: Rows) -> str:
    """Fit and predict of a table in blocks."""
    lines = [
        [
            f"{r['n']:,}",
            f"{r['fit']['seconds'] / 60:.1f}",
            f"{r['predict']['seconds'] / 60:.1f}",
            f"{max(r[step]['largest_process_gb'] for step in ('fit', 'predict')):.1f}",
        ]
        for r in rows
    ]
    return markdown_table(["molecules", "fit, minutes", "predict, minutes", "memory, GB"], lines)


def device(rows: Rows) -> str:
    """Default fits on a GPU and on one thread of a CPU."""
    lines = [
        [
            f"{r['set']}, {r['n']:,}",
            f"{r['seconds']:.1f}",
            f"{r['predict_seconds']:.2f}",
            f"{r['cpu_seconds']:.1f}" if "cpu_seconds" in r else "",
            f"{r['largest_difference']:.0e}" if "largest_difference" in r else "",
        ]
        for r in rows
        if r["what"] == "default fit"
    ]
    header = ["set, graphs", "fit, s", "predict, s", "fit on the CPU, s", "largest difference"]
    return markdown_table(header, lines)


TABLES = {
    "cost-of-classes": from_rows(cost_of_classes, "cost"),
    "cost-of-numbers": from_rows(cost_of_numbers, "cost"),
    "growth": from_rows(growth, "growth"),
    "rates": from_rows(rates, "fit_speed"),
    "benchmarks": from_rows(benchmarks, "benchmarks"),
    "landmarks": from_rows(
        landmarks, "landmarks", "compare_numbers", "compare_classes", "compare_table2"
    ),
    "million": from_rows(million, "million"),
    "device": from_rows(device, "device"),
}
