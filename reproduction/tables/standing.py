"""Where the default leads, is level and loses: one line for each comparison, and its figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reproduction.accuracy import compare, folds_of, of_attributes, table2_rows
from reproduction.compare import NEW_ASSAYS
from reproduction.methods import title_of
from reproduction.pages import (
    Rows,
    from_rows,
    grouped,
    markdown_table,
    p_text,
    paired,
    ratio_of,
    save_figure,
    signed,
)
from reproduction.tables.graphs import SPLIT, best_machine
from reproduction.tables.molecules import NAMES, Scores, assays_of, lines_of
from treelens.evaluation.statistics import PairedTest, corrected_t_test, holm

NUMBERS, CLASSES = "%", "points"
OWN = "the same kernel on fingerprints"
OTHERS = "other models"
_KINDS = {
    OWN: ("ecfp4_gp", "ecfp6_gp", "ecfp6_gp_descriptors"),
    OTHERS: ("forest", "boosting", "chemprop", "chemprop_ensemble", "CheMeleon"),
}


class Line(NamedTuple):
    """The default beside the best rival of a kind; a positive difference is in its favour."""

    name: str
    kind: str
    rival: str
    unit: str  # of the difference: % of the rival's RMSE, or points
    test: PairedTest


def lines(
    numbers: Rows,
    assays: Rows,
    classes: Rows,
    table2: Rows,
    compared: Rows,
    with_attributes: Rows,
    other_kernels: Rows,
) -> list[Line]:
    """Return every comparison, molecules first."""
    return [
        *_molecules(numbers, "rmse"),
        *_assays(assays),
        *_molecules(classes, "roc_auc"),
        *_graphs(table2_rows(table2, compared)),
        *_attributes(of_attributes(other_kernels, with_attributes, compared)),
    ]


def _molecules(rows: Rows, score: str) -> Iterator[Line]:
    for name, own in lines_of(rows).items():
        found = grouped(own, "method")
        if "auto" not in found:
            continue
        whole = {m: _in_order(r, score) for m, r in found.items() if len(r) == len(found["auto"])}
        ratio = ratio_of(found["auto"])
        if score == "rmse":
            yield from _errors(name, whole, ratio)
        else:
            yield from _shares(name, {m: 100 * values for m, values in whole.items()}, ratio)


def _in_order(rows: Rows, score: str) -> np.ndarray:
    return np.array([row[score] for row in sorted(rows, key=lambda row: row["split"])])


def _assays(rows: Rows) -> Iterator[Line]:
    """The assays that were kept aside; they have no molecules in common."""
    found = assays_of(rows, NEW_ASSAYS)
    if not _all_have(found, "auto"):
        return
    known = [m for m in ("auto", *_KINDS[OWN], *_KINDS[OTHERS]) if _all_have(found, m)]
    errors = {m: np.array([own[m]["rmse"] for own in found.values()]) for m in known}
    yield from _errors(f"MoleculeACE, {len(found)} assays kept aside", errors, 0.0)


def _all_have(found: Scores, method: str) -> bool:
    return bool(found) and all(method in own for own in found.values())


def _errors(name: str, errors: Mapping[str, np.ndarray], ratio: float) -> Iterator[Line]:
    for kind, rivals in _KINDS.items():
        known = [m for m in rivals if m in errors]
        if known:
            rival = min(known, key=lambda m: float(errors[m].mean()))
            scale = 100 / errors[rival].mean()
            test = corrected_t_test(scale * errors[rival], scale * errors["auto"], ratio)
            yield Line(name, kind, _short(rival), NUMBERS, test)


def _short(method: str) -> str:
    return NAMES.get(method, method).partition(",")[0]


def _shares(name: str, shares: Mapping[str, np.ndarray], ratio: float) -> Iterator[Line]:
    for kind, rivals in _KINDS.items():
        known = [m for m in rivals if m in shares]
        if known:
            rival = max(known, key=lambda m: float(shares[m].mean()))
            test = corrected_t_test(shares["auto"], shares[rival], ratio)
            yield Line(name, kind, _short(rival), CLASSES, test)


def _graphs(rows: Rows) -> Iterator[Line]:
    for name, methods in folds_of(rows).items():
        rival = best_machine(methods) if "gp_default" in methods else None
        if rival is None:
            continue
        test = _times(compare(methods["gp_default"], methods[rival]).test)
        title = f"{name}, {test.degrees_of_freedom + 1} folds"
        yield Line(title, OTHERS, title_of(rival).partition(",")[0], CLASSES, test)


def _attributes(rows: Rows) -> Iterator[Line]:
    for name, own in grouped(rows, "set").items():
        test = paired(own, "default", "wwl", "accuracy", SPLIT)
        if test is not None:
            title = f"{name} with attributes, {test.degrees_of_freedom + 1} folds"
            yield Line(title, OTHERS, "continuous WWL", CLASSES, _times(test))


def _times(test: PairedTest) -> PairedTest:
    """Return a test of shares in points."""
    low, high = test.interval or (np.nan, np.nan)
    error = None if test.standard_error is None else 100 * test.standard_error
    interval = None if test.interval is None else (100 * low, 100 * high)
    return test._replace(difference=100 * test.difference, standard_error=error, interval=interval)


def standing(*studies: Rows) -> str:
    """The default minus the best rivals, with Holm's correction for the whole table."""
    found = lines(*studies)
    adjusted = holm([line.test.p_value for line in found])
    cells: dict[str, dict[str, str]] = {}
    for line, p_value in zip(found, adjusted, strict=True):
        unit = " %" if line.unit == NUMBERS else ""
        text = f"{signed(line.test.difference, 1)}{unit}, {line.rival} ({p_text(p_value)})"
        text = f"**{text}**" if verdict(line.test, p_value) != "level" else text
        cells.setdefault(line.name, {})[line.kind] = text
    rows = [[name, *(own.get(kind, "") for kind in _KINDS)] for name, own in cells.items()]
    return markdown_table(["treelens better by (p)", *_KINDS], rows)


def verdict(test: PairedTest, p_value: float | None) -> str:
    """Say whether the default leads, by the p-value that allows for the number of lines."""
    if p_value is not None and p_value < 0.05:
        return "leads" if test.difference > 0 else "loses"
    return "level"


def draw_standing(folder: Path, *studies: Rows) -> Path:
    """Draw every line with its 95 % interval, numbers on the left and classes on the right."""
    from matplotlib.figure import Figure

    found = lines(*studies)
    by_unit = {unit: [x for x in found if x.unit == unit] for unit in (NUMBERS, CLASSES)}
    names = {unit: list(dict.fromkeys(x.name for x in own))[::-1] for unit, own in by_unit.items()}
    height = 1.3 + 0.26 * max(map(len, names.values()))
    figure = Figure(figsize=(11.0, height), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, (unit, own) in zip(panels, by_unit.items(), strict=True):
        for kind, (color, marker, shift) in _STYLES.items():
            shown = [x for x in own if x.kind == kind]
            x = [line.test.difference for line in shown]
            y = [names[unit].index(line.name) + shift for line in shown]
            half = [x.test.interval[1] - x.test.difference if x.test.interval else 0 for x in shown]
            panel.errorbar(x, y, xerr=half, fmt=marker, color=color, ms=4, lw=1.2, label=kind)
        panel.axvline(0.0, color="0.4", lw=0.8)
        panel.set_yticks(range(len(names[unit])), labels=names[unit], fontsize=7.5)
        panel.set(xlabel=_XLABELS[unit], ylim=(-0.7, len(names[unit]) - 0.3))
        panel.grid(axis="x", alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return save_figure(figure, folder, "standing")


_STYLES = {OWN: ("#0072b2", "s", -0.15), OTHERS: ("#d55e00", "o", 0.15)}
_XLABELS = {
    NUMBERS: "numbers: % less error than the best rival",
    CLASSES: "classes: points above the best rival",
}
STUDIES = (
    "compare_numbers",
    "compare_moleculeace",
    "compare_classes",
    "table2",
    "compare_table2",
    "compare_attributes",
    "attributes",
)
TABLES = {"standing": from_rows(standing, *STUDIES)}
FIGURES = {"standing": from_rows(draw_standing, *STUDIES)}
