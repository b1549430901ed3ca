"""What others would call the important fragments: an ECFP4 forest, and a sparse linear model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

import treelens as tl
from reproduction.tree_shap import TreeShap
from treelens.explain.fragment_search import ExplainedGraphs, find_candidates

N_TREES = 200
MOST_MOLECULES = 60  # that a bit is switched off in
SPARSITY = 0.1  # the C of the L1 logistic regression
MOST_COUNTED = 60  # molecules beyond these do not move a row of a rival up


def forest_environments(
    graphs: tl.GraphCollection, y: np.ndarray, min_support: int, by_shap: bool = False
) -> list[dict[str, Any]]:
    """Bits by what they do to the predicted probability of molecules held out.

    That is what switching one off changes, or its SHAP values where molecules have it. Two forests,
    each asked about the half that it was not fitted to. The order is that of the fragments: the
    mean change times the square root of the support.
    """
    bits, places = _fingerprints(graphs)
    frequent = np.flatnonzero(bits.sum(axis=0) >= min_support)
    changes = _shap_values if by_shap else _switched_off
    change: dict[int, list[float]] = {}
    part = np.random.default_rng(0).permutation(len(y)) % 2
    for held_out in (0, 1):
        train, rows = bits[part != held_out], bits[part == held_out]
        forest = _forest().fit(train, y[part != held_out])
        for bit, found in changes(forest, train, rows, frequent):
            change.setdefault(bit, []).extend(found.tolist())
    found = [_bit_row(bit, np.array(x), bits, places, graphs.n_nodes) for bit, x in change.items()]
    return sorted(found, key=lambda row: -abs(row.pop("order")))


def _switched_off(
    forest: Any, train: np.ndarray, rows: np.ndarray, frequent: np.ndarray
) -> Iterator[tuple[int, np.ndarray]]:
    """Each bit with what it changes in the first molecules that have it."""
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
    """Each bit with its SHAP values in all molecules that have it."""
    worth = TreeShap(forest, train).of(rows)  # (n_molecules, n_bits)
    for bit in frequent.tolist():
        holding = rows[:, bit] > 0
        if holding.any():
            yield bit, worth[holding, bit]


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(N_TREES, n_jobs=2, random_state=0)


def _bit_row(
    bit: int, change: np.ndarray, bits: np.ndarray, places: dict[int, list[Any]], n_nodes: int
) -> dict[str, Any]:
    support = int(bits[:, bit].sum())
    atoms = places[bit]
    owner = np.repeat(np.arange(len(atoms)), [len(x) for x in atoms])
    held = sparse.csr_array(
        (np.ones(len(owner), dtype=np.int8), (owner, np.concatenate(atoms))),
        shape=(len(atoms), n_nodes),
    )
    return {
        "pattern": f"bit {bit}", "effect": float(change.mean()),
        "error": float(change.std(ddof=1) / np.sqrt(len(change))) if len(change) > 1 else 0.0,
        "support": support, "atoms": held,
        "order": float(change.mean()) * np.sqrt(min(support, MOST_COUNTED)),
    }  # fmt: skip


def _fingerprints(graphs: tl.GraphCollection) -> tuple[np.ndarray, dict[int, list[Any]]]:
    """ECFP4 bits of every molecule, and for each bit the nodes of its environments."""
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    bits, places = [], {}
    for start, smiles in zip(graphs.node_offsets, graphs.graph_data["smiles"], strict=False):
        molecule = Chem.MolFromSmiles(smiles)
        output = rdFingerprintGenerator.AdditionalOutput()
        output.AllocateBitInfoMap()
        bits.append(generator.GetFingerprintAsNumPy(molecule, additionalOutput=output))
        for bit, found in output.GetBitInfoMap().items():
            for atom, radius in found:
                atoms = {atom}
                if radius:
                    for k in Chem.FindAtomEnvironmentOfRadiusN(molecule, radius, atom):
                        bond = molecule.GetBondWithIdx(k)
                        atoms |= {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()}
                places.setdefault(bit, []).append(start + np.array(sorted(atoms)))
    return np.array(bits), places


def sparse_patterns(seen: ExplainedGraphs, y: np.ndarray, min_support: int) -> list[dict[str, Any]]:
    """Patterns by the coefficients of an L1 logistic regression on their presence."""
    from sklearn.linear_model import LogisticRegression

    depths = range(1, seen.forest.depth + 1)
    patterns = np.concatenate([find_candidates(seen, min_support, d) for d in depths])
    columns = np.zeros((len(seen.graphs), len(patterns)), dtype=np.float32)
    for k, pattern in enumerate(patterns.tolist()):
        columns[seen.graph_of_node[seen.carriers(pattern)], k] = 1.0
    fit = LogisticRegression(penalty="l1", C=SPARSITY, solver="liblinear", random_state=0)
    weights = fit.fit(columns, y).coef_[0]
    support = columns.sum(axis=0)
    known = np.minimum(support, MOST_COUNTED)
    order = np.argsort(-np.abs(weights) * np.sqrt(known), kind="stable")
    return [
        {
            "pattern": seen.forest.texts([patterns[k]])[0], "effect": float(weights[k]),
            "error": 0.0, "support": int(support[k]),
            "atoms": seen.balls(seen.carriers(int(patterns[k])), seen.depth_of(int(patterns[k]))),
        }
        for k in order[:60].tolist()
        if weights[k] != 0.0
    ]  # fmt: skip
