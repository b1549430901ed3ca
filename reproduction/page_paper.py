"""The page about the paper's experiments: Table 2 with its tests, Tables 1 and 3, the rest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reproduction.bounds import bounds_parts
from reproduction.methods import OTHER_METHODS, PAPER_METHODS, title_of
from reproduction.pages import markdown_table, p_text, plus_minus, rows_of, signed, write_page
from reproduction.pattern_study import pattern_parts
from reproduction.protocol import N_OUTER
from reproduction.published import (
    OTHERS_ACCURACY,
    OTHERS_PROTOCOLS,
    PAPER,
    PAPER_BEST,
    published_accuracy,
    published_name,
    table1_parts,
)
from reproduction.runtime import runtime_parts
from reproduction.synthetic_study import synthetic_parts
from reproduction.tables import (
    LINES,
    TWINS,
    Folds,
    compare,
    folds_of,
    learning_tests,
    summarize,
    table2_rows,
)
from treelens.evaluation.statistics import holm

Summary = Mapping[str, Mapping[str, dict[str, Any]]]
_WHOLE = 100  # folds of a complete line
_ENOUGH = 0.2  # share of the folds of others from which on a figure may be called the best


def write(out: Path) -> Path | None:
    """Write ``table2.md``."""
    rows = table2_rows(out)
    if not rows:
        return None
    folds, summary = folds_of(rows), summarize(rows)
    parts = [
        _PROTOCOL,
        _accuracy_table(summary),
        _against_paper(summary),
        *_others_parts(summary),
        "## Is learning better?",
        *_learning_parts(folds),
        *_depth_parts(folds),
        *_variant_parts(out),
        *_paper_grid_parts(summary),
        *_unlabelled_parts(summary),
        *table1_parts(out),
        *synthetic_parts(out),
        *pattern_parts(out),
        *runtime_parts(out),
        *bounds_parts(out),
    ]
    return write_page(out, "table2", "The paper's experiments, run again", parts)


_PROTOCOL = (
    "Table 2 of the paper. Accuracy in percent: mean ± standard deviation over ten repetitions of "
    f"stratified {N_OUTER}-fold cross-validation; fewer folds are given in square brackets. In "
    f"round brackets: {PAPER}. Depth, kernel scale, `C`, radius and normalisation are chosen by "
    "cross-validation on the training part of each fold alone, and weights are learned on it "
    "alone. *WL-OA* is the plain kernel, as in the paper; the next line may take its Tanimoto form "
    "instead. The Gaussian processes choose nothing by validation; their rows were made "
    "with [frozen defaults](defaults.md). PTC_MR is the TU data set; PTC_DGCNN is the encoding "
    "that the paper's Table 1 describes. The best of each column is bold. ENZYMES has six classes, "
    "decided one against one, except in the lines of random walks and shortest paths. The claims "
    "of the paper are checked one by one in [the paper and what we found](../paper.md)."
)


def _accuracy_table(summary: Summary) -> str:
    best = {
        name: max(cell["mean"] for cell in _with_enough_folds(methods).values())
        for name, methods in summary.items()
    }
    rows = [
        [title_of(m), *(_cell(summary[name], m, name, best[name]) for name in summary)]
        for m in LINES
        if any(m in methods for methods in summary.values())
    ]
    return markdown_table(["method", *summary], rows)


def _with_enough_folds(methods: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    shown = {m: cell for m, cell in methods.items() if m in LINES}
    most = max((cell["n_folds"] for cell in shown.values()), default=0)
    return {m: cell for m, cell in shown.items() if cell["n_folds"] >= _ENOUGH * most}


def _cell(
    methods: Mapping[str, dict[str, Any]], method: str, name: str, best: float | None = None
) -> str:
    published = published_accuracy(method, name)
    beside = "" if published is None else f" ({plus_minus(*published)})"
    if method not in methods:
        return f"not run{beside}"
    cell = methods[method]
    text = plus_minus(cell["mean"], cell["std"])
    if best is not None and cell["mean"] == best and method in _with_enough_folds(methods):
        text = f"**{text}**"
    fewer = "" if cell["n_folds"] == _WHOLE else f" [{cell['n_folds']} folds]"
    return (text + fewer + beside).replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def _against_paper(summary: Summary) -> str:
    """Return our learned WWL beside the paper's best figure of any method."""
    lines = []
    for name, methods in summary.items():
        best = PAPER_BEST.get(published_name(name))
        if best is not None and "learned_wwl" in methods:
            ours = methods["learned_wwl"]["mean"]
            lines.append([name, f"{best:.2f}", f"{ours:.2f} ({signed(ours - best)})"])
    header = ["data set", "the paper's best of any method", "our learned WWL"]
    return markdown_table(header, lines) if lines else ""


def _others_parts(summary: Summary) -> list[str]:
    """Return what others have published on these sets, beside our default."""
    lines = [
        [who, *("–" if name not in found else _published(*found[name]) for name in summary)]
        for who, found in OTHERS_ACCURACY.items()
    ]
    for method in ("gp_default", "gp_attributes"):
        cells = (methods.get(method) for methods in summary.values())
        ours = ["–" if cell is None else f"{cell['mean']:.1f}" for cell in cells]
        lines.append([f"ours: {title_of(method)}", *ours])
    return [
        "## Networks and kernels as published",
        f"Copied, not run here, and not comparable to the last digit. {OTHERS_PROTOCOLS}",
        markdown_table(["accuracy in %", *summary], lines),
    ]


def _published(mean: float, std: float | None) -> str:
    return f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"


def _learning_parts(folds: Mapping[str, Mapping[str, Folds]]) -> list[str]:
    tests = learning_tests(folds)
    if not tests:
        return []
    cells = {
        (ours, name): f"{signed(100 * test.difference)} ({p_text(test.p_corrected)})"
        for name, ours, test, _ in tests
    }
    lines = [
        [title_of(ours), *(cells.get((ours, name), "not run") for name in folds)]
        for ours in TWINS
        if any((ours, name) in cells for name in folds)
    ]
    left = [f"{title_of(ours)} on {name}" for name, ours, _, p in tests if p < 0.05]
    return [
        "Points by which every method that learns weights is ahead of the same method with uniform "
        "ones, on the same folds, and the two-sided p-value of the corrected resampled t-test "
        f"(Nadeau and Bengio). After Holm's correction for the {len(tests)} comparisons there "
        f"{'remains: ' + '; '.join(left) if left else 'remains none'}.",
        markdown_table(["method", *folds], lines),
    ]


def _depth_parts(folds: Mapping[str, Mapping[str, Folds]]) -> list[str]:
    """Return how much of the gain of the Gaussian process is the choice of depth."""
    pairs = (("branches", "uniform"), ("depths", "uniform"), ("branches", "depths"))
    steps = [(f"gp_{ours}", f"gp_{theirs}") for ours, theirs in pairs]
    tests = {
        (name, step): compare(methods[step[0]], methods[step[1]])
        for name, methods in folds.items()
        if all(m in methods for step in steps for m in step)
        for step in steps
    }
    if not tests:
        return []
    least = min(p for p in holm([t.p_corrected for t in tests.values()]) if p is not None)
    lines = [
        [
            name,
            *(
                f"{signed(100 * test.difference)} (p = {p_text(test.p_corrected)})"
                for test in (tests[name, step] for step in steps)
            ),
            tests[name, steps[0]].n_folds,
        ]
        for name in dict.fromkeys(name for name, _ in tests)
    ]
    header = [
        "data set",
        "all that learning changes",
        "of it, one weight per depth",
        "beyond that, branches",
        "folds",
    ]
    return [
        "### How much of it is the depth?",
        "Uniform weights have the depth of the largest evidence. Differences in points, with the "
        f"same p-value. After Holm's correction for these {len(tests)} comparisons the smallest "
        f"p-value is {p_text(least)}.",
        markdown_table(header, lines),
    ]


def _variant_parts(out: Path) -> list[str]:
    """Return what other ways to learn the weights gave: rows of a study that is closed."""
    rows = rows_of(out, "formulations")
    if not rows:
        return []
    p_values = []
    for name in dict.fromkeys(r["dataset"] for r in rows):
        for way in dict.fromkeys(r["formulation"] for r in rows):
            found = [r for r in rows if (r["dataset"], r["formulation"]) == (name, way)]
            if len(found) > 1:
                learned, uniform = (
                    {(r["repetition"], r["fold"]): r[score] for r in found}
                    for score in ("accuracy", "uniform_accuracy")
                )
                p_values.append(compare(learned, uniform).p_corrected)
    raw, adjusted = ([p for p in own if p is not None] for own in (p_values, holm(p_values)))
    ways = len({r["formulation"] for r in rows})
    return [
        f"Other ways to learn were tried: {ways} formulations (margins, pairs, constraint sets, "
        "smoothing of rare patterns, edge labels, other kernels) on four data sets. Of "
        f"{len(raw)} comparisons with uniform weights the smallest p-value is {p_text(min(raw))}, "
        f"and {p_text(min(adjusted))} after Holm's correction (`rows/formulations.jsonl`)."
    ]


def _paper_grid_parts(summary: Summary) -> list[str]:
    names = [n for n, methods in summary.items() if any(m in methods for m in PAPER_METHODS)]
    if not names:
        return []
    lines = [
        [title_of(m), *(_cell(summary[n], m, n) for n in names)]
        for m in PAPER_METHODS
        if any(m in summary[n] for n in names)
    ]
    for m, title in (("wwl", "the paper's WWL"), ("learned_wwl", "the paper's learned WWL")):
        published = [published_accuracy(m, n) for n in names]
        lines.append([title, *("–" if p is None else plus_minus(*p) for p in published)])
    return [
        "## The paper's own grid",
        "Everything as the paper prints it: depths 1 to H with H from 1 to 6, no node labels, "
        "`gamma` in {0.0001, 0.001, 0.01}, `C` from 0.001 to 1000, radii 0.1, 0.5 and 1, margins "
        "1.0 and 0.5, `sigma` 0.1. With the printed 500 steps of 0.0001 the weights cannot leave a "
        "ball of 0.05 around 1, so that the line is WWL's but for rounding.",
        markdown_table(["", *names], lines),
    ]


def _unlabelled_parts(summary: Summary) -> list[str]:
    plain = [m for m in OTHER_METHODS if m.endswith("_unlabelled")]
    names = [n for n, methods in summary.items() if any(m in methods for m in plain)]
    if not names:
        return []
    lines = []
    for method in plain:
        labelled = method.removesuffix("_unlabelled")
        for m in (labelled, method):
            lines.append([title_of(m), *(_cell(summary[n], m, n) for n in names)])
    return [
        "## Random walks and shortest paths without labels",
        "Ours are above the paper's on most sets. The paper does not say how long its walks are, "
        "how weighted or whether normalised, and nothing about its paths. With all labels made "
        "equal:",
        markdown_table(["", *names], lines),
    ]
