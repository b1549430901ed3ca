"""Circular fingerprints (ECFP) of the molecules behind graphs, and their Tanimoto similarity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.kernels.gram import pair_sums
from treelens.kernels.normalize import normalize_kernel
from treelens.patterns.histograms import SparseRows
from treelens.patterns.pairs import PairFeatures


def molecules_behind(graphs: GraphCollection) -> list[Any]:
    """The RDKit molecules that graphs were read from."""
    data = graphs.graph_data
    if "mol" in data:
        return list(data["mol"])
    if "smiles" in data:
        return parsed_smiles(list(data["smiles"]))
    raise GraphDataError(
        "These graphs were not read from molecules, so they have no scaffolds and no fingerprints: "
        "read them with read_smiles, or use random folds and graph kernels."
    )


def parsed_smiles(smiles: Sequence[str]) -> list[Any]:
    """Molecules of valid SMILES, without the warnings of RDKit."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        return [Chem.MolFromSmiles(text) for text in smiles]


def canonical_smiles(graphs: GraphCollection) -> np.ndarray:
    """Canonical SMILES, shape (n_graphs,)."""
    from rdkit import Chem

    return np.array([Chem.MolToSmiles(molecule) for molecule in molecules_behind(graphs)])


def fingerprint_counts(molecules: Sequence[Any], radius: int = 2) -> sparse.csr_array:
    """Unfolded counts of circular environments, shape (n_molecules, n_environments).

    Radius 2 is ECFP4, 3 is ECFP6. The columns are in the order in which environments are met.

    Examples
    --------
    >>> fingerprint_counts(parsed_smiles(["CCC", "CCCC"]), radius=0).toarray().tolist()
    [[1.0, 2.0], [2.0, 2.0]]
    """
    from rdkit import rdBase
    from rdkit.Chem import rdFingerprintGenerator

    make = rdFingerprintGenerator.GetMorganGenerator(radius=radius)
    columns: dict[int, int] = {}
    rows: list[int] = [0]
    indices: list[int] = []
    counts: list[int] = []
    with rdBase.BlockLogs():
        for molecule in molecules:
            found = make.GetSparseCountFingerprint(molecule).GetNonzeroElements()
            indices += [columns.setdefault(bit, len(columns)) for bit in found]
            counts += list(found.values())
            rows.append(len(indices))
    table = sparse.csr_array(
        (np.array(counts, float), np.array(indices, np.int32), np.array(rows, np.int64)),
        shape=(len(molecules), len(columns)),
    )
    table.sort_indices()
    return table


def folded_counts(molecules: Sequence[Any], radius: int = 2, size: int = 2048) -> np.ndarray:
    """Counts folded to a fixed length, shape (n_molecules, size)."""
    from rdkit import rdBase
    from rdkit.Chem import rdFingerprintGenerator

    make = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=size)
    with rdBase.BlockLogs():
        rows = [make.GetCountFingerprintAsNumPy(molecule) for molecule in molecules]
    return np.array(rows, dtype=np.int64).reshape(-1, size)


def presence(counts: Any) -> Any:
    """Counts as bits, in an array of the same kind."""
    return (counts > 0).astype(counts.dtype)


def tanimoto_matrix(
    left: sparse.csr_array, right: sparse.csr_array | None = None, n_jobs: int = 1
) -> np.ndarray:
    """Tanimoto (min-max) similarities of counts, or of bits, shape (n_left, n_right).

    Examples
    --------
    >>> tanimoto_matrix(sparse.csr_array(np.array([[2.0, 1.0], [1.0, 0.0]]))).round(3).tolist()
    [[1.0, 0.333], [0.333, 1.0]]
    """
    rows, columns = _pairs_of(left), _pairs_of(left if right is None else right)
    sums = pair_sums(rows, columns, n_jobs=n_jobs)
    return normalize_kernel(sums, rows.diagonal(), columns.diagonal(), "tanimoto")


def _pairs_of(table: sparse.csr_array) -> PairFeatures:
    rows = SparseRows(
        table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data.astype(float)
    )
    n, width = table.shape
    return PairFeatures(rows.transposed(width), rows, np.array([0, width]), True, np.ones(n))
