"""Do fragments name what is known? ``python -m reproduction toxicophores --out docs/results``.

Mutagens: which of the eight approved classes of toxicophores (Kazius, McGuire and Bursi, J. Med.
Chem. 48, 2005) the first fragments meet, beside an ECFP4 forest and a sparse linear model on the
same patterns. Planted patterns: whether they are row one. Solubility and lipophilicity: whether
signs agree with Crippen's atom contributions. And whether the first ten fragments return in refits.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import treelens as tl
from reproduction import fragment_rivals
from reproduction.data import StudyOptions, data_folder
from reproduction.fragment_stability import stability
from reproduction.fragments_figure import sheet
from reproduction.rows import RowFile, versions
from treelens.explain.effects import effects_of_graphs
from treelens.explain.fragment_search import ExplainedGraphs, mean_over_graphs, search_fragments
from treelens.explain.fragments import fragment_table

KEY = ("part", "sample", "method")
SAMPLES = ("half 1", "half 2")
WHOLE = "all molecules"
N_FIRST, N_SHOWN = 25, 40
INSIDE = 0.6  # of a fragment's atoms must belong to a match
MIN_SUPPORT = 12
SEEDS = tuple(range(10))
SIZES = (800, 2000)  # of the samples that models are refitted to: ten fits of all take an hour
SIGNS = {"ESOL": -1.0, "Lipophilicity": 1.0}  # what is lipophilic dissolves badly
BY_SHAP = "ECFP4 forest by SHAP"
METHODS = ("fragments", "with own terms", "ECFP4 forest", BY_SHAP, "L1 on the patterns")

# The eight approved classes, written down anew as SMARTS.
CLASSES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "aromatic nitro": ("a[N+](=O)[O-]",),
    "aromatic amine": ("a[NX3;H2,H1;!$(N-C=[O,S]);!$(NS(=O)=O);!$(N[!#6;!#1])]",),
    "three-membered heterocycle": ("[#6]1O[#6]1", "[#6]1N[#6]1"),
    "nitroso": ("a[NX2]=O", "[NX3][NX2]=O"),
    "unsubstituted heteroatom-heteroatom":
        ("[OX2H,NX3H2;!$([OX2H]S);!$([OX2H]P)][#7,#8]",),
    "azo": ("[#6][NX2]=[NX2][#6]",),
    "aliphatic halide": ("[CX4][Cl,Br,I]",),
    "polycyclic aromatic":
        ("a1aaa2a(a1)aaa1aaaaa12", "a1aaa2aa3aaaaa3aa2a1", "a1aaa2a(a1)aa1aaaaa12"),
})  # fmt: skip


class Ames(NamedTuple):
    """A half of the set: molecules, classes, and which atoms belong to which toxicophore."""

    graphs: tl.GraphCollection
    y: np.ndarray
    inside: dict[str, np.ndarray]  # class -> (n_nodes,) flags


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    rows = RowFile(asked.out / "fragments.jsonl", KEY)
    for sample in SAMPLES:
        for method in METHODS:
            _add(rows, asked, {"part": "Ames", "sample": sample, "method": method}, ames_row)
    _add(rows, asked, {"part": "Ames", "sample": WHOLE, "method": "fragments"}, ames_row)
    for seed in SEEDS:
        _add(rows, asked, {"part": "planted", "sample": seed, "method": "fragments"}, planted_row)
    for name in SIGNS:
        _add(rows, asked, {"part": "Crippen", "sample": name, "method": "fragments"}, crippen_row)
    for size in SIZES:
        for sample in SAMPLES:
            key = {"part": "stability", "sample": f"{size} of {sample}", "method": "fragments"}
            _add(rows, asked, key, stable_row)
    _add(rows, asked, {"part": "stability", "sample": WHOLE, "method": "fragments"}, stable_row)
    if not asked.sets or "figure" in asked.sets:
        model = fitted(SAMPLES[1], asked.n_jobs, asked.device)
        table = fragment_table(model._expansion, ames_half(SAMPLES[1]).graphs, n_jobs=asked.n_jobs)
        (asked.out / "figures").mkdir(parents=True, exist_ok=True)
        (asked.out / "figures" / "fragments.svg").write_text(sheet(table), encoding="utf-8")


def _add(rows: RowFile, asked: StudyOptions, key: dict[str, Any], make: Any) -> None:
    if (asked.sets and key["part"] not in asked.sets) or key in rows:
        return
    if asked.methods and key["method"] not in asked.methods:
        return
    found = make(key["sample"], key["method"], asked)
    rows.append({**key, **found, "device": asked.device, **versions()})
    print(key, flush=True)


# --- mutagens ---------------------------------------------------------------------------------


@cache
def ames_half(sample: str) -> Ames:
    """All molecules, or one of two halves that share none; choices were made on the first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # six SMILES cannot be parsed
        path = data_folder() / "smiles" / "Ames_Hansen2009.csv.gz"
        graphs, y = tl.read_smiles(path, on_invalid="skip")
    assert y is not None
    order = np.random.default_rng(0).permutation(len(y))
    parts = {WHOLE: order, "half 1": order[: len(y) // 2][:3000], "half 2": order[len(y) // 2 :]}
    chosen = np.sort(parts[sample])
    return Ames(graphs[chosen], y[chosen], class_atoms(graphs[chosen]))


def class_atoms(graphs: tl.GraphCollection) -> dict[str, np.ndarray]:
    """Which atoms belong to a toxicophore of each class: flags over all nodes."""
    from rdkit import Chem

    inside = {name: np.zeros(graphs.n_nodes, dtype=bool) for name in CLASSES}
    queries = {name: [Chem.MolFromSmarts(x) for x in found] for name, found in CLASSES.items()}
    for start, smiles in zip(graphs.node_offsets, graphs.graph_data["smiles"], strict=False):
        molecule = Chem.MolFromSmiles(smiles)
        for name, found in queries.items():
            for query in found:
                for match in molecule.GetSubstructMatches(query, maxMatches=2000):
                    inside[name][start + np.array(match)] = True
    return inside


@cache
def fitted(sample: str, n_jobs: int, device: str) -> tl.GraphClassifier:
    ames = ames_half(sample)
    return tl.GraphClassifier(device=device, n_jobs=n_jobs, random_state=0).fit(ames.graphs, ames.y)


def ames_row(sample: str, method: str, asked: StudyOptions) -> dict[str, Any]:
    ames = ames_half(sample)
    if method in ("ECFP4 forest", BY_SHAP):
        found = fragment_rivals.forest_environments(
            ames.graphs, ames.y, MIN_SUPPORT, by_shap=method == BY_SHAP
        )
    elif method == "L1 on the patterns":
        model = fitted(sample, asked.n_jobs, asked.device)
        seen = _seen(model, ames.graphs, asked.n_jobs, own_terms=False)
        found = fragment_rivals.sparse_patterns(seen, ames.y, MIN_SUPPORT)
    else:
        found = own_fragments(sample, asked, own_terms=method == "with own terms")
    rows = [_judged(fragment, ames) for fragment in found[:N_SHOWN]]
    return {"n": len(ames.y), "rows": rows, **summary(rows)}


def _seen(
    model: tl.GraphClassifier, graphs: tl.GraphCollection, n_jobs: int, own_terms: bool
) -> ExplainedGraphs:
    """Graphs explained; with their own terms, as if they had not been trained on."""
    found = effects_of_graphs(model._expansion, graphs, n_jobs=n_jobs, leave_out=not own_terms)
    return ExplainedGraphs(found.forest, graphs, found.colors, found.phi)


def own_fragments(sample: str, asked: StudyOptions, own_terms: bool) -> list[dict[str, Any]]:
    n_jobs = asked.n_jobs
    ames, model = ames_half(sample), fitted(sample, n_jobs, asked.device)
    names: list[Any] = [None] * N_SHOWN
    if not own_terms:
        table = fragment_table(model._expansion, ames.graphs, n_jobs=n_jobs)
        names = table[["name", "smarts"]].to_dict("records")
    seen = _seen(model, ames.graphs, n_jobs, own_terms)
    least = max(3, round(0.004 * len(ames.graphs)))
    found = search_fragments(seen, N_SHOWN, least, seen.forest.depth)
    return [
        {
            "pattern": " | ".join(seen.forest.texts(f.patterns)),
            **(name or {}),
            "effect": f.effect.mean, "error": f.effect.error, "support": f.effect.n_graphs,
            "conditional_effect": f.beyond.mean, "conditional_error": f.beyond.error,
            "atoms": seen.balls(f.roots, f.depth),
        }
        for f, name in zip(found, names, strict=False)
    ]  # fmt: skip


def _judged(fragment: dict[str, Any], ames: Ames) -> dict[str, Any]:
    """A fragment with the classes it meets, its numbers rounded, without its atoms."""
    held = fragment.pop("atoms")  # sparse, (n_occurrences, n_nodes)
    sizes = np.asarray(held.sum(axis=1)).ravel()
    shares = {
        name: float(((held @ flags.astype(float)) / sizes).mean())
        for name, flags in ames.inside.items()
    }
    met = [name for name, share in shares.items() if share >= INSIDE]
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in fragment.items()}
    return {**rounded, "n_atoms": round(float(sizes.mean()), 2), "meets": met}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Where each class is met first, by rows of either sign and by rows that speak for it."""
    positive = [row for row in rows if row["effect"] > 0]
    first = rows[:N_FIRST]
    told = [name for row in first if row["effect"] > 0 for name in row["meets"]]
    return {
        "met_at": {name: _first(positive, name) for name in CLASSES},
        "met_at_row": {
            name: next((k for k, r in enumerate(rows, 1)
                        if r["effect"] > 0 and name in r["meets"]), None)
            for name in CLASSES
        },
        "n_met": len({name for row in positive[:N_FIRST] for name in row["meets"]}),
        "n_met_either_sign": len(set(told)),
        "n_single_atoms": sum(row["n_atoms"] < 1.5 for row in rows[:10]),
        "n_repeated": len(told) - len(set(told)),
    }  # fmt: skip


def _first(rows: list[dict[str, Any]], name: str) -> int | None:
    return next((k for k, row in enumerate(rows, 1) if name in row["meets"]), None)


def stable_row(sample: str, method: str, asked: StudyOptions) -> dict[str, Any]:
    size, _, half = sample.rpartition(" of ")
    ames = ames_half(half)
    order = np.random.default_rng(0).permutation(len(ames.y))
    chosen = np.sort(order[: int(size)] if size else order)
    return stability(ames.graphs[chosen], ames.y[chosen], asked.n_jobs, asked.device)


# --- planted patterns and Crippen's contributions ---------------------------------------------


def planted_row(seed: int, method: str, asked: StudyOptions) -> dict[str, Any]:
    graphs, y = tl.make_synthetic(20, random_state=seed)
    table = tl.GraphClassifier(depth=3, n_jobs=asked.n_jobs).fit(graphs, y).fragments_
    first = table.iloc[0]
    return {"n": len(y), "first": first["pattern"], "effect": float(first["effect"]),
            "n_rows": len(table)}  # fmt: skip


@cache
def fitted_numbers(
    name: str, n_jobs: int, device: str
) -> tuple[tl.GraphRegressor, tl.GraphCollection]:
    path = data_folder() / "smiles" / f"{name}.csv.gz"
    graphs, values = tl.read_smiles(path, target="value", on_invalid="skip")
    model = tl.GraphRegressor(device=device, n_jobs=n_jobs, random_state=0)
    return model.fit(graphs, values), graphs


def crippen_row(name: str, method: str, asked: StudyOptions) -> dict[str, Any]:
    model, graphs = fitted_numbers(name, asked.n_jobs, asked.device)
    seen = _seen(model, graphs, asked.n_jobs, own_terms=False)
    found = search_fragments(seen, N_SHOWN, max(3, round(0.004 * len(graphs))), seen.forest.depth)
    known = np.concatenate([crippen_contributions(x) for x in graphs.graph_data["smiles"]])
    rows = []
    for f in found:
        logp = mean_over_graphs(seen.balls(f.roots, f.depth) @ known, seen.graph_of_node[f.roots])
        rows.append({
            "pattern": " | ".join(seen.forest.texts(f.patterns)), "support": f.effect.n_graphs,
            "effect": round(f.effect.mean, 4), "error": round(f.effect.error, 4),
            "crippen": round(logp.mean, 4),
            "agrees": bool(logp.mean * f.effect.mean * SIGNS[name] > 0),
        })  # fmt: skip
    return {"n": len(graphs), "rows": rows, "agree": float(np.mean([r["agrees"] for r in rows]))}


def crippen_contributions(smiles: str) -> np.ndarray:
    """What each heavy atom adds to the logarithm of the partition coefficient, its H included."""
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors

    bare = Chem.MolFromSmiles(smiles)
    full = Chem.AddHs(bare)
    all_atoms = [x for x, _ in rdMolDescriptors._CalcCrippenContribs(full)]
    heavy = np.array(all_atoms[: bare.GetNumAtoms()])
    for atom in full.GetAtoms():
        if atom.GetIdx() >= len(heavy):
            heavy[atom.GetNeighbors()[0].GetIdx()] += all_atoms[atom.GetIdx()]
    return heavy
