"""What others would call the important fragments."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.fragment_rivals import _fingerprints, forest_environments

import treelens as tl

pytest.importorskip("rdkit")
TAILS = ["C" * k for k in range(1, 13)]
SMILES = [f"{t}c1ccc([N+](=O)[O-])cc1" for t in TAILS] + [f"{t}CCc1ccccc1O" for t in TAILS]
Y = np.repeat([1, 0], 12)


@pytest.mark.parametrize("by_shap", [False, True], ids=["switched off", "SHAP"])
def test_bits_of_one_class_speak_for_it(by_shap):
    if by_shap:
        pytest.importorskip("shap", reason="needs shap: pip install -e '.[studies]'")
    graphs = tl.as_graph_collection(SMILES)
    bits, places = _fingerprints(graphs)
    found = forest_environments(graphs, Y, 6, by_shap)
    frequent = set(np.flatnonzero(bits.sum(axis=0) >= 6).tolist())
    assert {int(row["pattern"].removeprefix("bit ")) for row in found} == frequent
    for row in found[:5]:
        bit = int(row["pattern"].removeprefix("bit "))
        toward = Y[bits[:, bit] > 0].mean()
        assert np.sign(row["effect"]) == np.sign(toward - 0.5)
        assert row["support"] == (bits[:, bit] > 0).sum()
        assert row["atoms"].shape == (len(places[bit]), graphs.n_nodes)
    worth = [abs(row["effect"]) * np.sqrt(row["support"]) for row in found]
    assert worth == sorted(worth, reverse=True)
