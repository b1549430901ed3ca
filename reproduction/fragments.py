"""Do fragments name known groups? Toxicophores, planted patterns, Crippen signs, refits.

Mutagens: which of the eight approved classes of toxicophores (Kazius, McGuire and Bursi, J. Med.
Chem. 48, 2005) the first fragments meet, beside the environments of an ECFP4 forest.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import treelens as tl
from reproduction.data import StudyOptions, data_folder
from reproduction.explained_models import TreeShap

KEY = ("part", "sample", "method")
SAMPLES = ("half 1", "half 2")
WHOLE = "all molecules"
N_FIRST, N_SHOWN, N_TOP = 25, 40, 10
INSIDE = 0.6  # of a fragment's atoms must belong to a match
SAME = 0.5  # shared part of all the atoms that two fragments cover
MIN_SUPPORT, MOST_COUNTED, MOST_MOLECULES = 12, 60, 60  # of the forest's bits
N_TREES, N_REFITS = 200, 10
SIZES = (800, 2000)  # of the samples that models are refitted to
NO_DESCRIPTORS = "fragments, no descriptors"
SIGNS = {"ESOL": -1.0, "Lipophilicity": 1.0}  # what is lipophilic dissolves badly
BY_SHAP = "ECFP4 forest by SHAP"
METHODS = ("fragments", "ECFP4 forest", BY_SHAP)

# The eight approved classes, written down anew as SMARTS.
CLASSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "aromatic nitro": ("a[N+](=O)[O-]",),
        "aromatic amine": ("a[NX3;H2,H1;!$(N-C=[O,S]);!$(NS(=O)=O);!$(N[!#6;!#1])]",),
        "three-membered heterocycle": ("[#6]1O[#6]1", "[#6]1N[#6]1"),
        "nitroso": ("a[NX2]=O", "[NX3][NX2]=O"),
        "unsubstituted heteroatom-heteroatom": ("[OX2H,NX3H2;!$([OX2H]S);!$([OX2H]P)][#7,#8]",),
        "azo": ("[#6][NX2]=[NX2][#6]",),
        "aliphatic halide": ("[CX4][Cl,Br,I]",),
        "polycyclic aromatic": (
            "a1aaa2a(a1)aaa1aaaaa12",
            "a1aaa2aa3aaaaa3aa2a1",
            "a1aaa2a(a1)aa1aaaaa12",
        ),
    }
)


class Ames(NamedTuple):
    """A part of the set: molecules, classes, and the atoms of each toxicophore by molecule."""

    graphs: tl.GraphCollection
    molecules: list[Any]
    y: np.ndarray
    inside: dict[str, list[set[int]]]


def run(options: StudyOptions) -> None:
    """Make the rows that are missing."""
    wanted: list[tuple[str, Any, str, Any]] = [
        *(("Ames", sample, method, ames_row) for sample in SAMPLES for method in METHODS),
        ("Ames", WHOLE, "fragments", ames_row),
        *(("planted", seed, "fragments", planted_row) for seed in range(10)),
        *(
            ("Crippen", name, method, crippen_row)
            for name in SIGNS
            for method in ("fragments", NO_DESCRIPTORS)
        ),
        *(
            ("stability", f"{size} of {sample}", "fragments", stable_row)
            for size in SIZES
            for sample in SAMPLES
        ),
        ("stability", WHOLE, "fragments", stable_row),
    ]
    with options.rows("fragments", KEY) as rows:
        for part, sample, method, make in wanted:
            skipped = options.sets and part not in options.sets
            if not skipped and (not options.methods or method in options.methods):
                key = {"part": part, "sample": sample, "method": method}
                rows.add(key, make, sample, method, options)


# --- mutagens ---------------------------------------------------------------------------------


@cache
def ames_part(sample: str) -> Ames:
    """Return all molecules, or one of two halves that share none."""
    from rdkit import Chem

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # six SMILES cannot be parsed
        path = data_folder() / "smiles" / "Ames_Hansen2009.csv.gz"
        graphs, y = tl.read_smiles(path, on_invalid="skip")
    order = np.random.default_rng(0).permutation(len(y))
    half = len(y) // 2
    parts = {WHOLE: order, "half 1": order[:half][:3000], "half 2": order[half:]}
    chosen = np.sort(parts[sample])
    molecules = [Chem.MolFromSmiles(graphs.graph_data["smiles"][k]) for k in chosen.tolist()]
    inside = {name: [covered(m, smarts) for m in molecules] for name, smarts in CLASSES.items()}
    return Ames(graphs[chosen], molecules, np.asarray(y)[chosen], inside)


@cache
def _query(smarts: str) -> Any:
    from rdkit import Chem

    return Chem.MolFromSmarts(smarts)


def _matches(molecule: Any, smarts: str) -> list[tuple[int, ...]]:
    return list(molecule.GetSubstructMatches(_query(smarts)))


def covered(molecule: Any, smarts: Iterable[str]) -> set[int]:
    """Return the atoms of a molecule that belong to a match."""
    return {atom for query in smarts for match in _matches(molecule, query) for atom in match}


@cache
def fitted(sample: str, n_jobs: int) -> tl.GraphClassifier:
    """Return a model of one part of the set."""
    ames = ames_part(sample)
    model = tl.GraphClassifier(n_jobs=n_jobs, random_state=0)
    return model.fit(ames.graphs, ames.y)


def ames_row(sample: str, method: str, options: StudyOptions) -> dict[str, Any]:
    """Return the first fragments of a method with the classes they meet."""
    ames = ames_part(sample)
    if method == "fragments":
        table = fitted(sample, options.n_jobs).fragments_.head(N_SHOWN)
        columns = ["pattern", "name", "smarts", "effect", "error", "support"]
        found = table[columns].to_dict("records")
    else:
        found = forest_environments(ames, by_shap=method == BY_SHAP)[:N_SHOWN]
    rows = [_judged(fragment, ames) for fragment in found]
    return {"n": len(ames.y), "rows": rows, **summary(rows)}


def _judged(fragment: dict[str, Any], ames: Ames) -> dict[str, Any]:
    """Return a fragment with the classes that hold at least 60 % of the atoms of its matches."""
    places = fragment.pop("places", None) or [
        (k, match)
        for k, molecule in enumerate(ames.molecules)
        for match in (_matches(molecule, fragment["smarts"]) if fragment.get("smarts") else ())
    ]
    shares = {
        name: float(np.mean([len(held[k].intersection(atoms)) / len(atoms) for k, atoms in places]))
        for name, held in ames.inside.items()
        if places
    }
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in fragment.items()}
    size = float(np.mean([len(atoms) for _, atoms in places])) if places else 0.0
    met = [name for name, share in shares.items() if share >= INSIDE]
    return {**rounded, "n_atoms": round(size, 2), "meets": met}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return where each class is met first by a fragment with a positive effect."""
    met = [row["meets"] for row in rows if row["effect"] > 0]
    return {
        "met_at": {
            name: next((k for k, classes in enumerate(met, 1) if name in classes), None)
            for name in CLASSES
        },
        "n_met": len({name for classes in met[:N_FIRST] for name in classes}),
    }


def forest_environments(ames: Ames, by_shap: bool = False) -> list[dict[str, Any]]:
    """Return ECFP4 bits in the order of their effect on probabilities of held-out molecules."""
    # The effect is what switching a bit off changes, or its SHAP value. Two forests predict the
    # half that they were not fitted to; the order is effect times the square root of support.
    from sklearn.ensemble import RandomForestClassifier

    bits, places = _fingerprints(ames.molecules)
    frequent = np.flatnonzero(bits.sum(axis=0) >= MIN_SUPPORT)
    change: dict[int, list[float]] = {}
    part = np.random.default_rng(0).permutation(len(ames.y)) % 2
    for held_out in (0, 1):
        train, rows = bits[part != held_out], bits[part == held_out]
        forest = RandomForestClassifier(N_TREES, n_jobs=2, random_state=0)
        forest.fit(train, ames.y[part != held_out])
        changes = _shap_values if by_shap else _switched_off
        for bit, values in changes(forest, train, rows, frequent):
            change.setdefault(bit, []).extend(values.tolist())
    found = []
    for bit, values in change.items():
        effect, support = float(np.mean(values)), int(bits[:, bit].sum())
        error = float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0
        found.append(
            {
                "pattern": f"bit {bit}",
                "effect": effect,
                "error": error,
                "support": support,
                "places": places[bit],
            }
        )
    return sorted(found, key=lambda r: -abs(r["effect"]) * min(r["support"], MOST_COUNTED) ** 0.5)


def _switched_off(
    forest: Any, train: np.ndarray, rows: np.ndarray, frequent: np.ndarray
) -> Iterator[tuple[int, np.ndarray]]:
    before = forest.predict_proba(rows)[:, 1]
    for bit in frequent.tolist():
        holding = np.flatnonzero(rows[:, bit])[: MOST_MOLECULES // 2]
        if len(holding):
            without = rows[holding].copy()
            without[:, bit] = 0
            yield bit, before[holding] - forest.predict_proba(without)[:, 1]


def _shap_values(
    forest: Any, train: np.ndarray, rows: np.ndarray, frequent: np.ndarray
) -> Iterator[tuple[int, np.ndarray]]:
    worth = TreeShap(forest, train).of(rows)  # (n_molecules, n_bits)
    for bit in frequent.tolist():
        holding = rows[:, bit] > 0
        if holding.any():
            yield bit, worth[holding, bit]


def _fingerprints(molecules: list[Any]) -> tuple[np.ndarray, dict[int, list[Any]]]:
    """Return ECFP4 bits, and for each bit the molecules and atoms of its environments."""
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    bits, places = [], {}
    for k, molecule in enumerate(molecules):
        output = rdFingerprintGenerator.AdditionalOutput()
        output.AllocateBitInfoMap()
        bits.append(generator.GetFingerprintAsNumPy(molecule, additionalOutput=output))
        near = Chem.GetDistanceMatrix(molecule)
        for bit, found in output.GetBitInfoMap().items():
            for atom, radius in found:
                atoms = tuple(np.flatnonzero(near[atom] <= radius).tolist())
                places.setdefault(bit, []).append((k, atoms))
    return np.array(bits), places


# --- planted patterns, Crippen's contributions, refits ------------------------------------------


def planted_row(seed: int, method: str, options: StudyOptions) -> dict[str, Any]:
    """Return the first fragment of a synthetic set with a planted pattern."""
    graphs, y = tl.make_synthetic(20, random_state=seed)
    table = tl.GraphClassifier(depth=3, n_jobs=options.n_jobs).fit(graphs, y).fragments_
    return {"n": len(y), "first": table.iloc[0]["pattern"], "n_rows": len(table)}


def crippen_row(name: str, method: str, options: StudyOptions) -> dict[str, Any]:
    """Return whether the signs of effects agree with Crippen's contributions of the same atoms."""
    from rdkit import Chem

    path = data_folder() / "smiles" / f"{name}.csv.gz"
    graphs, values = tl.read_smiles(path, target="value", on_invalid="skip")
    descriptors = False if method == NO_DESCRIPTORS else "auto"
    model = tl.GraphRegressor(descriptors=descriptors, n_jobs=options.n_jobs, random_state=0)
    table = model.fit(graphs, values).fragments_.head(N_SHOWN)
    molecules = [Chem.MolFromSmiles(x) for x in graphs.graph_data["smiles"]]
    known = [crippen_contributions(molecule) for molecule in molecules]
    rows = []
    for fragment in table[["pattern", "smarts", "effect", "support"]].to_dict("records"):
        sums = [
            np.mean([share[list(match)].sum() for match in matches])
            for molecule, share in zip(molecules, known, strict=True)
            if (matches := _matches(molecule, fragment["smarts"]))
        ]
        agrees = bool(np.mean(sums) * fragment["effect"] * SIGNS[name] > 0)
        rows.append({**fragment, "crippen": round(float(np.mean(sums)), 4), "agrees": agrees})
    return {"n": len(graphs), "rows": rows, "agree": float(np.mean([r["agrees"] for r in rows]))}


def crippen_contributions(molecule: Any) -> np.ndarray:
    """Return what each heavy atom adds to logP, its hydrogens included."""
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors

    full = Chem.AddHs(molecule)
    every = [x for x, _ in rdMolDescriptors._CalcCrippenContribs(full)]
    heavy = np.array(every[: molecule.GetNumAtoms()])
    for atom in full.GetAtoms():
        if atom.GetIdx() >= len(heavy):
            heavy[atom.GetNeighbors()[0].GetIdx()] += every[atom.GetIdx()]
    return heavy


def stable_row(sample: str, method: str, options: StudyOptions) -> dict[str, Any]:
    """Return which share of the first ten fragments comes back in refits to bootstrap samples."""
    size, _, half = sample.rpartition(" of ")
    ames = ames_part(half)
    order = np.random.default_rng(0).permutation(len(ames.y))
    chosen = np.sort(order[: int(size)] if size else order)
    graphs, y = ames.graphs[chosen], ames.y[chosen]
    molecules = [ames.molecules[k] for k in chosen.tolist()]

    def top(drawn: np.ndarray, weights: np.ndarray | None) -> list[set[tuple[int, int]]]:
        model = tl.GraphClassifier(n_jobs=options.n_jobs, random_state=0)
        table = model.fit(graphs[drawn], y[drawn], weights).fragments_.head(N_TOP)
        return [_covered(molecules, row) for row in table.to_dict("records")]

    whole, rng, overlaps = top(np.arange(len(y)), None), np.random.default_rng(0), []
    for _ in range(options.repeats or N_REFITS):
        drawn, times = np.unique(rng.integers(len(y), size=len(y)), return_counts=True)
        again = top(drawn, times.astype(float))
        overlaps.append(sum(any(same(a, b) for b in again) for a in whole) / len(whole))
    return {"n": len(y), "overlaps": overlaps, "mean_overlap": float(np.mean(overlaps))}


def _covered(molecules: list[Any], fragment: Mapping[str, Any]) -> set[tuple[int, int]]:
    """Return the atoms that a fragment covers; molecules count from 1, negative with the effect."""
    sign = 1 if fragment["effect"] > 0 else -1
    return {
        (sign * k, atom)
        for k, molecule in enumerate(molecules, 1)
        for atom in covered(molecule, [fragment["smarts"]])
    }


def same(one: set[tuple[int, int]], other: set[tuple[int, int]]) -> bool:
    """Return whether two fragments cover mostly the same atoms with the same sign."""
    return len(one & other) > SAME * len(one | other)
