"""The page on deletion and insertion curves, from its rows."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.pages import command_line, markdown_table, write_json, write_page

KINDS = ("deletion", "insertion")
ORDERS = ("contributions", "occlusion", "random")
RIVALS = {"ECFP4 forest": "by paths", "ECFP4 forest by SHAP": "by SHAP"}
SURE = 2.0  # standard errors of a paired difference
ABOUT = (
    "Molecules that a model was not trained on lose their atoms in the order of an explanation "
    "(*deletion*), or are built up from nothing in that order (*insertion*), and the model "
    "predicts again at every tenth of the atoms. Kept atoms keep the labels that they have in the "
    "whole molecule. What is followed is how far the prediction lies beyond the usual one (the "
    "mean over the training part), in the direction of the whole molecule's prediction and as a "
    "share of that distance, averaged over molecules: 1 is the whole prediction, 0 the usual one. "
    "The area under a curve is its mean over nine tenths: after deletion **lower is better**, "
    "after insertion **higher is better**. ± is one standard error over molecules."
)
METHODS = (
    "*treelens*: `GraphClassifier` (decision values) or `GraphRegressor` with default settings; "
    "contributions are those of `explain`. *ECFP4 forest*: 200 trees on ECFP4 counts (radius 2, "
    "2048 bits; probabilities or numbers); contributions are the exact changes along the paths of "
    "its trees (Saabas), each bit's shared by the atoms of its environments. *ECFP4 forest by "
    "SHAP*: the same forest and the same way to atoms, with the SHAP values of bits in place of "
    "changes along paths (TreeSHAP against 100 training molecules; the form that goes by the rows "
    "at each split is numerically unstable on trees as deep as these). What bits add that a "
    "molecule lacks belongs to no atom and is left out. *occlusion*: how much a prediction loses "
    "without one atom. *random*: five random orders. Each model is judged on its own predictions, "
    "so compare the orders within a line, and models by how far they are ahead of random."
)
LIMITS = (
    "A molecule with holes is none: every deletion changes a prediction for that reason alone, "
    "which random order shows. Occlusion asks the model once for each atom, contributions ask it "
    "once. The curves say whether an explanation is true to its model, not whether the model is "
    "true to chemistry."
)


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Page and summary."""
    found = summary(rows)
    write_json(out / "fidelity.json", found)
    parts = [ABOUT, METHODS, _sizes(rows), " ".join([_findings(found), _shap_beside_paths(rows)])]
    parts += [f"## {kind.capitalize()}\n\n{_table(found, kind)}" for kind in KINDS]
    parts += ["## Curves\n\n" + _curves(rows), "## What this does not show", LIMITS]
    title = "Do explanations name the atoms that predictions rest on?"
    write_page(out / "fidelity.md", title, command_line("fidelity"), parts)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Areas and paired differences of every set and model, over all molecules of all seeds."""
    return {
        f"{name}, {model}": {kind: _of_kind(own, kind) for kind in KINDS}
        for name, model, own in _by_set_and_model(rows)
    }


def _by_set_and_model(
    rows: list[dict[str, Any]],
) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Set, model and their rows, all models of a set one after the other."""
    sets, models = (dict.fromkeys(row[x] for row in rows) for x in ("set", "model"))
    found = [
        (name, model, [row for row in rows if (row["set"], row["model"]) == (name, model)])
        for name, model in product(sets, models)
    ]
    return [each for each in found if each[2]]


def _of_kind(rows: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    areas = {x: np.concatenate([row["areas"][kind][x] for row in rows]) for x in ORDERS}
    better = -1.0 if kind == "deletion" else 1.0
    return {
        "areas": {x: _mean(values) for x, values in areas.items()},
        "ahead_of": {
            x: _mean(better * (areas["contributions"] - areas[x]))
            for x in ("occlusion", "random")
        },
        "share_behind_random": float(
            np.mean(better * (areas["contributions"] - areas["random"]) <= 0)
        ),
    }  # fmt: skip


def _mean(values: np.ndarray) -> list[float]:
    return [float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))]


def _sizes(rows: list[dict[str, Any]]) -> str:
    first, seeds = rows[0], len({row["seed"] for row in rows})
    return (
        f"{first['n_train']} molecules to train on and {first['n_explained']} explained, of at "
        f"least eight atoms, in each of {seeds} random splits."
    )


def _findings(found: dict[str, Any]) -> str:
    own = {name: x for name, x in found.items() if name.endswith(", treelens")}
    lines = []
    for other in ("random", "occlusion"):
        verdicts = {
            f"{name.split(',')[0]} ({kind})": _verdict(*x[kind]["ahead_of"][other])
            for name, x in own.items()
            for kind in KINDS
        }
        ahead, behind = (
            [place for place, verdict in verdicts.items() if verdict == sign] for sign in (1, -1)
        )
        lines.append(
            f"Contributions of treelens are ahead of {other} by more than two standard errors of "
            f"the paired difference in {len(ahead)} of {len(verdicts)} cases, behind in "
            f"{len(behind)}{': ' + ', '.join(behind) if behind else ''}."
        )
    shares = [x[kind]["share_behind_random"] for x in own.values() for kind in KINDS]
    lines.append(
        f"Molecule by molecule they are no better than random order for {100 * min(shares):.0f} to "
        f"{100 * max(shares):.0f} %."
    )
    beside = [_beside_the_forest(found, *rival) for rival in RIVALS.items()]
    return " ".join([*lines, *beside])


def _beside_the_forest(found: dict[str, Any], rival_name: str, words: str) -> str:
    """Where the forest's explanation is further ahead of random than ours."""
    lost = []
    for name, x in found.items():
        rival = found.get(name.replace(", treelens", f", {rival_name}"))
        if not name.endswith(", treelens") or rival is None:
            continue
        for kind in KINDS:
            ours, theirs = (y[kind]["ahead_of"]["random"][0] for y in (x, rival))
            if theirs > ours:
                place = f"{name.split(',')[0]} ({kind}: {theirs:.2f} against {ours:.2f})"
                lost.append(place)
    if not lost:
        return f"The forest's contributions {words} are nowhere further ahead of random than ours."
    return f"Where we lose: the forest {words} is further ahead of random on {'; '.join(lost)}."


def _shap_beside_paths(rows: list[dict[str, Any]]) -> str:
    """Both explain the same forest for the same molecules, so their areas are paired."""
    by_key = {(row["set"], row["seed"], row["model"]): row for row in rows}
    pairs = [
        (by_key[name, seed, "ECFP4 forest"], row)
        for (name, seed, model), row in by_key.items()
        if model == "ECFP4 forest by SHAP" and (name, seed, "ECFP4 forest") in by_key
    ]
    verdicts = []
    for name in dict.fromkeys(row["set"] for row, _ in pairs):
        own = [pair for pair in pairs if pair[0]["set"] == name]
        for kind, better in zip(KINDS, (-1.0, 1.0), strict=True):
            paths, shap = (
                np.concatenate([pair[k]["areas"][kind]["contributions"] for pair in own])
                for k in (0, 1)
            )
            verdicts.append(_verdict(*_mean(better * (shap - paths))))
    if not verdicts:
        return ""
    return (
        f"On the same forest SHAP values are ahead of changes along paths by more than two "
        f"standard errors in {verdicts.count(1)} of {len(verdicts)} cases, behind in "
        f"{verdicts.count(-1)}."
    )


def _verdict(mean: float, error: float) -> int:
    return 0 if abs(mean) <= SURE * error else int(np.sign(mean))


def _table(found: dict[str, Any], kind: str) -> str:
    header = ["set, model", *ORDERS, "ahead of occlusion", "ahead of random"]
    lines = [
        [
            name,
            *(_plus_minus(x[kind]["areas"][order]) for order in ORDERS),
            *(_plus_minus(x[kind]["ahead_of"][order]) for order in ("occlusion", "random")),
        ]
        for name, x in found.items()
    ]
    return markdown_table(header, lines)


def _curves(rows: list[dict[str, Any]]) -> str:
    """What is left of predictions at 10, 30 and 50 % of the atoms, in order of contribution."""
    header = ["set, model", *(f"{kind}, {p} %" for kind in KINDS for p in (10, 30, 50))]
    lines = []
    for name, model, own in _by_set_and_model(rows):
        means = {
            kind: np.mean([row["curves"][kind]["contributions"] for row in own], axis=0)
            for kind in KINDS
        }
        cells = [f"{means[kind][k]:.2f}" for kind in KINDS for k in (0, 2, 4)]
        lines.append([f"{name}, {model}", *cells])
    return markdown_table(header, lines)


def _plus_minus(pair: list[float]) -> str:
    return f"{pair[0]:.2f} ± {pair[1]:.2f}"
