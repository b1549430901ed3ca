"""Tables of classes of graphs: our models on the folds of Table 2, and nodes with attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reproduction.accuracy import (
    Folds,
    compare,
    folds_of,
    of_attributes,
    summarize,
    table2_rows,
)
from reproduction.methods import title_of
from reproduction.pages import (
    Rows,
    difference_text,
    from_rows,
    grouped,
    holm_of,
    markdown_table,
    p_text,
    paired,
    signed,
)
from reproduction.published import OTHERS_ACCURACY
from treelens.evaluation.statistics import PairedTest, holm

PROCESSES = ("gp_default", "gp_attributes", "gp_uniform", "gp_depths", "gp_branches")
MACHINES = ("wl_subtree", "wl_oa_plain", "wl_oa", "wwl", "learned_wwl", "wl_tanimoto")
SPLIT = ("repetition", "fold")
ATTRIBUTES = {
    "default": "treelens",
    "labels": "treelens, labels only",
    "uniform": "treelens, uniform weights",
    "wwl": "WWL, continuous (package `wwl`)",
    "propagation": "PropagationAttr (GraKeL)",
}
# With attributes, as printed; protocols differ.
PUBLISHED_WITH_ATTRIBUTES = {
    "BZR": "WWL 84.4",
    "ENZYMES": "WWL 73.3, HGK-SP 66.4, GraphHopper 65.7",
    "PROTEINS": "WWL 77.9, HGK-WL 75.9",
}


# --- the folds of Table 2 -----------------------------------------------------------------------


def accuracies(compared: Rows, machines: Rows, with_attributes: Rows) -> str:
    """Mean accuracies of the Gaussian processes, of the best support vector machine, of others."""
    rows = table2_rows(machines, compared, with_attributes)
    folds = {n: own for n, own in folds_of(rows).items() if "gp_default" in own}
    summary = {name: own for name, own in summarize(rows).items() if name in folds}
    lines = [
        [title_of(m), *(_percent(summary[name].get(m)) for name in summary)] for m in PROCESSES
    ]
    best = {name: best_machine(own) for name, own in folds.items()}
    tests = {n: compare(folds[n]["gp_default"], folds[n][m]) for n, m in best.items() if m}
    adjusted = dict(zip(tests, holm([t.p_corrected for t in tests.values()]), strict=True))
    shown, differences = [], []
    for name, machine in best.items():
        mean = f"{summary[name][machine]['mean']:.1f} ({title_of(machine)})" if machine else "–"
        shown.append(mean)
        difference = "–"
        if machine:
            difference = f"{signed(100 * tests[name].difference)} ({p_text(adjusted[name])})"
        differences.append(difference)
    lines += [["the best support vector machine", *shown]]
    lines += [["default minus that (p, Holm)", *differences]]
    for who, found in OTHERS_ACCURACY.items():
        lines.append([who, *(f"{found[n][0]:.1f}" if n in found else "–" for n in summary)])
    header = [f"{n} ({len(folds[n]['gp_default'])} folds)" for n in summary]
    return markdown_table(["accuracy, %", *header], lines)


def _percent(cell: Mapping[str, float] | None) -> str:
    return "–" if cell is None else f"{cell['mean']:.1f}"


def best_machine(methods: Mapping[str, Folds]) -> str | None:
    """Return the support vector machine with the best mean on the folds of the default."""
    default = methods["gp_default"]
    known = [m for m in MACHINES if methods.get(m, {}).keys() & default.keys()]
    return max(known, key=lambda m: compare(methods[m], default).difference, default=None)


# --- attributes -------------------------------------------------------------------------------


def attributes(ours: Rows, rows: Rows, by_labels: Rows) -> str:
    """Mean accuracies with and without attributes, beside other kernels."""
    found = {
        key: 100 * float(np.mean([row["accuracy"] for row in own]))
        for key, own in grouped(of_attributes(rows, ours, by_labels), "set", "method").items()
    }
    sets = list(dict.fromkeys(name for name, _ in found))
    lines = [
        [title, *(f"{found[n, m]:.1f}" if (n, m) in found else "–" for n in sets)]
        for m, title in ATTRIBUTES.items()
    ]
    lines.append(["published", *(PUBLISHED_WITH_ATTRIBUTES.get(name, "–") for name in sets)])
    return markdown_table(["accuracy, %", *sets], lines)


_PAIRS = (
    ("default", "labels"),
    ("default", "uniform"),
    ("default", "wwl"),
    ("default", "propagation"),
)


def attribute_tests(ours: Rows, rows: Rows, by_labels: Rows) -> str:
    """Differences on shared folds, with Holm's correction for the whole table."""
    members = grouped(of_attributes(rows, ours, by_labels), "set")
    tests: dict[tuple[str, str], PairedTest | None] = {
        (other, name): paired(own, first, other, "accuracy", SPLIT)
        for name, own in members.items()
        for first, other in _PAIRS
    }
    adjusted = holm_of(tests)
    lines = [
        [ATTRIBUTES[other], *(_cell(tests[other, n], adjusted[other, n]) for n in members)]
        for _, other in _PAIRS
    ]
    return markdown_table(["treelens minus", *members], lines)


def _cell(test: PairedTest | None, p_value: float | None) -> str:
    if test is None:
        return "–"
    return f"{difference_text(test, 1, 100)} ({p_text(p_value)})"


def attribute_seconds(ours: Rows, rows: Rows, by_labels: Rows) -> str:
    """Processor seconds of a fit, and of the kernel matrices of others."""
    known = of_attributes(rows, ours, by_labels)
    seconds = {
        key: float(np.mean([r["cpu_seconds"] for r in own]))
        for key, own in grouped(known, "set", "method").items()
    }
    matrices = {
        (r["set"], r["method"]): r["kernel_cpu_seconds"] for r in rows if "kernel_cpu_seconds" in r
    }
    sets = list(dict.fromkeys(name for name, _ in seconds))
    lines = [
        [f"fit of {ATTRIBUTES[m]}", *(_seconds(seconds, n, m, 1) for n in sets)]
        for m in ("labels", "default")
    ]
    lines += [
        [f"matrices of {ATTRIBUTES[m]}", *(_seconds(matrices, n, m, 0) for n in sets)]
        for m in ("wwl", "propagation")
    ]
    return markdown_table(["processor seconds", *sets], lines)


def _seconds(known: Mapping[tuple[str, str], float], name: str, method: str, digits: int) -> str:
    return f"{known[name, method]:.{digits}f}" if (name, method) in known else "–"


TABLE2: Sequence[str] = ("compare_table2", "table2", "compare_attributes")
WITH_ATTRIBUTES: Sequence[str] = ("compare_attributes", "attributes", "compare_table2")
TABLES = {
    "graph-accuracies": from_rows(accuracies, *TABLE2),
    "attributes": from_rows(attributes, *WITH_ATTRIBUTES),
    "attribute-tests": from_rows(attribute_tests, *WITH_ATTRIBUTES),
    "attribute-seconds": from_rows(attribute_seconds, *WITH_ATTRIBUTES),
}
