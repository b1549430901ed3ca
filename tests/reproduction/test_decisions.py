"""The studies of decisions on small sets: what they count, and what they may not see."""

import numpy as np
import pytest

pytest.importorskip("rdkit")

from reproduction.data import Molecules
from reproduction.decisions import held_out_pairs
from reproduction.tables.decisions import mean_differences

from decisions.conftest import ENDS, OTHERS, benzene, value_of
from reproduction import decisions
from treelens.chem.molecules import smiles_to_collection

PAIRS = [(end, other) for end in ENDS for other in OTHERS]


@pytest.fixture(scope="module")
def data():
    smiles = [benzene(*pair) for pair in PAIRS]
    return Molecules(smiles_to_collection(smiles), smiles, np.array([value_of(*p) for p in PAIRS]))


@pytest.mark.parametrize("method", ["random", "expected_improvement", "ecfp_gp", "ecfp_forest"])
def test_a_campaign_measures_new_molecules_until_all_of_the_best_are_found(
    data, method, monkeypatch
):
    for name, value in (("N_START", 20), ("N_BATCH", 11), ("TOP", 0.1)):
        monkeypatch.setattr(decisions, name, value)
    row = decisions.campaign(data, method, 0, 1, n_rounds=4)
    assert row["n_best"] == 6
    assert len(row["found"]) == 5
    assert (np.diff(row["found"]) >= 0).all()
    assert row["found"][-1] == 1.0  # 20 and four times 11 are all of the 64


def test_expected_differences_come_from_training_pairs_only(data):
    train, test = np.arange(0, 64, 2), np.arange(1, 64, 2)
    pairs = held_out_pairs(data.graphs, data.values, train, test)
    assert len(pairs["one"]) > 20
    changed = data.values.copy()
    changed[test] += np.random.default_rng(0).normal(size=len(test))
    again = held_out_pairs(data.graphs, changed, train, test)
    np.testing.assert_array_equal(pairs["expected"], again["expected"])
    known = ~np.isnan(pairs["expected"])
    assert known.any()
    measured = data.values[test][pairs["other"]] - data.values[test][pairs["one"]]
    np.testing.assert_allclose(pairs["expected"][known], measured[known], atol=1e-9)  # additive


def test_differences_are_paired_by_start():
    rows = [
        {
            "set": name,
            "method": method,
            "seed": seed,
            "found": [0.0, 0.1 * seed + gain],
            "n": 100,
            "n_best": 2,
        }
        for name in ("ESOL", "Lipophilicity")
        for method, gain in (
            ("expected_improvement", 0.2),
            ("greedy", 0.1),
            ("ecfp_gp", 0.15),
            ("ecfp_forest", 0.05),
            ("random", 0.0),
        )
        for seed in (0, 1, 2)
    ]
    mean, error = mean_differences(rows, ["ESOL", "Lipophilicity"], "greedy")
    assert (mean, error) == (pytest.approx(10.0), pytest.approx(0.0, abs=1e-9))
