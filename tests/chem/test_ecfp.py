"""Fingerprints and their Tanimoto similarity against RDKit's and their definitions."""

import numpy as np
import pytest
from scipy import sparse

from treelens.chem.ecfp import fingerprint_counts, folded_counts
from treelens.chem.parsing import parsed_smiles
from treelens.kernels.gram import tanimoto_matrix

pytest.importorskip("rdkit")
SMILES = ["CCO", "CCN", "c1ccccc1O", "c1ccccc1CCN", "CC(=O)Oc1ccccc1C(=O)O", "[Na+].[Cl-]"]


@pytest.mark.parametrize("bits", [True, False])
@pytest.mark.parametrize("folded", [True, False])
def test_similarities_are_those_of_rdkit(bits, folded):
    from rdkit import DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    molecules = parsed_smiles(SMILES)
    counts = sparse.csr_array(folded_counts(molecules)) if folded else fingerprint_counts(molecules)
    ours = tanimoto_matrix((counts > 0).astype(float) if bits else counts)
    generator = rdFingerprintGenerator.GetMorganGenerator(2, fpSize=2048)
    if folded:
        make = generator.GetFingerprint if bits else generator.GetCountFingerprint
    else:
        make = generator.GetSparseFingerprint if bits else generator.GetSparseCountFingerprint
    prints = [make(molecule) for molecule in molecules]
    expected = [[DataStructs.TanimotoSimilarity(a, b) for b in prints] for a in prints]
    np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_tanimoto_of_counts_by_its_definition():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 4, (6, 8)), rng.integers(0, 4, (5, 8))
    left[:, 0] = right[:, 0] = 1  # nobody is empty
    lower = np.minimum(left[:, None], right[None]).sum(axis=2)
    upper = np.maximum(left[:, None], right[None]).sum(axis=2)
    ours = tanimoto_matrix(sparse.csr_array(left), sparse.csr_array(right), n_jobs=2)
    np.testing.assert_allclose(ours, lower / upper)
