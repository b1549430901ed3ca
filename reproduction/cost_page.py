"""The page on speed and cost, from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.cost import INSTALLED, LIMIT, OURS
from reproduction.cost_lines import (
    CLASS_LINES,
    CLASS_SETS,
    DEPTH,
    GAMMA,
    N_TIMES,
    NUMBER_LINES,
    NUMBER_SETS,
    C,
    Line,
    lines_of,
)
from reproduction.pages import command_line, markdown_table, write_page

Rows = Sequence[Mapping[str, Any]]
Lines = Mapping[str, Line]


def write_cost(out: Path, rows: Rows) -> None:
    """The page."""
    parts = [
        *in_short(rows),
        *["\n".join(f"- {sentence}" for sentence in compared(rows))],
        _ABOUT,
        "## Classes of graphs",
        _table(rows, CLASS_SETS, CLASS_LINES, "accuracy"),
        _ABOUT_CLASSES,
        "## Numbers of molecules",
        _table(rows, NUMBER_SETS, NUMBER_LINES, "rmse"),
        _ABOUT_NUMBERS,
        *_stopped(rows),
        *_not_run(rows),
        *_not_installed(rows),
    ]
    write_page(out / "cost.md", "Speed and cost", command_line("cost"), parts)


_EVEN = 2.0  # ratios below are told as even
_ABOUT = (
    "One fit and one prediction of the first fold or split that [evidence](evidence.md) and "
    "[regression](regression.md) use, each in a process of its own, with one thread. Seconds are "
    "of processor time; other programs were running on both cores, so that the wall clock (last "
    "column but one) says little. Processor time, too, differs between runs on a busy machine: "
    "ratios below two are told as even. Everything was run on some 40 training graphs before, so "
    "that "
    "imports and compilation are left out (what a first use costs, [benchmarks](benchmarks.md) "
    f"tell). What took less than a second by the clock was run {N_TIMES} times, of which the least "
    "counts. *Times the "
    "default* divides the seconds of fit and prediction by those of the first line of the set, our "
    "default model: below 1 the line is faster than it. Memory is the most that the process held, "
    "and in brackets what it held before the fit: interpreter, libraries, compiled code and data. "
    "Scores are those of one split and tell that the work was done, no more."
)
_ABOUT_CLASSES = (
    "Graphs were in the form that each library reads fastest before the clock ran: a collection, "
    "GraKeL's tuples, igraph's graphs. Every support vector machine has one fixed setting (depth "
    f"{DEPTH}, γ = {GAMMA:g}, C = {C:g}) and chooses nothing; ours also calibrates probabilities "
    "by five folds, which its time includes. *Times the same kernel* divides by the seconds of "
    "`GraphSVC` with the same kernel. The package wwl takes all graphs at once, so that its fit "
    "holds the distances of the test graphs."
)
_ABOUT_NUMBERS = (
    "All start from SMILES. Fingerprints of all molecules are made together and count with the "
    "fit. The Tanimoto GP is a compiled one of this library. scikit-learn's Gaussian process has a "
    "constant times an RBF kernel plus white noise on ECFP4 counts folded to 2,048, its own "
    "optimiser and one start; the other rivals are those of [regression](regression.md)."
)


# --- what the tables say ------------------------------------------------------------------------


def compared(rows: Rows) -> list[str]:
    """Where we are slower and where faster, and how many times, in words."""
    classes = [row for row in rows if row["set"] in CLASS_SETS]
    numbers = [row for row in rows if row["set"] in NUMBER_SETS]
    rivals = [method for method, line in CLASS_LINES.items() if line.twin]
    told = [
        _sentence(
            "`GraphRegressor` as it comes", numbers, NUMBER_LINES,
            dict.fromkeys([method for method in NUMBER_LINES if method != OURS], OURS),
        ),
        _sentence(
            "`GraphClassifier` as it comes", classes, CLASS_LINES,
            dict.fromkeys(["treelens_uniform", *rivals], OURS),
        ),
        _sentence(
            "`GraphSVC` with the same kernel", classes, CLASS_LINES,
            {method: CLASS_LINES[method].twin for method in rivals},
        ),
    ]  # fmt: skip
    return [sentence for sentence in told if sentence]


def in_short(rows: Rows) -> list[str]:
    """One sentence: what the default models are slower and faster than."""
    pairs = [(sets, lines, method)
             for sets, lines in ((NUMBER_SETS, NUMBER_LINES), (CLASS_SETS, CLASS_LINES))
             for method, line in lines.items()
             if method != OURS and not method.startswith("svc")]  # fmt: skip
    groups: dict[str, list[str]] = {"slower": [], "faster": [], "even": [], "mixed": []}
    for sets, lines, method in pairs:
        found = ratios([row for row in rows if row["set"] in sets], OURS, method)
        sides = {side_of(ratio) for ratio, _ in found.values()}
        if sides:
            groups["mixed" if len(sides) > 1 else sides.pop()].append(lines[method].title)
    told = [
        f"{words} {_listed(groups[side], '; ')}"
        for side, words in (
            ("slower", "slower on every set that was run than"),
            ("faster", "faster on every set that was run than"),
            ("even", "even with"),
            ("mixed", "by the set slower, even or faster than"),
        )
        if groups[side]
    ]
    return [f"Our default models are {'. They are '.join(told)}."] if told else []


def _sentence(subject: str, rows: Rows, lines: Lines, pairs: Mapping[str, str | None]) -> str:
    verdicts = [
        verdict(lines[rival].title, ratios(rows, ours, rival)) for rival, ours in pairs.items()
    ]
    known = sorted((text for text in verdicts if text), key=_faster_last)
    return f"{subject} is {'; '.join(known)}." if known else ""


def _faster_last(text: str) -> int:
    """Where we are slower comes first."""
    return ("slower" not in text) + text.startswith("faster")


def ratios(rows: Rows, ours: str | None, rival: str) -> dict[str, tuple[float, bool]]:
    """Set: the rival's seconds over ours, and whether it was stopped, so that it is more."""
    table = {(row["set"], row["method"]): row for row in rows}
    found = {}
    for name, method in table:
        mine = table.get((name, ours or ""))
        if method == rival and mine is not None and "stopped" not in mine:
            row = table[name, rival]
            ratio = seconds_of(row) / seconds_of(mine)
            if "stopped" not in row or ratio >= 1.0:  # stopped before ours ended tells nothing
                found[name] = (ratio, "stopped" in row)
    return found


def seconds_of(row: Mapping[str, Any]) -> float:
    """Processor seconds of fit and prediction; of a stopped run, so far."""
    return row["stopped"] if "stopped" in row else row["fit_cpu"] + row["predict_cpu"]


def side_of(ratio: float) -> str:
    """What a rival's seconds over ours mean: one run tells no less than a factor of two."""
    if ratio >= _EVEN:
        return "faster"
    return "slower" if ratio <= 1.0 / _EVEN else "even"


def verdict(title: str, found: Mapping[str, tuple[float, bool]]) -> str:
    """Ratios of a rival in words.

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
        where = f" on {_listed(group)}" if len(known) > 1 else ""
        times = "" if side == "even" else f" ({_span(group.values())})"
        texts.append(f"{side}{rival}{where}{times}")
    return ", ".join(texts)


def _span(pairs: Iterable[tuple[float, bool]]) -> str:
    ordered = sorted(pairs)
    ends = [_factor(*ordered[0]), _factor(*ordered[-1])]
    return f"{' to '.join(dict.fromkeys(ends))} times"


def _factor(ratio: float, at_least: bool = False) -> str:
    """Two digits, which is more than one run can tell."""
    shown = float(f"{ratio:.2g}")
    text = f"{shown:,.0f}" if shown >= 10 else f"{shown:g}"
    return f"more than {text}" if at_least else text


def _listed(names: Iterable[str], between: str = ", ") -> str:
    *first, last = names
    return f"{between.join(first)} and {last}" if first else last


# --- tables -------------------------------------------------------------------------------------


def _table(rows: Rows, sets: Sequence[str], lines: Lines, score: str) -> str:
    table = {(row["set"], row["method"]): row for row in rows}
    twins = any(line.twin for line in lines.values())
    header = ["set", "line", "fit, s", "predict, s", "times the default"]
    header += ["times the same kernel"] if twins else []
    header += ["memory, MB", "wall, s", "accuracy %" if score == "accuracy" else "RMSE"]
    cells = []
    for name in sets:
        for method, line in lines.items():
            row = table.get((name, method))
            if row is not None:
                compare = [OURS, line.twin] if twins else [OURS]
                told = [_times(rows, name, ours, method) for ours in compare]
                cells.append(
                    [_named(name, row), line.title, *_spent(row), *told, *_rest(row, score)]
                )
    return markdown_table(header, cells)


def _named(name: str, row: Mapping[str, Any]) -> str:
    return f"{name}, {row['n_train']:,} + {row['n_test']:,}" if "n_train" in row else name


def _times(rows: Rows, name: str, ours: str | None, method: str) -> str:
    found = ratios(rows, ours, method).get(name)
    return "" if found is None else _factor(*found).replace("more than ", "> ")


def _spent(row: Mapping[str, Any]) -> list[str]:
    if "stopped" in row:
        return [f"> {row['stopped']}, stopped", ""]
    return [f"{row['fit_cpu']:.3g}", f"{row['predict_cpu']:.2g}"]


def _rest(row: Mapping[str, Any], score: str) -> list[str]:
    if "stopped" in row:
        return ["", "", ""]
    shown = f"{100 * row[score]:.1f}" if score == "accuracy" else f"{row[score]:.3f}"
    memory = f"{row['megabytes']:,.0f} ({row['megabytes_before']:,.0f})"
    return [memory, f"{row['wall']:.3g}", shown]


def _stopped(rows: Rows) -> list[str]:
    told = [
        f"{({**CLASS_LINES, **NUMBER_LINES})[row['method']].title} on {row['set']}"
        for row in rows
        if "stopped" in row
    ]
    words = f"Rivals were stopped after {LIMIT} seconds of processor time: "
    return [f"{words}{_listed(told, '; ')}."] if told else []


def _not_run(rows: Rows) -> list[str]:
    """Lines of sets that have some, but not these."""
    known = {(row["set"], row["method"]) for row in rows}
    told = [
        f"{line.title} on {name}"
        for name in dict.fromkeys(row["set"] for row in rows)
        for method, line in lines_of(name).items()
        if name in (*CLASS_SETS, *NUMBER_SETS) and (name, method) not in known
    ]
    return [f"Not run: {_listed(told, '; ')}."] if told else []


def _not_installed(rows: Rows) -> list[str]:
    """What became of a rival that is no line of the tables."""
    row = next((row for row in rows if row["method"] == INSTALLED), None)
    if row is None or row["error"] is None:
        return []
    tried, failed = row["tried"], row["failed"]
    return [
        f"{INSTALLED} {tried[INSTALLED]} was tried on Python {row['python']} and could not be run: "
        f"its kernel is that of graphdot, which needs CUDA, and `pip install {failed}` (version "
        f"{tried[failed]}) ends with `{row['error']}`."
    ]
