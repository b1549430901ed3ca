"""The page about explanations: fidelity, toxicophores, fragments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.fragments import NO_DESCRIPTORS
from reproduction.pages import (
    Rows,
    grouped,
    listed,
    markdown_table,
    mean_and_error,
    plus_minus,
    rows_of,
    sections,
    write_page,
)

KINDS = ("deletion", "insertion")
ORDERS = ("contributions", "occlusion", "random")
OURS = "treelens"
RIVALS = {"ECFP4 forest": "path contributions", "ECFP4 forest by SHAP": "SHAP values"}
SURE = 2.0  # standard errors of a paired difference
_PLANTED = "0(0,1,2)"


def write(out: Path) -> Path | None:
    """Write ``explanations.md``."""
    if not rows_of(out, "fidelity"):
        return None
    makers = {
        "fidelity": _fidelity_parts,
        "atom_truth": _atom_parts,
        "toxicophores": _toxicophore_parts,
        "fragments": _fragment_parts,
    }
    about = (
        "Four questions: do predictions rest on the atoms that explanations name, are the atoms "
        "found that values follow from, do contributions find known toxicophores, and do fragments "
        "name known groups?"
    )
    return write_page(out, "explanations", "Explanations", [about, *sections(out, makers)])


# --- fidelity ---------------------------------------------------------------------------------


def fidelity_summary(rows: Rows) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """Return areas and paired differences by set and model, over all molecules of all seeds."""
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for key, own in grouped(rows, "set", "model").items():
        for kind, better in zip(KINDS, (-1.0, 1.0), strict=True):
            areas = {x: np.concatenate([row["areas"][kind][x] for row in own]) for x in ORDERS}
            ahead = {x: better * (areas["contributions"] - areas[x]) for x in ORDERS[1:]}
            found.setdefault(key, {})[kind] = {
                "areas": {x: mean_and_error(values) for x, values in areas.items()},
                "ahead_of": {x: mean_and_error(values) for x, values in ahead.items()},
            }
    return found


def _fidelity_parts(rows: Rows) -> list[str]:
    found = fidelity_summary(rows)
    sets, models = (dict.fromkeys(row[x] for row in rows) for x in ("set", "model"))
    keys = [key for key in product(sets, models) if key in found]
    lines = [
        [
            name,
            model,
            *(
                plus_minus(*found[name, model][kind]["areas"][order])
                for kind in KINDS
                for order in ORDERS
            ),
        ]
        for name, model in keys
    ]
    header = ["set", "model", *(f"{kind}, {order}" for kind in KINDS for order in ORDERS)]
    first, seeds = rows[0], len({row["seed"] for row in rows})
    return [
        "## Do predictions rest on the atoms that explanations name?",
        "Molecules that a model was not trained on lose their atoms in the order of an explanation "
        "(*deletion*: lower is better), or are built up in that order (*insertion*: higher is "
        "better), and the model predicts again at every tenth of the atoms. Kept atoms keep the "
        "labels that they have in the whole molecule. The figures are areas under these curves: 1 "
        "is the prediction of the whole molecule, 0 the mean prediction of the training part; ± is "
        "one standard error over molecules. *ECFP4 forest*: 200 trees on ECFP4 counts with exact "
        "contributions along the paths of its trees; *by SHAP*: the same forest with SHAP values "
        "(TreeSHAP against 100 training molecules). *occlusion*: what a prediction loses without "
        "one atom. *random*: five random orders. Each model is judged on its own predictions, so "
        "compare the orders within a line, and models by how far they are ahead of random. "
        f"{first['n_train']} molecules to train on and {first['n_explained']} explained, of at "
        f"least eight atoms, in each of {seeds} random splits.",
        _findings(found),
        markdown_table(header, lines),
        "A molecule with holes is not a molecule: every deletion changes a prediction for that "
        "reason alone, which random order shows. The curves say whether an explanation is true to "
        "its model, not whether the model is true to chemistry.",
    ]


def _findings(found: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    texts = []
    for other in ("random", "occlusion"):
        tests = [
            found[key][kind]["ahead_of"][other] for key in found if key[1] == OURS for kind in KINDS
        ]
        ahead = sum(mean > SURE * error for mean, error in tests)
        texts.append(f"ahead of {other} in {ahead} of {len(tests)}")
    text = (
        "By more than two standard errors of the paired difference, contributions of treelens are "
        f"{listed(texts)} cases."
    )
    for rival, name in RIVALS.items():
        lost = []
        for set_name, model in found:
            theirs = found.get((set_name, rival))
            if model == OURS and theirs is not None:
                for kind in KINDS:
                    gains = [
                        x[kind]["ahead_of"]["random"][0] for x in (found[set_name, OURS], theirs)
                    ]
                    if gains[1] > gains[0]:
                        lost.append(f"{set_name} ({kind}: {gains[1]:.2f} against {gains[0]:.2f})")
        where = (
            f"further ahead of random than ours on {'; '.join(lost)}"
            if lost
            else "nowhere further ahead of random than ours"
        )
        text += f" The forest's {name} are {where}."
    return text


# --- atoms that are the cause -------------------------------------------------------------------

_TRUTHS = {
    "N_O": "number of nitrogen and oxygen atoms",
    "N": "number of nitrogen atoms",
    "N_minus_O": "nitrogen atoms less oxygen atoms",
    "amide": "number of amides",
    "amide_class": "whether there is an amide",
}


def atom_areas(rows: Rows) -> dict[str, tuple[float, float]]:
    """Return the mean ROC AUC of each set, and its standard error."""
    return {row["set"]: mean_and_error(np.array(row["areas"])) for row in rows}


def _atom_parts(rows: Rows) -> list[str]:
    found = atom_areas(rows)
    lines = [
        [
            row["set"],
            _TRUTHS[row["set"]],
            f"{row['n_train']:,}",
            f"{len(row['areas']):,}",
            plus_minus(*found[row["set"]], 4),
        ]
        for row in rows
    ]
    header = ["set", "value", "molecules to train on", "explained", "ROC AUC"]
    return [
        "## Are the atoms found that values follow from?",
        "Sets of molecules whose value counts some atoms (ibenchmark, the parts to train on), a "
        "default model of four fifths of each, and the other molecules explained: ROC AUC of the "
        "contributions against the atoms that are counted, averaged over the molecules that have "
        "such atoms and others.",
        markdown_table(header, lines),
    ]


# --- toxicophores -----------------------------------------------------------------------------


def _toxicophore_parts(rows: Rows) -> list[str]:
    by_model = {row["model"]: row for row in rows if row["seed"] == rows[0]["seed"]}
    right = np.all([np.array(row["predicted"]) > 0 for row in by_model.values()], axis=0)
    areas = {
        (model, name): np.array(row["areas"][name])[right]
        for model, row in by_model.items()
        for name in ("contributions", "occlusion")
    }
    best = areas[OURS, "contributions"]
    lines = [
        [
            model.removesuffix(" by SHAP"),
            RIVALS.get(model, name) if name == "contributions" else name,
            plus_minus(*mean_and_error(found), 3),
            plus_minus(*mean_and_error(best - found), 3),
        ]
        for (model, name), found in areas.items()
        if (model, name) != ("ECFP4 forest by SHAP", "occlusion")
    ]
    first = by_model[OURS]
    header = ["model", "explanation", "ROC AUC", "treelens ahead by"]
    return [
        "## Do atom contributions find known toxicophores?",
        f"Ames (Hansen et al. 2009), {first['n_train']:,} molecules to train on, "
        f"{len(first['molecules'])} other mutagens that hold one of eight approved classes of "
        "toxicophores (Kazius, McGuire and Bursi 2005) and atoms outside it. ROC AUC of the atoms' "
        f"contributions against toxicophore atoms, averaged over the {int(right.sum())} molecules "
        "that every model predicts above its mean; ± the standard error, differences paired. A "
        "forest on fingerprints is judged by its path contributions as well as by occlusion, which "
        "is a weaker explanation of it.",
        markdown_table(header, lines),
    ]


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


def _fragment_parts(rows: Rows) -> list[str]:
    counts = fragment_counts(rows)
    ames = sorted(
        (r for r in rows if r["part"] == "Ames"),
        key=lambda r: (r["sample"], r["method"] != "fragments"),
    )
    shown = [r for r in ames if r["method"] in ("fragments", *RIVALS)]
    lines = [
        [name, *("–" if r["met_at"][name] is None else r["met_at"][name] for r in shown)]
        for name in sorted(ames[0]["met_at"])
    ]
    lines.append(["**classes met by the first 25**", *(r["n_met"] for r in shown)])
    header = ["class of toxicophores", *(f"{r['sample']}, {r['method']}" for r in shown)]
    stable = [f"{100 * share:.0f} % ({sample})" for sample, share in counts["stable"].items()]
    without, default = (
        listed(
            [
                f"{100 * share:.0f} % on {name}"
                for (name, own), share in counts["crippen"].items()
                if own == method
            ]
        )
        for method in (NO_DESCRIPTORS, "fragments")
    )
    return [
        "## Do fragments name known groups?",
        "Mutagens of the Ames set in two halves that share no molecule, and all of them. A class "
        "is *met* by the first fragment with a positive effect of whose atoms at least 60 % belong "
        "to a match of one of its SMARTS; the number is its place among the fragments with a "
        "positive effect. *fragments*: `model.fragments_` of a `GraphClassifier` with default "
        "settings. *ECFP4 forest*: what switching a bit off does to the probability of held-out "
        "molecules, or its SHAP value. No half is an untouched test: the scoring of fragments is "
        "the best of five that were tried with a look at both halves (the others met 5 to 8 "
        "classes), so read our columns as an upper end.",
        markdown_table(header, lines),
        *_first_fragments(ames),
        f"The planted pattern of synthetic sets is the first fragment in {counts['planted'][0]} of "
        f"{counts['planted'][1]}. The signs of fragments (40 at most) agree with Crippen's atom "
        f"contributions in {default} at the defaults, and in {without} without "
        "descriptors. Of the first ten fragments, this share comes back "
        f"among the first ten of refits to bootstrap samples: {listed(stable)}; two rules behind "
        "these figures were chosen with a look at the refits of all molecules.",
    ]


def _first_fragments(ames: Sequence[Mapping[str, Any]], n: int = 10) -> list[str]:
    whole = [r for r in ames if r["sample"] == "all molecules" and r["method"] == "fragments"]
    if not whole:
        return []
    lines = [
        [
            k,
            r.get("name") or "",
            f"`{r.get('smarts') or r['pattern']}`".replace("|", "\\|"),
            f"{r['effect']:+.2f}",
            r["support"],
            ", ".join(r["meets"]),
        ]
        for k, r in enumerate(whole[0]["rows"][:n], 1)
    ]
    header = ["", "name", "SMARTS", "effect", "molecules", "class"]
    return [f"The first {n} fragments of all molecules:", markdown_table(header, lines)]
