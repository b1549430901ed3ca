"""``advise``: replacements, their predicted differences, and the pairs behind them."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Crippen, Descriptors, MolFromSmiles
from scipy.stats import norm

import treelens as tl
from decisions.conftest import EFFECTS
from treelens.chem.matched_pairs import (
    attachment,
    cuts_of,
    hydrogen_cuts,
    joined,
    matched_pairs,
)
from treelens.chem.molecules import smiles_to_collection
from treelens.chem.scans import scans
from treelens.decisions.advice_page import write_advice

LEAD = "c1cc(Br)ccc1CC=O"


@pytest.fixture(scope="module")
def advice(model):
    return tl.advise(model, LEAD, None, only_better=False)


def test_differences_have_the_deviation_of_the_difference(model, advice):
    some = advice.iloc[:: max(1, len(advice) // 5)]
    for row in some.itertuples():
        mean, cov = model.predict([LEAD, row.smiles], return_cov=True, include_noise=False)
        assert row.difference == pytest.approx(mean[1] - mean[0], abs=1e-9)
        variance = cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]
        assert row.std == pytest.approx(np.sqrt(variance), rel=1e-6)
        assert row.std < np.sqrt(cov[0, 0] + cov[1, 1])  # what is common to both cancels
        assert row.probability_better == pytest.approx(norm.cdf(row.difference / row.std))


def test_rows_that_help_come_by_the_probability_to_be_better(model, advice):
    assert advice["probability_better"].is_monotonic_decreasing
    better = tl.advise(model, LEAD, None)
    n = len(better)
    assert 0 < n < len(advice)
    assert (better["probability_better"] > 0.5).all()
    assert better["smiles"].tolist() == advice["smiles"].head(n).tolist()
    lower = tl.advise(model, LEAD, None, maximize=False)
    assert lower["smiles"].tolist() == advice["smiles"][::-1].head(len(advice) - n).tolist()
    assert (lower["difference"] < 0).all()


def test_the_lead_has_its_prediction_and_its_measurement(model, advice, molecules, halves):
    lead = advice.attrs["lead"]
    (end,) = lead["endpoints"]
    known = model.predict_table([LEAD]).iloc[0]
    for name in ("prediction", "lower_90", "upper_90", "in_domain"):
        assert end[name] == pytest.approx(known[name])
    assert end["measured"] is lead["name"] is None
    one = halves[0][0]
    lead = tl.advise(model, molecules[0][one], 1).attrs["lead"]
    assert float(lead["endpoints"][0]["measured"]) == pytest.approx(molecules[1][one], rel=1e-3)


def test_changes_are_those_of_training_pairs(advice, molecules, halves):
    known = {molecules[0][k]: molecules[1][k] for k in halves[0]}
    row = advice[advice["smiles"] == "O=CCc1ccc(F)cc1"].iloc[0]
    assert (row["change"], row["at"], row["source"]) == ("Br >> F", "*c(cc)cc", "pairs")
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
    mapped = tl.advise(model, "[cH:1]1[cH:2]c([Br:1])ccc1CC=O", None, only_better=False)
    assert set(mapped["change"]) == set(advice["change"])


def test_fewer_pairs_and_smaller_changes_can_be_asked_for(model, advice):
    every = {"only_better": False}
    assert ((advice["n_pairs"] == 0) == (advice["source"] == "scan")).all()
    some = tl.advise(model, LEAD, None, min_pairs=4, **every)
    assert 0 < (some["source"] == "pairs").sum() < (advice["source"] == "pairs").sum()
    assert (some.loc[some["source"] == "pairs", "n_pairs"] >= 4).all()
    assert set(some["source"]) == {"pairs", "scan"}
    mined = tl.advise(model, LEAD, None, scans=False, **every)
    assert mined["smiles"].tolist() == advice.loc[advice["source"] == "pairs", "smiles"].tolist()
    small = tl.advise(model, LEAD, None, largest_change=1, **every)
    assert set(small["change"]) < set(advice["change"])


def test_a_training_table_takes_the_place_of_kept_molecules(
    model, advice, molecules, halves, tmp_path
):
    path = tmp_path / "known.csv"
    lines = [f"{molecules[0][k]},{molecules[1][k]}" for k in halves[0]]
    path.write_text("\n".join(["smiles,value", *lines]) + "\n")
    table = tl.read_table(path, target="value")
    found = tl.advise(model, LEAD, None, training=table, only_better=False)
    assert found["change"].tolist() == advice["change"].tolist()
    np.testing.assert_allclose(found["pair_mean"], advice["pair_mean"])


def test_measured_molecules_are_named_so(model, molecules, halves):
    lead = molecules[0][halves[0][0]]
    measured = tl.advise(model, lead, None, only_better=False)["measured"]
    assert measured.any()
    assert not measured.all()


def test_a_class_has_differences_of_decision_values(classifier):
    found = tl.advise(classifier, LEAD, None, wanted="high")
    lead, new = classifier.decision_function([LEAD, found["smiles"].iloc[0]])
    assert found["difference"].iloc[0] == pytest.approx(lead - new)  # high is the first class
    assert found["probability_high"].between(0, 1).all()
    assert found["pair_mean"].dropna().between(-1, 1).all()


def test_what_cannot_be_changed_is_an_error(model):
    with pytest.raises(ValueError, match="cannot be read"):
        tl.advise(model, "c1ccccc1(")
    with pytest.raises(ValueError, match="No change"):
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
        {"only_better": 1},
    ],
)
def test_bad_settings_are_refused(model, bad):
    ((name, _),) = bad.items()
    with pytest.raises(ValueError, match=f"{name} must be "):
        tl.advise(model, LEAD, **bad)


def test_the_page_escapes_what_it_shows(advice, tmp_path):
    some = advice.head(2).assign(change="<script>alert(1)</script>")
    page = write_advice(some, tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert page.count("<svg") >= 3


def test_a_pair_at_a_limit_is_no_support(molecules, halves):
    some = halves[0]
    smiles, values = [molecules[0][k] for k in some], molecules[1][some]
    limited = np.array(["Br" in text for text in smiles])
    y = tl.Targets(values, limits=np.where(limited, "<", "="))
    found = tl.GraphRegressor(depth=1, descriptors=False).fit(smiles, y)
    advice = tl.advise(found, LEAD, None, only_better=False)
    assert not advice["change"].str.startswith("Br").any()
    lead = tl.advise(found, smiles[int(np.argmax(limited))], 1).attrs["lead"]
    assert lead["endpoints"][0]["measured"].startswith("<")


def test_a_change_is_made_only_where_two_bonds_around_it_are_the_same(model):
    """An oxetane that was seen on a phenol is not offered on the CH2 of a ring."""
    smiles = ["Oc1ccccc1", "c1ccc(OC2COC2)cc1", "Oc1ccc(F)cc1", "Fc1ccc(OC2COC2)cc1", "CCO", "CCN"]
    known = tl.GraphRegressor(depth=1, descriptors=False).fit(smiles, np.arange(6.0))

    def oxetanes(lead):
        found = tl.advise(known, lead, None, only_better=False)
        return found[found["smiles"].str.contains("COC", regex=False) & (found["n_pairs"] > 0)]

    found = oxetanes("Oc1ccc(Cl)cc1")
    assert found["change"].tolist() == ["H >> C1COC1"]
    assert found["at"].tolist() == ["*Oc(c)c"]
    for lead in ("C1CCCCN1C", "OC1CCCCC1", "OCc1ccccc1"):
        assert oxetanes(lead).empty


def test_new_molecules_are_as_the_model_reads_them(tmp_path):
    smiles = ["CC(=O)[O-].[Na+]", "CCC(=O)O", "CC(N)=O", "c1ccccc1", "c1ccccc1C", "c1ccccc1F"]
    graphs = smiles_to_collection(smiles, standardize=True)
    model = tl.GraphRegressor(depth=1, descriptors=False).fit(graphs, np.arange(6.0))
    found = tl.advise(model, "CC(=O)[O-].[Na+]", None, only_better=False)
    assert found.attrs["lead"]["smiles"] == "CC(=O)O"
    assert not found["smiles"].str.contains(r"Na|\.|-\]").any()
    assert found.loc[found["smiles"] == "CCC(=O)O", "measured"].all()


# --- scans --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lead", ["C[C@H](N)c1c[nH]c(=O)cc1", "F/C=C/c1ccoc1", "CC(=O)Nc1nnccc1S"])
def test_scans_are_molecules_with_one_change(lead):
    molecule = Chem.MolFromSmiles(lead)
    found = {(scan.text, scan.smiles) for scan in scans(molecule)}
    n_aromatic = sum(
        atom.GetIsAromatic() and atom.GetSymbol() == "C" and atom.GetTotalNumHs() == 1
        for atom in molecule.GetAtoms()
    )
    by_text = {text: [s for t, s in found if t == text] for text, _ in found}
    assert {"H >> F", "H >> Cl", "H >> O", "H >> OC", "H >> C#N", "H >> C"} <= set(by_text)
    assert len(by_text["H >> F"]) == n_aromatic
    assert 0 < len(by_text["CH >> N"]) <= n_aromatic
    assert len(by_text["H >> C"]) > n_aromatic
    weight = Descriptors.MolWt(molecule)
    changes = {"H >> F": 17.99, "H >> C#N": 25.01, "CH >> N": 0.99, "H >> C": 14.03}
    stereo = Chem.FindMolChiralCenters(molecule)
    for text, smiles in found:
        new = Chem.MolFromSmiles(smiles)
        assert Chem.MolToSmiles(new) == smiles
        if text in changes:
            assert Descriptors.MolWt(new) - weight == pytest.approx(changes[text], abs=0.01)
        if text == "CH >> N":
            assert bool(Chem.FindMolChiralCenters(new)) == bool(stereo)
            assert not new.HasSubstructMatch(Chem.MolFromSmarts("nnn"))


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
