"""Tables of explanations: deletion and insertion, atoms that are the cause, fragments."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from reproduction.fragments import NO_DESCRIPTORS
from reproduction.pages import (
    Rows,
    from_rows,
    grouped,
    markdown_table,
    mean_and_error,
    plus_minus,
    signed,
)

KINDS = ("deletion", "insertion")
ORDERS = ("contributions", "occlusion", "random")
OURS = "treelens"
RIVALS = {"ECFP4 forest": "path contributions", "ECFP4 forest by SHAP": "SHAP values"}
_PLANTED = "0(0,1,2)"


def fidelity(rows: Rows) -> str:
    """How far contributions are ahead of a random order, and of occlusion, over all molecules."""
    lines = []
    groups = grouped(rows, "set", "model")
    sets, models = (dict.fromkeys(row[x] for row in rows) for x in ("set", "model"))
    for key in (key for key in product(sets, models) if key in groups):
        cells = []
        for kind, better in zip(KINDS, (-1.0, 1.0), strict=True):
            areas = {
                x: np.concatenate([row["areas"][kind][x] for row in groups[key]]) for x in ORDERS
            }
            for order in ("random", "occlusion"):
                mean, error = mean_and_error(better * (areas["contributions"] - areas[order]))
                cells.append(signed(mean) + ("" if error is None else f" ± {error:.2f}"))
        lines.append([", ".join(key), *cells])
    titles = [f"{kind}: ahead of {order}" for kind in KINDS for order in ("random", "occlusion")]
    return markdown_table(["contributions", *titles], lines)


def toxicophores(rows: Rows) -> str:
    """ROC AUC of contributions against toxicophore atoms, and paired differences to ours."""
    by_model = {row["model"]: row for row in rows if row["seed"] == rows[0]["seed"]}
    right = np.all([np.array(row["predicted"]) > 0 for row in by_model.values()], axis=0)
    areas = {
        (model, name): np.array(row["areas"][name])[right]
        for model, row in by_model.items()
        for name in ("contributions", "occlusion")
    }
    best = areas.get((OURS, "contributions"))
    if best is None:
        return ""
    lines = []
    for (model, name), found in areas.items():
        if (model, name) == ("ECFP4 forest by SHAP", "occlusion"):
            continue
        ahead, error = mean_and_error(best - found)
        text = "" if found is best else f"{signed(ahead, 3)} ± {error:.3f}"
        shown = RIVALS.get(model, name) if name == "contributions" else name
        lines.append(
            [model.removesuffix(" by SHAP"), shown, plus_minus(*mean_and_error(found), 3), text]
        )
    header = ["model", "explanation", "ROC AUC", "treelens ahead by"]
    return markdown_table(header, lines)


# --- fragments --------------------------------------------------------------------------------


def fragment_counts(rows: Rows) -> dict[str, Any]:
    """Return the figures that the guide quotes."""
    planted = [row for row in rows if row["part"] == "planted"]
    return {
        "met": {(r["sample"], r["method"]): r["n_met"] for r in rows if r["part"] == "Ames"},
        "planted": (sum(r["first"] == _PLANTED for r in planted), len(planted)),
        "crippen": {(r["sample"], r["method"]): r["agree"] for r in rows if r["part"] == "Crippen"},
        "stable": {r["sample"]: r["mean_overlap"] for r in rows if r["part"] == "stability"},
    }


def classes_met(rows: Rows) -> str:
    """The place of the first fragment that meets each class of toxicophores."""
    ames = [r for r in rows if r["part"] == "Ames" and r["method"] in ("fragments", *RIVALS)]
    shown = sorted(ames, key=lambda r: (r["sample"], r["method"] != "fragments"))
    lines: list[list[Any]] = [
        [name, *("–" if r["met_at"][name] is None else r["met_at"][name] for r in shown)]
        for name in sorted({name for r in shown for name in r["met_at"]})
    ]
    lines.append(["**met by the first 25**", *(r["n_met"] for r in shown)])
    header = ["class", *(f"{r['sample']}: {r['method']}" for r in shown)]
    return markdown_table(header, lines)


def first_fragments(rows: Rows, n: int = 4) -> str:
    """The first fragments of all molecules of the Ames set."""
    wanted = ("Ames", "all molecules", "fragments")
    whole = [r for r in rows if (r["part"], r["sample"], r.get("method")) == wanted]
    lines = [_fragment(k, row) for r in whole for k, row in enumerate(r["rows"][:n], 1)]
    return markdown_table(["", "name", "SMARTS", "effect", "molecules", "class"], lines)


def _fragment(place: int, row: Mapping[str, Any]) -> list[Any]:
    smarts = f"`{row.get('smarts') or row['pattern']}`".replace("|", "\\|")
    met = ", ".join(row["meets"])
    return [place, row.get("name") or "", smarts, signed(row["effect"]), row["support"], met]


def agreement(rows: Rows) -> str:
    """Planted patterns that come first, signs that agree with Crippen's, and what comes back."""
    counts = fragment_counts(rows)
    names = {"fragments": "defaults", NO_DESCRIPTORS: "without descriptors"}
    lines = [
        ["planted pattern of synthetic sets comes first", "{} of {}".format(*counts["planted"])]
    ]
    for method, title in names.items():
        shares = [
            f"{100 * share:.0f} % ({sample})"
            for (sample, own), share in counts["crippen"].items()
            if own == method
        ]
        lines.append([f"signs agree with Crippen's contributions, {title}", ", ".join(shares)])
    shares = [f"{100 * share:.0f} % ({sample})" for sample, share in counts["stable"].items()]
    lines.append(["of the first ten, found again by refits", ", ".join(shares)])
    return markdown_table(["", "share"], lines)


TABLES = {
    "fidelity": from_rows(fidelity, "fidelity"),
    "toxicophores": from_rows(toxicophores, "toxicophores"),
    "classes-met": from_rows(classes_met, "fragments"),
    "first-fragments": from_rows(first_fragments, "fragments"),
    "fragment-agreement": from_rows(agreement, "fragments"),
}
