"""``advise``: replacements, their predicted differences, and the pairs behind them."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Crippen, Descriptors, MolFromSmiles

import treelens as tl
from decisions.conftest import EFFECTS
from treelens.chem.matched_pairs import (
    attachment,
    cuts_of,
    hydrogen_cuts,
    joined,
    matched_pairs,
)
from treelens.decisions.advise import write_advice

LEAD = "c1cc(Br)ccc1CC=O"


@pytest.fixture(scope="module")
def advice(model):
    return tl.advise(model, LEAD, None)


def test_differences_have_the_deviation_of_the_difference(model, advice):
    some = advice.iloc[:: max(1, len(advice) // 7)]
    for row in some.itertuples():
        mean, cov = model.predict([LEAD, row.smiles], return_cov=True, include_noise=False)
        assert row.difference == pytest.approx(mean[1] - mean[0], abs=1e-9)
        variance = cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]
        assert row.std == pytest.approx(np.sqrt(variance), rel=1e-6)
        assert row.std < np.sqrt(cov[0, 0] + cov[1, 1])  # what is common to both cancels
    assert advice["difference"].is_monotonic_decreasing
    fewest = tl.advise(model, LEAD, 3, maximize=False)["difference"]
    assert fewest.tolist() == advice["difference"][::-1].head(3).tolist()


def test_changes_are_those_of_training_pairs(advice, molecules, halves):
    known = {molecules[0][k]: molecules[1][k] for k in halves[0]}
    row = advice[advice["smiles"] == "O=CCc1ccc(F)cc1"].iloc[0]
    assert (row["change"], row["at"]) == ("Br >> F", "c")
    expected = [
        known[smiles.replace("Br", "F")] - value
        for smiles, value in known.items()
        if "Br" in smiles and smiles.replace("Br", "F") in known
    ]
    assert row["n_pairs"] == len(expected) > 1
    assert row["pair_mean"] == pytest.approx(np.mean(expected))
    assert row["difference"] == pytest.approx(EFFECTS["F"] - EFFECTS["Br"], abs=0.4)
    assert not (advice["smiles"] == "O=CCc1ccc(Br)cc1").any()
    assert advice["smiles"].is_unique


def test_weight_and_logp_are_rdkits_and_atom_maps_change_nothing(model, advice):
    row = advice.iloc[0]
    before, after = MolFromSmiles(LEAD), MolFromSmiles(row["smiles"])
    change = Descriptors.MolWt(after) - Descriptors.MolWt(before)
    assert row["weight_change"] == pytest.approx(change, abs=1e-3)
    change = Crippen.MolLogP(after) - Crippen.MolLogP(before)
    assert row["logp_change"] == pytest.approx(change, abs=1e-3)
    mapped = tl.advise(model, "[cH:1]1[cH:2]c([Br:1])ccc1CC=O", None)
    assert set(mapped["change"]) == set(advice["change"])


def test_fewer_pairs_and_smaller_changes_can_be_asked_for(model, advice):
    some = tl.advise(model, LEAD, None, min_pairs=2)
    assert 0 < len(some) < len(advice)
    assert (some["n_pairs"] >= 2).all()
    small = tl.advise(model, LEAD, None, largest_change=1)
    assert set(small["change"]) < set(advice["change"])


def test_a_training_table_takes_the_place_of_kept_molecules(
    model, advice, molecules, halves, tmp_path
):
    path = tmp_path / "known.csv"
    lines = [f"{molecules[0][k]},{molecules[1][k]}" for k in halves[0]]
    path.write_text("\n".join(["smiles,value", *lines]) + "\n")
    table = tl.read_table(path, target="value")
    found = tl.advise(model, LEAD, None, training=table)
    assert found["change"].tolist() == advice["change"].tolist()
    np.testing.assert_allclose(found["pair_mean"], advice["pair_mean"])


def test_measured_molecules_are_named_so(model, molecules, halves):
    measured = tl.advise(model, molecules[0][halves[0][0]], None)["measured"]
    assert measured.any()
    assert not measured.all()


def test_a_class_has_differences_of_decision_values(classifier):
    found = tl.advise(classifier, LEAD, None, wanted="high")
    lead, new = classifier.decision_function([LEAD, found["smiles"].iloc[0]])
    assert found["difference"].iloc[0] == pytest.approx(lead - new)  # high is the first class
    assert found["probability_high"].between(0, 1).all()
    assert found["pair_mean"].between(-1, 1).all()


def test_what_cannot_be_changed_is_an_error(model):
    with pytest.raises(ValueError, match="cannot be read"):
        tl.advise(model, "c1ccccc1(")
    with pytest.raises(ValueError, match="No replacement"):
        tl.advise(model, "[Na+].[Cl-]")
    with pytest.raises(ValueError, match="GraphRegressor"):
        tl.advise(tl.GraphSVC(), LEAD)


@pytest.mark.parametrize(
    "bad",
    [
        {"n": 0},
        {"n": -1},
        {"n": 2.5},
        {"min_pairs": 0},
        {"min_pairs": None},
        {"largest_change": float("nan")},
        {"largest_change": -3},
        {"maximize": "no"},
    ],
)
def test_bad_settings_are_refused(model, bad):
    ((name, _),) = bad.items()
    with pytest.raises(ValueError, match=f"{name} must be "):
        tl.advise(model, LEAD, **bad)


def test_the_page_escapes_what_it_shows(advice, tmp_path):
    some = advice.head(2).assign(change="<script>alert(1)</script>")
    page = write_advice(some, LEAD, tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert page.count("<svg") >= 3


# --- matched pairs ------------------------------------------------------------------------------

SMILES = [
    "Fc1ccccc1",
    "Clc1ccccc1",
    "c1ccccc1",
    "COc1ccc(F)cc1",
    "COc1ccc(Cl)cc1",
    "Oc1ccc(Cl)cc1",
    "CC(=O)Nc1ccc(F)cc1",
    "CC(=O)N(C)c1ccc(F)cc1",
    "C[C@H](N)C(=O)O",
    "C[C@H](N)C(=O)OC",
    "c1ccc2[nH]ccc2c1",
    "Cn1ccc2ccccc12",
    "C1CCNCC1",
    "CN1CCNCC1",
    "[O-][N+](=O)c1ccccc1",
    "CCO",
    "F[C@@H](Cl)Br",
    "O[C@H]1CCC[C@@H]1N",
]


def canonical(smiles):
    return Chem.MolToSmiles(Chem.MolFromSmiles(smiles))


@pytest.mark.parametrize("smiles", SMILES)
def test_the_parts_of_every_cut_make_the_molecule_again(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    cuts = cuts_of(molecule, 20) | hydrogen_cuts(molecule)
    assert cuts
    for constant, variable in cuts:
        assert joined(constant, variable) == canonical(smiles), (constant, variable)


def test_pairs_differ_by_their_change_and_by_nothing_else():
    molecules = [Chem.MolFromSmiles(s) for s in SMILES]
    pairs = list(matched_pairs(molecules))
    found = {(change.text, SMILES[one], SMILES[other]) for change, one, other in pairs}
    assert ("F >> Cl", "COc1ccc(F)cc1", "COc1ccc(Cl)cc1") in found
    assert ("H >> C", "C[C@H](N)C(=O)O", "C[C@H](N)C(=O)OC") in found
    assert ("H >> C", "c1ccc2[nH]ccc2c1", "Cn1ccc2ccccc12") in found
    assert ("H >> [N+](=O)[O-]", "c1ccccc1", "[O-][N+](=O)c1ccccc1") in found
    for change, one, other in pairs:
        cuts = cuts_of(molecules[one], 10) | hydrogen_cuts(molecules[one])
        made = {
            joined(cut.constant, change.after)
            for cut in cuts
            if cut.variable == change.before and attachment(cut.constant)[0] == change.at
        }
        assert canonical(SMILES[other]) in made
    there = {(change.before, change.after, change.at, one, other) for change, one, other in pairs}
    assert there == {(after, before, at, other, one) for before, after, at, one, other in there}
    some = [(x.text, *pair) for x, *pair in matched_pairs(molecules[:5], wanted=["F[*:1]"])]
    assert {pair[1:] for pair in some if pair[0] == "F >> Cl"} == {(0, 1), (3, 4)}
    assert all(text.startswith("F >>") for text, *_ in some)


def test_large_substituents_and_large_molecules_are_not_cut():
    molecule = Chem.MolFromSmiles("c1ccccc1OCCN1CCCCC1")
    assert all(Chem.MolFromSmiles(v).GetNumHeavyAtoms() <= 3 for _, v in cuts_of(molecule, 2))
    assert not cuts_of(Chem.MolFromSmiles("C" * 150), 5)
