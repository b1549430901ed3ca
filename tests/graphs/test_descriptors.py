"""RDKit's descriptors as columns: the numbers that RDKit itself gives, or NaN."""

import numpy as np
import pytest

from treelens.graphs.descriptors import descriptor_names, rdkit_descriptors

Chem = pytest.importorskip("rdkit.Chem")


def test_columns_are_those_asked_for_in_their_order() -> None:
    from rdkit.Chem import Crippen
    from rdkit.Chem.Descriptors import MolWt

    molecules = [Chem.MolFromSmiles(text) for text in ("CCO", "c1ccccc1")]
    found = rdkit_descriptors(molecules, ["MolLogP", "MolWt"])
    expected = [[Crippen.MolLogP(m), MolWt(m)] for m in molecules]
    np.testing.assert_array_equal(found, expected)


def test_all_of_them_by_default() -> None:
    found = rdkit_descriptors([Chem.MolFromSmiles("CCO")])
    names = descriptor_names()
    assert found.shape == (1, len(names))
    assert len(set(names)) == len(names) > 100
    assert found[0, names.index("HeavyAtomCount")] == 3


@pytest.mark.parametrize("given", [np.inf, -np.inf, 2e12, -2e12, ValueError, ZeroDivisionError])
def test_what_is_no_number_is_missing(given, monkeypatch) -> None:
    from rdkit.Chem import Descriptors

    def strange(molecule) -> float:
        if isinstance(given, float):
            return given
        raise given

    monkeypatch.setattr(Descriptors, "_descList", [("strange", strange), ("one", lambda m: 1)])
    found = rdkit_descriptors([Chem.MolFromSmiles("C")])
    assert np.isnan(found[0, 0])
    assert found[0, 1] == 1.0
